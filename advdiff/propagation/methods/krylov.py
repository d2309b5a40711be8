r"""The Krylov method: Arnoldi on P from Z, then the exponential of a small Hessenberg matrix.

.. math::
    e^{-\mathbf L T} \mathbf Z \approx e^{-T} \|\mathbf Z\|_F\, \mathbf Q_m\, e^{T \mathbf H_m} \mathbf e_1

Q_m is an orthonormal basis of span{Z, PZ, …, P^{m-1}Z} in the Frobenius inner product: one basis serves all
columns, heads and graphs. Long times are cut into steps so that the basis stays small.
"""

from __future__ import annotations

import math
import warnings

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.solution import Outcome

#: Basis vectors kept before the time step is shortened instead.
MAX_BASIS = 30
#: Steps are not made shorter than the time divided by this; a basis too small for them is reported.
MAX_STEPS = 1000


def krylov(operator: Propagator, Z: Tensor, time: float, tol: float, order: int | None = None) -> Outcome:
    """At most ``order`` (default 30) basis vectors per time step; the steps adapt to ``tol``."""
    if not has_values(Z):
        return Outcome(torch.empty_like(Z), 0)
    size = min(order or MAX_BASIS, max(operator.segments.all_nodes * Z[:1].numel(), 1))
    state, done, products, error = Z, 0.0, 0, 0.0
    while done < time:
        norm = float(operator.segments.reductions.norms(state))
        if not math.isfinite(norm):  # NaN in, NaN out: no step would ever be short enough
            return Outcome(torch.full_like(Z, math.nan), products, math.nan)
        basis, hessenberg, used = _arnoldi(operator, state, norm, size, tol, time - done)
        products += used
        step, coordinates, step_error = _largest_step(hessenberg, time - done, time, 0.5 * tol)
        state = (norm * coordinates.to(Z.dtype) @ basis[: coordinates.numel()]).view(Z.shape)
        done = time if time - done - step <= 1e-12 * time else done + step
        error += step_error
    if error > tol:
        warnings.warn(
            f"krylov: a basis of {size} vectors reaches a relative error of {error:.1e}, not tol = {tol:.1e}; "
            "allow a larger order.",
            stacklevel=2,
        )
    return Outcome(state if state is not Z else Z.clone(), products, error)


def _arnoldi(
    operator: Propagator, state: Tensor, norm: float, size: int, tol: float, time: float
) -> tuple[Tensor, Tensor, int]:
    """Basis [m + 1, N·H·F] and Hessenberg [m + 1, m]; stops early once the step is accurate."""
    basis, reductions = state.new_empty(size + 1, state.numel()), operator.segments.reductions
    hessenberg = state.new_zeros(size + 1, size, dtype=torch.float64)
    if norm == 0.0:
        return basis.zero_(), hessenberg[:2, :1], 0
    torch.div(state.flatten(), norm, out=basis[0])
    for m in range(size):
        vector = basis[m + 1]
        operator.add_product_(vector.view(state.shape), basis[m].view(state.shape), keep=0.0)
        for _ in range(2):  # twice is enough (Kahan–Parlett) for orthogonality to rounding
            projection = reductions.add(basis[: m + 1] @ vector)
            vector.addmv_(basis[: m + 1].T, projection, alpha=-1.0)
            hessenberg[: m + 1, m] += projection.double()
        remainder = reductions.norms(vector)[0]
        hessenberg[m + 1, m] = remainder
        scale = float(hessenberg[: m + 1, m].norm())
        if float(remainder) <= 10 * torch.finfo(state.dtype).eps * scale:  # an invariant subspace: exact
            hessenberg[m + 1, m] = 0.0
            break
        vector /= remainder
        if m % 3 == 2 and _local_error(hessenberg[: m + 2, : m + 1], time)[1] <= 0.1 * tol:
            break
    return basis, hessenberg[: m + 2, : m + 1], m + 1


def _local_error(hessenberg: Tensor, time: float) -> tuple[Tensor, float]:
    """Coordinates of e^{-T}e^{TH}e_1 and Saad's error estimate h_{m+1,m} |e_mᵀ T φ₁(TH) e_1|, relative."""
    m = hessenberg.size(1)
    augmented = hessenberg.new_zeros(m + 1, m + 1)
    augmented[:m, :m] = time * (hessenberg[:m] - torch.eye(m, dtype=hessenberg.dtype, device=hessenberg.device))
    augmented[0, m] = time  # the last column of the exponential is then T φ₁ e_1
    exponential = torch.linalg.matrix_exp(augmented)
    coordinates = exponential[:m, 0]
    size = float(torch.linalg.vector_norm(coordinates))
    return coordinates, float((hessenberg[m, m - 1] * exponential[m - 1, m]).abs()) / max(size, 1e-300)


def _largest_step(hessenberg: Tensor, left: float, time: float, tol: float) -> tuple[float, Tensor, float]:
    """Halve the step until the estimate allows it; the tolerance is shared out over the whole time."""
    step = left
    while True:
        coordinates, error = _local_error(hessenberg, step)
        if error <= max(tol * step / time, 1e-15) or step <= time / MAX_STEPS:
            return step, coordinates, error
        step /= 2
