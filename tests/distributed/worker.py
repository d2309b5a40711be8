"""The ranks of the exactness tests: ``python -m tests.distributed.worker FOLDER PORT``.

Imports are paid once, before the process divides into four; these then serve groups of 2, 3 and 4 ranks.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

import advdiff
from advdiff.distributed import Shard, Sharded, add_up_gradients
from tests.distributed import cases, processes
from tests.distributed.solvers import SOLVERS, factors


def run_case(case: cases.Case, shard: Shard) -> dict[str, Any]:
    model = Sharded(case.model(), shard)
    assert shard.x is not None
    x = shard.x.requires_grad_()
    x.grad = None
    out = model(x)
    loss = (out * cases.probe()[shard.nodes]).sum()
    loss.backward()
    add_up_gradients(model.parameters(), shard.reductions)
    named = model.model.named_parameters()
    found: dict[str, Any] = {"nodes": shard.nodes, "out": out.detach(), "x": x.grad}
    found |= {"weight " + name: parameter.grad for name, parameter in named if parameter.grad is not None}
    return found | {"buffer " + name: buffer.clone() for name, buffer in model.model.named_buffers()}


def run_solver(name: str, shard: Shard) -> dict[str, Any]:
    nodes = shard.nodes
    query, key, Z = (tensor[nodes].requires_grad_() for tensor in factors())
    beta = torch.tensor(0.4, dtype=torch.float64, requires_grad=True)
    L = advdiff.Generator(advdiff.Attention(query, key, shard.segments), shard.velocity(), beta)
    out = SOLVERS[name](L, Z)
    (out * cases.probe()[nodes, None, :1]).sum().backward()
    total_beta: Tensor = shard.reductions.add(beta.grad)  # type: ignore[arg-type]
    return {"nodes": nodes, "out": out.detach(), "query": query.grad, "key": key.grad, "Z": Z.grad, "beta": total_beta}


def run_series(shard: Shard) -> dict[str, int]:
    """What a series of two products with two heads of width 4 sends."""
    query, key, Z = (tensor[shard.nodes] for tensor in factors())
    L = advdiff.Generator(advdiff.Attention(query, key, shard.segments), shard.velocity(), 0.5)
    shard.reductions.traffic.reset()
    advdiff.powers(L.propagator, Z, 2)
    return {"to_send": shard.halo.send_index.numel(), **asdict(shard.reductions.traffic)}


def rank_main(folder: Path) -> None:
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    warnings.simplefilter("ignore", advdiff.NearSingularWarning)
    dist.init_process_group("gloo")
    for parts in (2, 3, 4):
        group = dist.new_group(list(range(parts)))
        if dist.get_rank() >= parts:
            continue
        found: dict[str, Any] = {}
        for graph, partition in cases.PARTITIONS.items():
            shard = Shard(folder / str(parts) / f"{graph}-{partition}", group)
            for case in cases.CASES:
                if case.graph == graph and parts in case.parts:
                    found[case.name] = run_case(case, shard)
            if parts in cases.METHODS_ON.get(graph, ()):
                found |= {f"{graph}-{name}": run_solver(name, shard) for name in SOLVERS}
        found["traffic"] = run_series(Shard(folder / str(parts) / "directed-random", group))
        torch.save(found, folder / f"found-{parts}-{dist.get_rank()}.pt")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    sys.exit(processes.divide(4, sys.argv[2], lambda: rank_main(Path(sys.argv[1]))))
