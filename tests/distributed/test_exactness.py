"""Outputs and all gradients on 2, 3 and 4 processes are those of one process."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from torch import Tensor

import advdiff
from advdiff.distributed import partition
from advdiff.distributed.costs import cost_of_product
from tests.distributed import cases, processes
from tests.distributed.solvers import SOLVERS, factors

TOLERANCE = 1e-10
PARTS = (2, 3, 4)


def start_ranks(folder: Path) -> None:
    for parts in PARTS:
        for graph, way in cases.PARTITIONS.items():
            partition(
                cases.graph(graph, parts), parts, folder / str(parts) / f"{graph}-{way}", cases.assignment(way, parts)
            )
    port = str(processes.free_port())
    command = [sys.executable, "-m", "tests.distributed.worker", str(folder), port]
    done = subprocess.run(command, env=processes.environment(), capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, list[dict[str, Any]]]:
    """What each rank of each group computed; pytest's first worker starts them, and the others wait for it."""
    own: Path = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "ranks"
    with FileLock(folder.with_suffix(".lock")):
        if not (folder / "done").exists():
            start_ranks(folder)
            (folder / "done").touch()
    return {
        parts: [torch.load(folder / f"found-{parts}-{rank}.pt", weights_only=True) for rank in range(parts)]
        for parts in PARTS
    }


def gathered(ranks: list[dict[str, Any]], name: str, row_wise: list[str]) -> dict[str, Tensor]:
    """Rows of all ranks in the order of the nodes; what is not by rows is the same on all."""
    order = torch.cat([rank[name]["nodes"] for rank in ranks]).argsort()
    together = {}
    for key, value in ranks[0][name].items():
        if key in row_wise:
            together[key] = torch.cat([rank[name][key] for rank in ranks])[order]
        elif key != "nodes":
            assert all(torch.equal(value, rank[name][key]) for rank in ranks), f"{key} differs between ranks"
            together[key] = value
    return together


def reference(case: cases.Case, parts: int) -> dict[str, Tensor]:
    data, model = cases.graph(case.graph, parts), case.model()
    x = data.x.requires_grad_()
    out = model(x, data.edge_index, data.get("edge_weight"), data.get("edge_attr"))
    (out * cases.probe()).sum().backward()
    expected = {"out": out.detach(), "x": x.grad}
    expected |= {"weight " + name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return expected | {"buffer " + name: buffer for name, buffer in model.named_buffers()}


def compare(got: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        scale = max(1.0, float(value.abs().max())) if value.numel() else 1.0
        difference = float((got[name] - value).abs().max()) / scale if value.numel() else 0.0
        assert difference <= TOLERANCE, f"{name} differs by {difference:.1e}"


@pytest.mark.parametrize(
    ("case", "parts"),
    [pytest.param(case, parts, id=f"{case.name}-{parts}") for case in cases.CASES for parts in case.parts],
)
def test_the_model_is_that_of_one_process(found, case, parts):
    torch.set_default_dtype(torch.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", advdiff.NearSingularWarning)
            expected = reference(case, parts)
    finally:
        torch.set_default_dtype(torch.float32)
    compare(gathered(found[parts], case.name, ["out", "x"]), expected)


@pytest.mark.parametrize(
    ("graph", "parts"), [(graph, parts) for graph, several in cases.METHODS_ON.items() for parts in several]
)
@pytest.mark.parametrize("name", SOLVERS)
def test_every_method_is_that_of_one_process(found, name, graph, parts):
    query, key, Z = (tensor.requires_grad_() for tensor in factors())
    beta = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    data = cases.graph(graph, parts)
    V = advdiff.normalize_adjacency(data.edge_index, cases.NODES, dtype=torch.float64)
    L = advdiff.Generator(advdiff.Attention(query, key), V, beta)
    out = SOLVERS[name](L, Z)
    (out * cases.probe()[:, None, :1]).sum().backward()
    expected = {"out": out.detach(), "query": query.grad, "key": key.grad, "Z": Z.grad, "beta": beta.grad}
    compare(gathered(found[parts], f"{graph}-{name}", ["out", "query", "key", "Z"]), expected)


@pytest.mark.parametrize("parts", PARTS)
def test_the_bytes_of_a_product_are_those_of_the_formula(found, parts):
    for rank in found[parts]:
        counted = rank["traffic"]
        first = cost_of_product(counted["to_send"], heads=2, width=4, rank=4, itemsize=8, shared=True)
        second = cost_of_product(counted["to_send"], heads=2, width=4, rank=4, itemsize=8)
        assert counted["exchanges"] == 2  # one per product, for all heads
        assert counted["to_send"] > 0 and counted["exchanged"] == first.exchanged + second.exchanged
        sums = 2 * 4 * 8  # W'1, once for each attention
        assert counted["reduced"] == first.reduced + second.reduced + sums
