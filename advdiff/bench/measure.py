"""Time, peak memory and the share of sparse products of one training step."""

from __future__ import annotations

import ctypes
import gc
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from advdiff.operators.velocity import Velocity

Step = Callable[[], object]


def seconds(step: Step) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def side_by_side(steps: dict[str, Step], budget: float, least: int = 2) -> dict[str, float]:
    """Best time of each step, run in turns so that a slow spell of the machine hits all alike.

    Goes on until ``budget`` seconds are spent, and at least ``least`` rounds after a warm-up. A step that is quicker
    than the slowest one is repeated within its turn, up to eight times: its first run after a slow one finds the
    caches and the allocator in the other's state, which is not how a training loop finds them.
    """
    warm = {name: seconds(step) for name, step in steps.items()}
    repeats = {name: max(1, min(8, int(max(warm.values()) / max(once, 1e-9)))) for name, once in warm.items()}
    best = dict.fromkeys(steps, float("inf"))
    start, rounds = time.perf_counter(), 0
    while rounds < least or time.perf_counter() - start < budget:
        for name, step in steps.items():
            best[name] = min(best[name], *(seconds(step) for _ in range(repeats[name])))
        rounds += 1
    return best


@contextmanager
def sparse_time() -> Iterator[list[float]]:
    """Collects the seconds spent in products with V while the context is open."""
    original, spent = Velocity.add_product_, [0.0]

    def timed(self: Velocity, *args: object, **kwargs: object) -> object:
        start = time.perf_counter()
        result = original(self, *args, **kwargs)  # type: ignore[arg-type]
        spent[0] += time.perf_counter() - start
        return result

    Velocity.add_product_ = timed  # type: ignore[method-assign, assignment]
    try:
        yield spent
    finally:
        Velocity.add_product_ = original  # type: ignore[method-assign]


def sparse_share(step: Step, budget: float) -> float:
    """The share of the fastest step's time that goes into products with V."""
    step()
    best, share, start = float("inf"), 0.0, time.perf_counter()
    while best == float("inf") or time.perf_counter() - start < budget:
        with sparse_time() as spent:
            elapsed = seconds(step)
        if elapsed < best:
            best, share = elapsed, spent[0] / elapsed
    return share


#: How libraries without sparse matrices multiply by the adjacency matrix.
GATHERS = ("index_select", "gather", "index_add", "scatter_add", "scatter_reduce", "index.Tensor", "index_put")


class _SparseOperations(TorchDispatchMode):
    """Adds up the time of operations on sparse tensors, and of gathers and scatters, forward and backward."""

    def __init__(self) -> None:
        super().__init__()
        self.spent = 0.0

    def __torch_dispatch__(self, function: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        name = function.name().removeprefix("aten::")
        is_sparse = any(isinstance(t, Tensor) and t.layout != torch.strided for t in args)
        if not (is_sparse or name.startswith(GATHERS)):
            return function(*args, **(kwargs or {}))
        start = time.perf_counter()
        result = function(*args, **(kwargs or {}))
        self.spent += time.perf_counter() - start
        return result


def share_of_sparse(step: Step) -> float:
    """The share of sparse products in the time of a step of any model, those of PyG by gathering and scattering, too.

    Every operation is looked at as it is dispatched, which costs time of its own: a share of less than the truth.
    """
    step()
    with _SparseOperations() as mode:
        elapsed = seconds(step)
    return mode.spent / elapsed


def peak_bytes(step: Step) -> float | None:
    """By how much the memory of this process peaks in a step above what it holds before; None where it is not told.

    Linux resets the peak of a process that writes 5 into its ``clear_refs``.
    """
    step()
    gc.collect()
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    try:
        ctypes.CDLL("libc.so.6").malloc_trim(0)
        reset.write_text("5")
    except OSError:
        return None

    def read(field: str) -> float:
        (line,) = (line for line in status.read_text().splitlines() if line.startswith(f"{field}:"))
        return 1024.0 * float(line.split()[1])

    before = read("VmRSS")
    step()
    return max(0.0, read("VmHWM") - before)


def peak_in_own_process(solver: str, nodes: int, heads: int) -> float:
    """Peak memory in GB of a fresh process that makes one training step (its own libraries included)."""
    command = [sys.executable, "-m", "advdiff.bench.peak", solver, str(nodes), str(heads)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
