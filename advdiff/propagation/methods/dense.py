"""The dense oracles: torch's matrix exponential and linear solver on the N×N matrix of each small graph."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.blocks import Blocks
from advdiff.operators.propagator import Propagator
from advdiff.operators.reductions import norms
from advdiff.propagation.inverse import Diagnosis, Inverse
from advdiff.propagation.methods.marching import unresolved
from advdiff.propagation.solution import Outcome

#: Largest N for which a dense N×N matrix is formed (about 0.5 GB per matrix in float64).
MAX_DENSE_NODES = 8192
#: Largest N for which the exponential of a float32 matrix is taken in float64.
MAX_DOUBLE_NODES = 512
#: What ``torch.linalg.matrix_exp`` leaves out in float64 where the norm is small: up to 4e-12 was measured.
MATRIX_EXP_ERROR = 4e-12


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
    check_size(math.isqrt(segments.num_graphs * segments.largest**2))
    return operator.blocks(dtype)


def dense(operator: Propagator, Z: Tensor, times: Sequence[float], tol: float) -> Outcome:
    """e^{-LT}Z through ``torch.linalg.matrix_exp`` of T(P − ρI), which cannot overflow, whatever ``tol``.

    Small matrices are exponentiated in float64: squaring them costs float32 as many digits as log₁₀(ρT).
    """
    segments, dtype = operator.segments, Z.dtype
    if dtype == torch.float32 and Z.device.type != "mps" and segments.largest <= MAX_DOUBLE_NODES:
        dtype = torch.float64
    P, growth, end = _blocks(operator, dtype).matrix, max(operator.radius - operator.shift, 0.0), max(times)
    decaying = P - (operator.shift + growth) * torch.eye(segments.largest, dtype=dtype, device=Z.device)
    padded, states = segments.pad(Z.to(dtype)), []
    for time in times:
        flow = Blocks(segments, torch.linalg.matrix_exp(time * decaying))
        states.append(grown(segments.unpad(flow @ padded), growth * time).to(Z.dtype))
    value = torch.stack(states)
    if not has_values(Z) or not Z.numel():
        return Outcome(value, 0, 0.0)
    start, *sizes = norms(Z, *value)
    if not math.isfinite(start + sum(sizes)):
        return Outcome(value, 0, math.nan)
    if min(sizes) == 0.0:
        return Outcome(value, 0, float(start > 0.0))
    # The exponential is exact relative to its own size, of which the result may be a small part.
    part = max(min(math.exp(min(growth * t, 700.0)) * start / size, 1e3) for t, size in zip(times, sizes, strict=True))
    error = torch.finfo(dtype).eps * (1.0 + operator.radius * end) * part
    return Outcome(value, 0, torch.finfo(Z.dtype).eps + MATRIX_EXP_ERROR + error + unresolved(Z, min(sizes)))


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
    if operator.bound is not None:  # no M-matrix, whose inverse would be bounded by one vector
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
