"""What a computation did: the method, why it was chosen, its work and its error."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Record:
    """Attached to every call of ``exponential`` and ``resolvent`` that asks for it with ``return_record=True``.

    Attributes:
        method: the method that ran.
        reason: why (the rule by which ``auto`` chose it, or "asked for").
        products: how many times the forward pass multiplied by P or by V.
        estimated_error: relative error that the method itself expects (None: not estimated).
        condition: for resolvents, κ_∞ = ‖L + θI‖_∞ ‖(L + θI)⁻¹‖_∞.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> Y, record = advdiff.exponential(advdiff.Generator(None, V, 1.0), torch.ones(2), return_record=True)
        >>> record.method, record.reason
        ('dense', 'at most 64 nodes: a dense matrix exponential is fastest')
    """

    method: str
    reason: str
    products: int
    estimated_error: float | None = None
    condition: float | None = None


@dataclass(frozen=True)
class Solution:
    """The result of one method before it is wrapped for the user: Y [N, H, F] and what it took."""

    value: Tensor
    products: int
    estimated_error: float | None = None
