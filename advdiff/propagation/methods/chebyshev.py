r"""The Chebyshev method, for one or several times at once.

.. math::
    e^{-\mathbf L T} \mathbf Z = e^{-T} \sum_k (2 - \delta_{k0})\, I_k(\rho T)\, T_k(\mathbf P/\rho)\, \mathbf Z,
    \qquad \rho = 1 + \beta \ (\beta \text{ without a coupling})

with I_k the modified Bessel functions. The polynomials T_k(P/ρ)Z do not depend on the time, so further
times cost one addition per term and no product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import ive
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.solution import Outcome

MAX_DEGREE = 4000
MAX_STEPS = 64


def coefficients(radius: float, times: Sequence[float], terms: int) -> np.ndarray:
    """c[k, i] with e^{-t_i} e^{t_i x} = Σ_k c[k, i] T_k(x/ρ); ``ive`` = I_k(z) e^{-z} does not overflow."""
    t = np.asarray(times, dtype=float)
    values = ive(np.arange(terms)[:, None], radius * t) * np.exp((radius - 1.0) * t)
    values[1:] *= 2.0
    return values


def a_priori_degree(radius: float, time: float, tol: float) -> int:
    r"""Smallest m with Σ_{k>m} \|c_k\| ≤ tol · e^{(ρ-1)T}, for a spectrum inside [-ρ, ρ]."""
    terms = 20 + math.ceil(2 * radius * time)
    while True:
        size = coefficients(radius, [time], terms)[:, 0] * math.exp(-(radius - 1.0) * time)
        tails = np.cumsum(size[::-1])[::-1]  # tails[m + 1] = Σ_{k>m}
        small = np.flatnonzero(tails <= tol)
        if small.size or terms > MAX_DEGREE:
            return max(int(small[0]) - 1 if small.size else MAX_DEGREE, 1)
        terms *= 2


def chebyshev_states(
    operator: Propagator, Z: Tensor, times: Sequence[float], tol: float, order: int | None = None
) -> tuple[Tensor, int, float | None]:
    """e^{-L t_i} Z for every t_i, stacked [times, N, H, F]; the number of products; the estimated error."""
    radius = max(operator.radius, 1e-3)  # P = 0 has a spectrum too
    degree = order or a_priori_degree(radius, max(times), 0.1 * tol)
    weights = coefficients(radius, times, 2 * degree + 64)
    states = torch.stack([Z * float(w) for w in weights[0]])
    older = Z.clone()
    newer = operator.add_product_(torch.empty_like(Z), Z, scale=1.0 / radius, keep=0.0)
    error = None
    for k in range(1, MAX_DEGREE):
        if k == len(weights):
            weights = coefficients(radius, times, 2 * k)
        for state, weight in zip(states, weights[k], strict=True):
            state.add_(newer, alpha=float(weight))
        if k >= degree and (order is not None or not has_values(Z)):
            break
        if k > degree:
            # A posteriori: the spectrum may leave [-ρ, ρ]; then the terms fall later. Two terms in a row must be
            # small: on a star even and odd ones differ by a factor of √leaves.
            *sizes, before, now = operator.segments.reductions.norms(*states, older, newer).tolist()
            error = max(
                float(max(abs(w) * before, abs(v) * now)) / (size or 1.0)
                for w, v, size in zip(weights[k - 1], weights[k], sizes, strict=True)
            )
            if error <= 0.1 * tol or not math.isfinite(sum(sizes) + now):
                break
        older = operator.add_product_(older, newer, scale=2.0 / radius, keep=-1.0)
        older, newer = newer, older
    return states, k, error


def chebyshev(operator: Propagator, Z: Tensor, time: float, tol: float, order: int | None = None) -> Outcome:
    """Chebyshev expansion of degree ``order`` (default: as many terms as ``tol`` needs).

    Terms of size e^{(ρ-1)T}‖Z‖ cancel where the result is smaller; when rounding would then spoil ``tol``, the time is
    cut into steps, in each of which less cancels.
    """
    eps, steps = torch.finfo(Z.dtype).eps, 1
    while True:
        state, products, error, rounding = Z, 0, 0.0, 0.0
        for _ in range(steps):
            before = state
            states, used, step_error = chebyshev_states(operator, before, [time / steps], tol / steps, order)
            state, products = states[0], products + used
            if step_error is None:
                continue
            size, largest = operator.segments.reductions.norms(state, before).tolist()
            largest *= math.exp((max(operator.radius, 1.0) - 1.0) * time / steps)
            error, rounding = error + step_error, rounding + (eps * largest / size if size else 0.0)
        is_enough = not rounding > max(0.5 * tol, 50 * eps) or steps >= MAX_STEPS  # NaN is enough, too
        if order is not None or not has_values(Z) or is_enough:
            return Outcome(state, products, None if order is not None else error + rounding)
        steps *= 2
