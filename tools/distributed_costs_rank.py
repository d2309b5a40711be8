"""One rank of :mod:`tools.distributed_costs`, which starts it by torchrun; rank 0 prints what was measured."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from advdiff.distributed import Shard, Sharded, add_up_gradients
from advdiff.distributed.costs import cost_of_series
from advdiff.experiments.machine import peak_gigabytes
from advdiff.nn import AdvDIFFormer

HIDDEN, ORDER, HEADS = 64, 2, 1
CHANNELS = 64


def rank_speed() -> dict[str, Any]:
    """Bytes per second between two ranks, and seconds of an all-reduce of a (d + 1) × F matrix."""
    rows, small = torch.zeros(2, 1 << 22), torch.zeros(HIDDEN + 1, HIDDEN)
    received = torch.empty_like(rows)
    seconds = {}
    for name, function in {
        "exchange": lambda: dist.all_to_all_single(received, rows),
        "reduce": lambda: dist.all_reduce(small),
    }.items():
        function()
        began = time.perf_counter()
        for _ in range(10):
            function()
        seconds[name] = (time.perf_counter() - began) / 10
    sent = rows[0].numel() * rows.element_size()
    return {
        "kind": "speed",
        "parts": dist.get_world_size(),
        "bytes_per_second": round(sent / seconds["exchange"]),
        "seconds_of_reduce": round(seconds["reduce"], 6),
    }


def rank_step(folder: Path) -> dict[str, Any]:
    """Training steps on this rank's part, or on the whole graph in one process."""
    torch.manual_seed(0)
    parts = dist.get_world_size()
    traffic = None
    if parts == 1:
        found = torch.load(folder / "whole.pt", weights_only=True)
        x, edge_index = found["x"], found["edge_index"]
        del found
        model = AdvDIFFormer(x.size(1), HIDDEN, 16, heads=HEADS, order=ORDER)
        call: Callable[[Tensor], Tensor] = lambda x: model(x, edge_index)  # noqa: E731
        exchanged = formula = reduced = 0
    else:
        shard = Shard(folder)
        assert shard.x is not None
        x, traffic = shard.x, shard.reductions.traffic
        model = AdvDIFFormer(x.size(1), HIDDEN, 16, heads=HEADS, order=ORDER)
        call = Sharded(model, shard)
    optimizer = torch.optim.Adam(model.parameters())
    y = torch.randint(16, (x.size(0),))
    times, waits, work = [], [], []
    steps = 3 if x.size(0) < 250_000 else 1
    for number in range(steps + 1):  # the first one also normalises the adjacency
        if traffic is not None:
            dist.barrier()
            traffic.reset()
        began, worked = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        out = call(x)
        if traffic is not None and number == 1:
            cost = cost_of_series(shard.halo.send_index.numel(), HEADS, HIDDEN, ORDER)
            exchanged, reduced, formula = traffic.exchanged, traffic.reduced, cost.exchanged
        torch.nn.functional.cross_entropy(out, y).mul(1 / parts).backward()
        if traffic is not None:
            add_up_gradients(model.parameters(), shard.reductions)
        optimizer.step()
        del out
        times.append(time.perf_counter() - began)
        work.append(time.process_time() - worked)
        waits.append(0.0 if traffic is None else traffic.seconds)
    own = {
        "nodes": x.size(0),
        "peak_gb": round(peak_gigabytes(), 3),
        "bytes_of_product": exchanged // ORDER,
        "formula": formula // ORDER,
        "bytes_of_sums": reduced,
        "cpu_seconds": round(min(work[1:]), 3),
        "wait": round(sum(waits[1:]) / sum(times[1:]), 3),
    }
    everyone: list[Any] = [None] * parts
    dist.all_gather_object(everyone, own)
    return {
        "parts": parts,
        "seconds": round(min(times[1:]), 3),
        "first_seconds": round(times[0], 3),
        "hidden": HIDDEN,
        "order": ORDER,
        "heads": HEADS,
        "ranks": everyone,
        "total_gb": round(sum(each["peak_gb"] for each in everyone), 3),
    }


def rank_overlap(folder: Path) -> dict[str, Any]:
    """Seconds of a product V Z that receives the halo while it multiplies, and of one that waits for it first."""
    shard = Shard(folder)
    velocity = shard.velocity()
    Z = torch.randn(shard.nodes.numel(), HIDDEN, dtype=velocity.dtype)
    out, start = torch.empty_like(Z), shard.halo.start

    def wait_first(Z: Tensor) -> Callable[[], Tensor]:
        rows = start(Z)()
        return lambda: rows

    seconds: dict[str, list[float]] = {"overlapped": [], "waiting": []}
    for _ in range(21):
        for name, way in (("overlapped", start), ("waiting", wait_first)):
            shard.halo.start = way  # type: ignore[method-assign]
            dist.barrier()
            began = time.perf_counter()
            velocity.add_product_(out, Z, keep=0.0)
            dist.barrier()
            seconds[name].append(time.perf_counter() - began)
    middle = {name: round(sorted(found[1:])[10], 5) for name, found in seconds.items()}
    return {"kind": "overlap", "parts": dist.get_world_size(), "width": HIDDEN, **middle}


def rank_memory(nodes: int, edges: int) -> dict[str, Any]:
    """Peaks in gigabytes, without a graph, while one is normalised and in training steps; and seconds of a step."""
    drawn = torch.Generator().manual_seed(0)
    model = AdvDIFFormer(CHANNELS, HIDDEN, 16, heads=HEADS, order=ORDER)
    optimizer = torch.optim.Adam(model.parameters())
    y = torch.randint(16, (nodes,), generator=drawn)
    peaks: dict[str, float] = {"empty_gb": _peak_from_here()}
    x = torch.randn(nodes, CHANNELS, generator=drawn)
    ends = torch.randint(nodes, (2, edges // 2), generator=drawn)
    edge_index = torch.cat([ends, ends.flip(0)], dim=1)
    del ends
    _peak_from_here()
    with torch.no_grad():
        model(x, edge_index)  # prepares, and remembers the velocity
    peaks["prepared_gb"] = _peak_from_here()
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        torch.nn.functional.cross_entropy(model(x, edge_index), y).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - began)
    peaks |= {"step_gb": _peak_from_here(), "seconds": round(min(seconds), 3)}
    size = {"nodes": nodes, "edges": edges, "channels": CHANNELS, "hidden": HIDDEN, "order": ORDER}
    return {"kind": "memory", "parts": 1} | size | peaks


def _peak_from_here() -> float:
    """The peak so far in gigabytes; what follows counts anew (Linux)."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    kilobytes = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    return round(kilobytes * 1024 / 1e9, 3)


def measured(kind: str, *arguments: str) -> dict[str, Any]:
    if kind == "speed":
        return rank_speed()
    if kind == "memory":
        return rank_memory(*map(int, arguments))
    return (rank_step if kind == "step" else rank_overlap)(Path(arguments[0]))


if __name__ == "__main__":
    dist.init_process_group("gloo")
    row = measured(*sys.argv[1:])
    if dist.get_rank() == 0:
        print(json.dumps(row), flush=True)
    dist.barrier()
    dist.destroy_process_group()
