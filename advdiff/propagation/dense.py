"""The dense oracles: torch's matrix exponential and linear solver on the N×N matrix, for small graphs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from advdiff.operators import Generator
from advdiff.propagation.errors import SingularGeneratorError

#: Largest N for which a dense N×N matrix is formed (about 0.5 GB per matrix in float64).
MAX_DENSE_NODES = 8192


def check_size(num_nodes: int) -> None:
    if num_nodes > MAX_DENSE_NODES:
        raise ValueError(
            f"method='dense' would form a {num_nodes}×{num_nodes} matrix; it is limited to {MAX_DENSE_NODES} nodes: "
            "use method='auto'."
        )


def _columns(L: Generator, Z: Tensor) -> Tensor:
    """Z [N, 1 or H, F] as the right-hand side [N, F] or [H, N, F] of the dense matrix."""
    return Z.transpose(0, 1) if L.propagator.multi_head else Z[:, 0]


def _rows(L: Generator, Y: Tensor) -> Tensor:
    return Y.transpose(0, 1) if L.propagator.multi_head else Y.unsqueeze(1)


def dense_exponential(L: Generator, Z: Tensor, time: float) -> Tensor:
    """e^{-LT}Z through ``torch.linalg.matrix_exp`` of the nonnegative matrix PT."""
    check_size(L.num_nodes)
    matrix = torch.linalg.matrix_exp(time * L.propagator.to_dense(Z.dtype)) * math.exp(-time)
    return _rows(L, matrix @ _columns(L, Z))


def dense_resolvent(L: Generator, Z: Tensor, theta: float) -> tuple[Tensor, Tensor]:
    """(θI + L)⁻¹Z and (θI + L)⁻¹1 through ``torch.linalg.solve``."""
    check_size(L.num_nodes)
    identity = torch.eye(L.num_nodes, dtype=Z.dtype, device=Z.device)
    matrix = (1.0 + theta) * identity - L.propagator.to_dense(Z.dtype)
    columns = _columns(L, Z)
    if matrix.dim() == 3:
        columns = columns.expand(matrix.size(0), -1, -1)
    ones = columns.new_ones(*columns.shape[:-1], 1)
    try:
        solved = torch.linalg.solve(matrix, torch.cat([columns, ones], dim=-1))
    except torch.linalg.LinAlgError:
        raise SingularGeneratorError(
            f"θI + L is exactly singular at θ = {theta:g}: the Perron eigenvalue of C + βV equals 1 + θ; "
            "choose a larger θ."
        ) from None
    return _rows(L, solved[..., :-1]), _rows(L, solved[..., -1:].detach())
