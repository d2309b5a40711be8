r"""The Krylov method: Arnoldi on P from Z, then the exponential of a small Hessenberg matrix.

.. math::
    e^{-\mathbf L T} \mathbf Z \approx e^{-T} \|\mathbf Z\|_F\, \mathbf Q_m\, e^{T \mathbf H_m} \mathbf e_1

Q_m is an orthonormal basis of span{Z, PZ, …, P^{m-1}Z} in the Frobenius inner product: one basis serves all
columns, heads and graphs. Long times are cut into steps so that the basis stays small.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.operators.reductions import coordinates as coordinates_in
from advdiff.operators.reductions import norms
from advdiff.propagation.errors import ToleranceWarning
from advdiff.propagation.methods.marching import unresolved
from advdiff.propagation.solution import Outcome

#: Basis vectors kept before the time step is shortened instead.
MAX_BASIS = 30
#: Steps are not made shorter than the time divided by this; a basis too small for them is reported.
MAX_STEPS = 1000


def krylov(operator: Propagator, Z: Tensor, times: Sequence[float], tol: float, order: int | None = None) -> Outcome:
    """At most ``order`` (default 30) basis vectors per time step; the steps adapt to ``tol``."""
    out = Z.unsqueeze(0).repeat(len(times), *[1] * Z.dim())
    if not has_values(Z):
        return Outcome(out, 0)
    size, end, eps = min(order or MAX_BASIS, max(Z.numel(), 1)), max(times), torch.finfo(Z.dtype).eps
    growth = max(operator.radius - operator.shift, 0.0)
    state, done, products, error, rounding, amplified = Z, 0.0, 0, 0.0, 0.0, 1.0
    while done < end:
        (norm,) = norms(state)
        if not math.isfinite(norm):  # NaN or ∞ in or out: no step would ever be short enough
            return Outcome(torch.full_like(out, math.nan), products, math.nan)

        def is_enough(H: Tensor, left: float = end - done) -> bool:
            return _local_error(H, left, operator.shift)[1] <= 0.1 * tol

        basis, hessenberg, used = arnoldi(operator, state, norm, size, is_enough)
        products += used
        step, coordinates, step_error = _largest_step(hessenberg, end - done, end, 0.5 * tol, operator.shift)
        last = end - done - step <= 1e-12 * end
        for index, time in enumerate(times):
            if done < time < end and time <= done + step:
                inside = _local_error(hessenberg, time - done, operator.shift)[0]
                out[index] = (norm * inside.to(Z.dtype) @ basis[: inside.numel()]).view(Z.shape)
        state = (norm * coordinates.to(Z.dtype) @ basis[: coordinates.numel()]).view(Z.shape)
        done = end if last else done + step
        error += step_error
        # The basis is orthonormal to rounding, so what is lost is what the flow could have grown beyond the result.
        remaining = float(torch.linalg.vector_norm(coordinates))
        lost = math.exp(min(growth * step, 700.0)) / remaining if remaining else 1.0 / eps
        rounding += eps * lost if norm else 0.0
        amplified = min(amplified * max(lost, 1.0), 1e300)
    for index, time in enumerate(times):
        if time == end:
            out[index] = state
    first, last_size = norms(Z, state)
    if not math.isfinite(last_size):
        return Outcome(out, products, math.nan)
    rounding += unresolved(Z, last_size) if first else 0.0
    if not operator.has_real_spectrum:  # errors may grow where the state does not: P is far from normal
        rounding += eps * amplified
    if error > tol:
        warnings.warn(
            f"krylov: a basis of {size} vectors reaches a relative error of {error:.1e}, not tol = {tol:.1e}; "
            "allow a larger order.",
            ToleranceWarning,
            stacklevel=3,
        )
    return Outcome(out, products, error + rounding)


def arnoldi(
    operator: Propagator,
    state: Tensor,
    norm: float,
    size: int,
    is_enough: Callable[[Tensor], bool] = lambda hessenberg: False,
) -> tuple[Tensor, Tensor, int]:
    """Basis [m + 1, N·H·F] and Hessenberg [m + 1, m] of P from a state; stops early once ``is_enough``."""
    basis = state.new_empty(size + 1, state.numel())
    hessenberg = state.new_zeros(size + 1, size, dtype=torch.float64)
    if norm == 0.0:
        return basis.zero_(), hessenberg[:2, :1], 0
    torch.div(state.flatten(), norm, out=basis[0])
    for m in range(size):
        vector = basis[m + 1]
        operator.add_product_(vector.view(state.shape), basis[m].view(state.shape), keep=0.0)
        for _ in range(2):  # twice is enough (Kahan–Parlett) for orthogonality to rounding
            projection = coordinates_in(basis[: m + 1], vector)
            vector.addmv_(basis[: m + 1].T, projection, alpha=-1.0)
            hessenberg[: m + 1, m] += projection.double()
        (remainder,) = norms(vector)
        hessenberg[m + 1, m] = remainder
        scale = float(hessenberg[: m + 1, m].norm())
        if remainder <= 10 * torch.finfo(state.dtype).eps * scale:  # an invariant subspace: exact
            hessenberg[m + 1, m] = 0.0
            break
        vector /= remainder
        if m % 3 == 2 and is_enough(hessenberg[: m + 2, : m + 1]):
            break
    return basis, hessenberg[: m + 2, : m + 1], m + 1


def _local_error(hessenberg: Tensor, time: float, shift: float) -> tuple[Tensor, float]:
    """Coordinates of e^{-T}e^{TH}e_1 and Saad's error estimate h_{m+1,m} |e_mᵀ T φ₁(TH) e_1|, relative."""
    m = hessenberg.size(1)
    augmented = hessenberg.new_zeros(m + 1, m + 1)
    identity = torch.eye(m, dtype=hessenberg.dtype, device=hessenberg.device)
    augmented[:m, :m] = time * (hessenberg[:m] - shift * identity)
    augmented[0, m] = time  # the last column of the exponential is then T φ₁ e_1
    exponential = torch.linalg.matrix_exp(augmented)
    coordinates = exponential[:m, 0]
    size = float(torch.linalg.vector_norm(coordinates))
    return coordinates, float((hessenberg[m, m - 1] * exponential[m - 1, m]).abs()) / max(size, 1e-300)


def _largest_step(
    hessenberg: Tensor, left: float, time: float, tol: float, shift: float
) -> tuple[float, Tensor, float]:
    """Halve the step until the estimate allows it; the tolerance is shared out over the whole time."""
    step = left
    while True:
        coordinates, error = _local_error(hessenberg, step, shift)
        if error <= max(tol * step / time, 1e-15) or step <= time / MAX_STEPS:
            return step, coordinates, error
        step /= 2
