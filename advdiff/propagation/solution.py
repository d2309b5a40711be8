"""What a solver returns: the value, and what it did to get it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


@dataclass(frozen=True)
class Statistics:
    """What a solver did: the method, why it was chosen, its work and its error.

    Attributes:
        method: the method that ran.
        reason: why (the rule by which ``auto`` chose it, or "asked for").
        products: how many times the forward pass multiplied by P or by V.
        estimated_error: relative error that the method itself expects, rounding included; of several times the largest
            (None: not estimated, since the caller fixed the order).
        condition: for resolvents, κ_∞ = ‖L + θI‖_∞ ‖(L + θI)⁻¹‖_∞.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> solution = advdiff.exponential(advdiff.Generator(None, V, 1.0), torch.ones(2), return_solution=True)
        >>> solution.statistics.method, solution.statistics.reason
        ('dense', 'at most 64 nodes: a dense matrix exponential is fastest')
    """

    method: str
    reason: str
    products: int
    estimated_error: float | None = None
    condition: float | None = None


@dataclass(frozen=True)
class Solution:
    """What ``exponential`` and ``resolvent`` return with ``return_solution=True``.

    Attributes:
        value: the result, what they return otherwise.
        statistics: a :class:`Statistics` of how it was computed.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> solution = advdiff.resolvent(advdiff.Generator(None, V, 0.5), torch.ones(2), return_solution=True)
        >>> solution.value.round(decimals=4), round(solution.statistics.condition, 4)
        (tensor([0.6667, 0.6667]), 1.6667)
    """

    value: Tensor
    statistics: Statistics


class Outcome(NamedTuple):
    """What one method computes on constants: the states Y [times, N, H, F], its work and the error it expects.

    The error is relative, the largest over the times; NaN says that the states are not finite, None that the caller
    fixed the order, so that nothing was looked at.
    """

    value: Tensor
    products: int
    estimated_error: float | None = None
