"""Norms and inner products over all nodes, in one place: every number by which a solver decides comes from here.

Sums over the nodes of each graph are those of :class:`~advdiff.operators.segments.Segments`. Whoever shares the nodes
out over processes has these two to replace.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def norms(*tensors: Tensor) -> list[float]:
    """Frobenius norms, for which the host waits once, or once more for one whose squares leave the range of numbers.

    Example:
        >>> import torch
        >>> [f"{norm:.3g}" for norm in norms(torch.tensor([3e30, 4e30]), torch.zeros(2))]
        ['5e+30', '0']
    """
    values = torch.stack([torch.linalg.vector_norm(t) for t in tensors]).tolist()
    # Squares of float32 numbers overflow from 1.8e19 on, and lose digits below 1e-16.
    smallest = torch.finfo(tensors[0].dtype).tiny ** 0.5 * 1e3
    return [
        value if smallest < value < math.inf or math.isnan(value) else _scaled_norm(tensor)
        for tensor, value in zip(tensors, values, strict=True)
    ]


def _scaled_norm(tensor: Tensor) -> float:
    """‖x‖ = a ‖x/a‖ with a the largest entry."""
    largest = float(tensor.abs().amax()) if tensor.numel() else 0.0
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    return largest * float(torch.linalg.vector_norm(tensor / largest))


def inner(X: Tensor, Y: Tensor) -> Tensor:
    """⟨X, Y⟩, the sum over all entries of the product."""
    return (X * Y).sum()


def coordinates(basis: Tensor, vector: Tensor) -> Tensor:
    """⟨q_i, x⟩ for the rows q_i of ``basis`` [m, …] and x, both flat."""
    return basis @ vector


def largest_entries(*tensors: Tensor) -> list[Tensor]:
    """max |entry| of each tensor, 0 if it is empty, on the device."""
    return [t.abs().amax() if t.numel() else t.new_zeros(()) for t in tensors]
