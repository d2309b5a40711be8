"""The dense oracles: torch's matrix exponential and linear solver on the N×N matrix of each small graph."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from advdiff.operators.blocks import Blocks
from advdiff.operators.propagator import Propagator
from advdiff.propagation.inverse import Diagnosis, Inverse
from advdiff.propagation.solution import Outcome

#: Largest N for which a dense N×N matrix is formed (about 0.5 GB per matrix in float64).
MAX_DENSE_NODES = 8192


def check_size(num_nodes: int) -> None:
    """Refuse a graph whose dense matrix would not fit into memory."""
    if num_nodes > MAX_DENSE_NODES:
        raise ValueError(
            f"method='dense' would form a {num_nodes}×{num_nodes} matrix; it is limited to {MAX_DENSE_NODES} nodes: "
            "use method='auto'."
        )


def _blocks(operator: Propagator, dtype: torch.dtype) -> Blocks:
    """P = C + βV, one matrix for each graph and head."""
    segments = operator.segments
    if not segments.reductions.is_whole:
        raise ValueError("method='dense' needs the whole graph in one process; use method='auto'.")
    check_size(math.isqrt(segments.num_graphs * segments.largest**2))
    return operator.blocks(dtype)


def dense(operator: Propagator, Z: Tensor, time: float, tol: float) -> Outcome:
    """e^{-LT}Z through ``torch.linalg.matrix_exp`` of the nonnegative matrix PT, exact to rounding whatever ``tol``."""
    P, segments = _blocks(operator, Z.dtype), operator.segments
    flow = Blocks(segments, torch.linalg.matrix_exp(time * P.matrix) * math.exp(-time))
    return Outcome(segments.unpad(flow @ segments.pad(Z)), 0, torch.finfo(Z.dtype).eps)


def dense_inverse(operator: Propagator, Z: Tensor, theta: float, tol: float) -> Inverse:
    """(θI + L)⁻¹Z through the LU factors of each graph's matrix, which serve the backward pass, too."""
    P, segments = _blocks(operator, Z.dtype), operator.segments
    identity = torch.eye(segments.largest, dtype=Z.dtype, device=Z.device)
    columns = segments.pad(torch.cat([Z, torch.ones_like(Z[..., :1])], dim=-1))
    columns = columns.expand(-1, P.matrix.size(1), -1, -1)
    lu, pivots, info = torch.linalg.lu_factor_ex((1.0 + theta) * identity - P.matrix)
    solved = segments.unpad(torch.linalg.lu_solve(lu, pivots, columns))
    X, ones = solved[..., :-1].contiguous(), solved[..., -1:]
    diagnosis = Diagnosis.of(operator, theta, ones, X, Z, info)
    return Inverse(X, 0, torch.finfo(Z.dtype).eps * diagnosis.condition, diagnosis, _transposed, (lu, pivots))


def _transposed(operator: Propagator, Y: Tensor, lu: Tensor, pivots: Tensor) -> Tensor:
    """(θI + L)⁻ᵀY."""
    segments = operator.segments
    return segments.unpad(torch.linalg.lu_solve(lu, pivots, segments.pad(Y), adjoint=True))
