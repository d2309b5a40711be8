"""Where the inverse variant has its wall: the critical value θ* of a graph."""

from __future__ import annotations

import torch
from torch import Tensor

from advdiff.checks import check_edge_index, check_nonnegative, expects
from advdiff.operators.graph import normalize_adjacency


@expects
def critical_theta(
    edge_index: Tensor, num_nodes: int, beta: float, kind: str = "symmetric", *, steps: int = 100
) -> float:
    """θ* = ρ(C + βV) − 1 with uniform attention, C = 11ᵀ/N: at θ = θ* the matrix (1 + θ)I − C − βV is singular.

    Computed by the power method from the vector of ones, in float64. An undirected graph converges, since C lifts the
    one eigenvalue that is wanted above those of βV.

    Args:
        edge_index: [2, E].
        beta: weight of the advection, β ≥ 0.
        kind: normalisation of V, as for :func:`advdiff.normalize_adjacency`.
        steps: products with C + βV.

    Example:
        >>> import torch
        >>> from advdiff.theory.critical import critical_theta
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> round(critical_theta(path, 3, beta=0.5, kind="row"), 6)  # without isolated nodes θ* = β
        0.5
    """
    check_nonnegative("beta", beta)
    check_edge_index(edge_index, num_nodes)
    weight = torch.ones(edge_index.size(1), dtype=torch.float64, device=edge_index.device)
    V = normalize_adjacency(edge_index, num_nodes, weight, kind=kind)
    z = weight.new_ones(num_nodes, 1)
    size = z.norm()
    for _ in range(steps):
        z = z.mean(0) + beta * (V @ z)
        size = z.norm()
        z = z / size
    return float(size) - 1.0
