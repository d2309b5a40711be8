"""The dense oracles: the matrix exponential and torch's linear solver on the N×N matrix of each small graph."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.blocks import Blocks
from advdiff.operators.propagator import Propagator
from advdiff.propagation.inverse import Diagnosis, Inverse
from advdiff.propagation.methods.matrix_exponential import exponential_of
from advdiff.propagation.solution import Outcome

#: Largest N for which a dense N×N matrix is formed (about 0.5 GB per matrix in float64).
MAX_DENSE_NODES = 8192
#: Largest N for which the exponential of a float32 matrix is taken in float64.
MAX_DOUBLE_NODES = 512


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


def dense(operator: Propagator, Z: Tensor, times: Sequence[float], tol: float) -> Outcome:
    """e^{-LT}Z through the exponential of T(P − ρI), which cannot overflow, exact to rounding whatever ``tol``.

    Small matrices are exponentiated in float64: squaring them costs float32 as many digits as log₁₀(ρT).
    """
    segments, dtype = operator.segments, Z.dtype
    if dtype == torch.float32 and Z.device.type != "mps" and segments.largest <= MAX_DOUBLE_NODES:
        dtype = torch.float64
    P, padded = _blocks(operator, dtype).matrix, segments.pad(Z.to(dtype))
    growth = max(operator.radius - operator.shift, 0.0)
    states = [
        segments.unpad(
            grown(Blocks(segments, exponential_of(time * P, -time * (operator.shift + growth))) @ padded, growth * time)
        )
        for time in times
    ]
    return Outcome(torch.stack(states).to(Z.dtype), 0, torch.finfo(Z.dtype).eps)


def grown(Y: Tensor, exponent: float) -> Tensor:
    """e^exponent Y, in pieces that are representable where the result is."""
    pieces = max(1, math.ceil(abs(exponent) / 40.0))
    for _ in range(pieces):
        Y = Y * math.exp(exponent / pieces)
    return Y


def dense_inverse(operator: Propagator, Z: Tensor, theta: float, tol: float) -> Inverse:
    """(θI + L)⁻¹Z through the LU factors of each graph's matrix, which serve the backward pass, too."""
    P, segments = _blocks(operator, Z.dtype), operator.segments
    identity = torch.eye(segments.largest, dtype=Z.dtype, device=Z.device)
    columns = segments.pad(torch.cat([Z, torch.ones_like(Z[..., :1])], dim=-1))
    columns = columns.expand(-1, P.matrix.size(1), -1, -1)
    matrix = (operator.shift + theta) * identity - P.matrix
    lu, pivots, info = torch.linalg.lu_factor_ex(matrix)
    solved = segments.unpad(torch.linalg.lu_solve(lu, pivots, columns))
    X, ones = solved[..., :-1].contiguous(), solved[..., -1:]
    if operator.field is not None:  # no M-matrix, whose inverse would be bounded by one vector
        diagnosis = _condition(matrix, lu, pivots, info)
    else:
        diagnosis = Diagnosis.of(operator, theta, ones, X, Z, info)
    return Inverse(X, 0, torch.finfo(Z.dtype).eps * diagnosis.condition, diagnosis, _transposed, (lu, pivots))


def _condition(matrix: Tensor, lu: Tensor, pivots: Tensor, info: Tensor) -> Diagnosis:
    """κ₁ of a general matrix from its inverse."""
    if not has_values(matrix) or not matrix.numel():
        return Diagnosis(True, 1.0, math.nan)
    inverse = torch.linalg.lu_solve(
        lu, pivots, torch.eye(matrix.size(-1), dtype=lu.dtype, device=lu.device).expand_as(lu)
    )
    condition = float((torch.linalg.matrix_norm(matrix, 1) * torch.linalg.matrix_norm(inverse, 1)).max())
    is_singular = bool(info.any()) or not math.isfinite(condition)
    return Diagnosis(True, math.inf if is_singular else condition, math.nan)


def _transposed(operator: Propagator, Y: Tensor, lu: Tensor, pivots: Tensor) -> Tensor:
    """(θI + L)⁻ᵀY."""
    segments = operator.segments
    return segments.unpad(torch.linalg.lu_solve(lu, pivots, segments.pad(Y), adjoint=True))
