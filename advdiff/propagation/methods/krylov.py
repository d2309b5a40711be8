r"""The Krylov method: Arnoldi on P from Z, then the exponential of a small Hessenberg matrix.

.. math::
    e^{-\mathbf L T} \mathbf Z \approx e^{-T} \|\mathbf Z\|_F\, \mathbf Q_m\, e^{T \mathbf H_m} \mathbf e_1

Q_m is an orthonormal basis of span{Z, PZ, …, P^{m-1}Z} in the Frobenius inner product: one basis serves all
columns, heads and graphs. Long times are cut into steps so that the basis stays small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.methods.matrix_exponential import exponential_of_array
from advdiff.propagation.solution import Outcome

#: Basis vectors kept before the time step is shortened instead.
MAX_BASIS = 30
#: Steps are not made shorter than the time divided by this.
MAX_STEPS = 1000
#: ln of the largest growth within one step.
MAX_GROWTH = 40.0


def krylov(operator: Propagator, Z: Tensor, times: Sequence[float], tol: float, order: int | None = None) -> Outcome:
    """At most ``order`` (default 30) basis vectors per time step; the steps adapt to ``tol``."""
    out = Z.unsqueeze(0).repeat(len(times), *[1] * Z.dim())
    if not has_values(Z):
        return Outcome(out, 0)
    size, end, shift = largest_basis(operator, Z, order or MAX_BASIS), max(times), operator.shift
    # Beyond, numbers would overflow on the way to a result that does not.
    longest = MAX_GROWTH / max(operator.growth - shift, 1e-30)
    state, done, products, error = Z, 0.0, 0, 0.0
    while done < end:
        (norm,) = operator.segments.norms(state)
        if not math.isfinite(norm):  # NaN or ∞ in or out: no step would ever be short enough
            return Outcome(torch.full_like(out, math.nan), products, math.nan)

        def is_enough(H: Tensor, left: float = min(end - done, longest)) -> bool:
            return _local_error(H, left, shift)[1] <= 0.1 * tol

        basis, hessenberg, used = arnoldi(operator, state, norm, size, is_enough)
        products += used
        step, coordinates, step_error = _largest_step(hessenberg, min(end - done, longest), end, 0.5 * tol, shift)
        for index, time in enumerate(times):
            if done < time < end and time <= done + step:
                inside = _local_error(hessenberg, time - done, shift)[0]
                out[index] = (norm * inside.to(Z.dtype) @ basis[: inside.numel()]).view(Z.shape)
        state = (norm * coordinates.to(Z.dtype) @ basis[: coordinates.numel()]).view(Z.shape)
        remains = float(torch.linalg.vector_norm(coordinates)) if norm else 1.0
        # What earlier steps have lost grows by as much as the flow may, and the state does not.
        error *= math.exp(min((operator.growth - shift) * step, 700.0)) / max(remains, 1e-300)
        error += step_error
        done = end if end - done - step <= 1e-12 * end else done + step
    for index, time in enumerate(times):
        if time == end:
            out[index] = state
    return Outcome(out, products, error)


def largest_basis(operator: Propagator, Z: Tensor, size: int) -> int:
    """At most as many vectors as Z has entries, over all nodes."""
    return min(size, max(operator.segments.all_nodes * Z.shape[1:].numel(), 1))


def arnoldi(
    operator: Propagator,
    state: Tensor,
    norm: float,
    size: int,
    is_enough: Callable[[Tensor], bool] = lambda hessenberg: False,
) -> tuple[Tensor, Tensor, int]:
    """Basis [m + 1, N·H·F] and Hessenberg [m + 1, m], on the host, of P from a state; stops once ``is_enough``."""
    basis, reductions = state.new_empty(size + 1, state.numel()), operator.segments.reductions
    hessenberg = torch.zeros(size + 1, size, dtype=torch.float64)
    if norm == 0.0:
        return basis.zero_(), hessenberg[:2, :1], 0
    torch.div(state.flatten(), norm, out=basis[0])
    for m in range(size):
        vector = basis[m + 1]
        operator.add_product_(vector.view(state.shape), basis[m].view(state.shape), keep=0.0)
        for _ in range(2):  # twice is enough (Kahan–Parlett) for orthogonality to rounding
            projection = reductions.add(basis[: m + 1] @ vector)
            vector.addmv_(basis[: m + 1].T, projection, alpha=-1.0)
            hessenberg[: m + 1, m] += projection.double().cpu()
        (remainder,) = reductions.norms(vector)
        hessenberg[m + 1, m] = remainder
        scale = float(hessenberg[: m + 1, m].norm())
        if remainder <= 10 * torch.finfo(state.dtype).eps * scale:  # an invariant subspace: exact but for rounding
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
    augmented[:m, :m] = time * (hessenberg[:m] - shift * torch.eye(m, dtype=hessenberg.dtype))
    augmented[0, m] = time  # the last column of the exponential is then T φ₁ e_1
    exponential = torch.from_numpy(exponential_of_array(augmented.numpy()))
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
