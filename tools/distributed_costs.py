"""``python -m tools.distributed_costs``: what one graph on several processes costs, into results/distributed.json.

Five kinds of rows, each written as soon as it is measured and not measured again while it is there:

* ``partition``: a graph, a method and P: edges cut, rows that the ranks send, seconds of partitioning;
* ``step``: a training step of AdvDIFFormer-s (hidden 64, K = 2, one head) on P processes: seconds, the share of them in
  which a rank waits, its processor time (which other work on the machine changes little), its peak memory, and the
  bytes counted per product beside those of the formula;
* ``overlap``: a product V Z on two processes, with the exchange beside the multiplication and before it, in turns;
* ``memory``: the peak of one process that prepares a generated graph and trains on it, and seconds of a step;
* ``speed``: bytes per second of an exchange and seconds of a small all-reduce, on loopback.

Needs $ADVDIFF_DATA; times are those of the machine at hand.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from advdiff.atomic import replacing
from advdiff.datasets import load
from advdiff.distributed import partition
from advdiff.distributed.partitioning import assign

OUT = Path("results/distributed.json")
POWER_LAW_NODES, POWER_LAW_EDGES = 2_000_000, 20_000_000
#: Few and many edges per node, so that what a node costs can be told from what an edge costs.
MEMORY = ((500_000, 1_000_000), (500_000, 10_000_000), (1_000_000, 2_000_000), (1_000_000, 10_000_000))


def power_law(nodes: int = POWER_LAW_NODES, edges: int = POWER_LAW_EDGES, channels: int = 64) -> Data:
    """Undirected, both directions listed; ends are drawn with weights i^{-1/2}, so that degrees fall off as k^{-3}."""
    drawn = torch.Generator().manual_seed(0)
    # The inverse of the distribution function of i^{-1/2}; node numbers are shuffled, so that they say nothing.
    ends = (torch.rand(2, edges // 2, generator=drawn).square_() * nodes).long().clamp_(max=nodes - 1)
    ends = torch.randperm(nodes, generator=drawn)[ends]
    return Data(x=torch.randn(nodes, channels, generator=drawn), edge_index=torch.cat([ends, ends.flip(0)], dim=1))


def arxiv() -> Data:
    """All papers up to 2020; the features are a stand-in, since only their number counts here."""
    found = load("arxiv", features="text").graphs("2020")[0]
    return Data(x=found.x, edge_index=found.edge_index)


def twitch() -> Data:
    """The largest of the seven networks."""
    data = load("twitch")
    found = max((data.graphs(name)[0] for name in data.environments), key=lambda graph: graph.num_nodes)
    x = found.x.to_dense() if found.x.layout != torch.strided else found.x
    return Data(x=x.float(), edge_index=found.edge_index)


#: Into how many parts each graph is divided, on paper only.
PARTS = {"twitch": (2, 4, 8, 16, 32), "arxiv": (2, 4, 8, 16, 32), "power law": (2, 4)}
GRAPHS: dict[str, Callable[[], Data]] = {"twitch": twitch, "arxiv": arxiv, "power law": power_law}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=GRAPHS, nargs="+", default=list(GRAPHS))
    options = parser.parse_args()
    rows: list[dict[str, Any]] = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else []
    known = {_key(row) for row in rows}

    def keep(row: dict[str, Any]) -> None:
        rows.append(row)
        rows.sort(key=_key)
        with replacing(OUT) as file:
            file.write((json.dumps(rows, indent=1) + "\n").encode())
        print(json.dumps(row), flush=True)

    if ("speed", "", "", 2, 0, 0) not in known:
        keep(_of_ranks(2, ["speed"]))
    for nodes, edges in MEMORY:
        if ("memory", "", "", 1, nodes, edges) not in known:
            keep(_of_ranks(1, ["memory", str(nodes), str(edges)]))
    for name in options.only:
        data: Data | None = None
        for parts in (1, 2, 4):
            method = "range" if name == "power law" else "metis"
            if ("step", name, method, parts, 0, 0) not in known:
                data = data or GRAPHS[name]()
                keep({"kind": "step", "graph": name} | measure_on_ranks("step", data, method, parts))
        for method in ("metis", "random"):
            if name == "arxiv" and ("overlap", name, method, 2, 0, 0) not in known:
                data = data or GRAPHS[name]()
                keep({"graph": name} | measure_on_ranks("overlap", data, method, 2))
        for parts in PARTS[name]:
            for method in ("range", "random", "metis"):
                if ("partition", name, method, parts, 0, 0) not in known:
                    data = data or GRAPHS[name]()
                    keep({"kind": "partition", "graph": name} | measure_partition(data, method, parts))


def _key(row: dict[str, Any]) -> tuple[str, str, str, int, int, int]:
    size = (row["nodes"], row["edges"]) if row["kind"] == "memory" else (0, 0)
    return row["kind"], row.get("graph", ""), row.get("method", ""), row["parts"], *size


def measure_partition(data: Data, method: str, parts: int) -> dict[str, Any]:
    """How much of V crosses the parts."""
    num_nodes, began = int(data.num_nodes or 0), time.perf_counter()
    owner = assign(data.edge_index, num_nodes, parts, _assignment(method, num_nodes, parts))
    seconds = time.perf_counter() - began
    source, target = data.edge_index
    crossing = owner[source] != owner[target]
    # A row is sent once to every rank that needs it, however many edges ask for it.
    wanted = (source[crossing] * parts + owner[target[crossing]]).unique()
    sent = torch.bincount(owner[torch.div(wanted, parts, rounding_mode="floor")], minlength=parts)
    return {
        "method": method,
        "parts": parts,
        "nodes": num_nodes,
        "edges": source.numel(),
        "cut": round(float(crossing.double().mean()), 4),
        "rows_sent": sent.tolist(),
        "nodes_of_part": torch.bincount(owner, minlength=parts).tolist(),
        "seconds": round(seconds, 2),
    }


def measure_on_ranks(kind: str, data: Data, method: str, parts: int) -> dict[str, Any]:
    """What the ranks measure, each on its part."""
    with tempfile.TemporaryDirectory() as folder:
        if parts == 1:
            torch.save({"x": data.x, "edge_index": data.edge_index}, Path(folder) / "whole.pt")
        else:
            partition(data, parts, folder, _assignment(method, int(data.num_nodes or 0), parts))
        found = _of_ranks(parts, [kind, folder])
    return {"method": method, **found}


def _assignment(method: str, num_nodes: int, parts: int) -> str | Tensor:
    return (
        torch.randint(parts, (num_nodes,), generator=torch.Generator().manual_seed(0)) if method == "random" else method
    )


def _of_ranks(parts: int, arguments: list[str]) -> dict[str, Any]:
    """What rank 0 prints, of ``parts`` processes on loopback."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = str(listener.getsockname()[1])
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(parts), "--master-port", port]
    done = subprocess.run(
        [*command, "-m", "tools.distributed_costs_rank", *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONPATH": os.getcwd()},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    row: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return row


if __name__ == "__main__":
    main()
