"""Sums and maxima over the nodes of all ranks, and the count of what they cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from advdiff.operators.reductions import Reductions


@dataclass
class Traffic:
    """What one rank has sent and waited for.

    Attributes:
        exchanges: halo exchanges.
        rows: rows sent in them.
        exchanged: bytes sent in them.
        reductions: all-reduces.
        reduced: bytes given to them (a ring sends each of these 2(P − 1)/P times).
        seconds: for which the rank stood still, waiting for the others.
    """

    exchanges: int = 0
    rows: int = 0
    exchanged: int = 0
    reductions: int = 0
    reduced: int = 0
    seconds: float = 0.0

    def reset(self) -> None:
        self.__init__()  # type: ignore[misc]


class RankReductions(Reductions):
    """Reductions over a group of ranks that together hold ``num_nodes`` nodes.

    The result of an all-reduce is the same, to the bit, on every rank: each entry is added up in one place and sent
    from there. What a solver decides by it, all ranks decide alike.
    """

    is_whole = False

    def __init__(self, num_nodes: int, group: dist.ProcessGroup | None = None) -> None:
        self.num_nodes, self.group, self.traffic = num_nodes, group, Traffic()

    def count(self, num_nodes: int) -> int:
        return self.num_nodes

    def add(self, partial: Tensor) -> Tensor:
        if torch.is_grad_enabled() and partial.requires_grad:
            total: Tensor = _Sum.apply(partial, self)
            return total
        return self._reduce(partial, dist.ReduceOp.SUM)

    def highest(self, partial: Tensor) -> Tensor:
        # A maximum may lose NaN on the way; whoever asks takes ∞ for not finite just as well.
        return self._reduce(torch.where(partial.isnan(), torch.inf, partial), dist.ReduceOp.MAX)

    def _reduce(self, partial: Tensor, operation: Any) -> Tensor:
        partial = partial.contiguous()
        began = time.perf_counter()
        dist.all_reduce(torch.view_as_real(partial) if partial.is_complex() else partial, operation, group=self.group)
        self.traffic.seconds += time.perf_counter() - began
        self.traffic.reductions += 1
        self.traffic.reduced += partial.numel() * partial.element_size()
        return partial


class _Sum(torch.autograd.Function):
    """Σ over ranks, read by every rank; the loss adds up over ranks, and so does its gradient."""

    @staticmethod
    def forward(ctx: Any, partial: Tensor, reductions: RankReductions) -> Tensor:
        ctx.reductions = reductions
        return reductions.add(partial.clone())

    @staticmethod
    def backward(ctx: Any, grad: Tensor):  # type: ignore[no-untyped-def]
        return ctx.reductions.add(grad.clone()), None
