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
from functools import partial

import numpy as np
import torch
from scipy.special import ive
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.methods.marching import Step, march, ratio
from advdiff.propagation.solution import Outcome

MAX_DEGREE = 4000
#: The logarithm of the largest growth within one step; beyond it intermediate numbers would leave float32.
MAX_GROWTH = 40.0
#: The longest step times ρ where the spectrum may be complex, since T_k(P/ρ) grows with k there.
MAX_COMPLEX = 16.0
#: ρ times the longest step where many times are added up.
MAX_MANY = 64.0


def coefficients(radius: float, times: Sequence[float], terms: int, shift: float = 1.0) -> np.ndarray:
    """c[k, i] with e^{-t_i} e^{t_i x} = Σ_k c[k, i] T_k(x/ρ); ``ive`` = I_k(z) e^{-z} does not overflow."""
    t = np.asarray(times, dtype=float)
    values = ive(np.arange(terms)[:, None], radius * t) * np.exp((radius - shift) * t)
    values[1:] *= 2.0
    return values


def a_priori_degree(radius: float, time: float, tol: float) -> int:
    r"""Smallest m with Σ_{k>m} \|c_k\| ≤ tol · e^{(ρ-1)T}, for a spectrum inside [-ρ, ρ]."""
    terms = 20 + math.ceil(2 * radius * time)
    while True:
        tails = np.cumsum(coefficients(radius, [time], terms, radius)[::-1, 0])[::-1]  # tails[m + 1] = Σ_{k>m}
        small = np.flatnonzero(tails <= tol)
        if small.size or terms > MAX_DEGREE:
            return max(int(small[0]) - 1 if small.size else MAX_DEGREE, 1)
        terms *= 2


def chebyshev_step(operator: Propagator, order: int | None, Z: Tensor, times: list[float], tol: float) -> Step:
    """e^{-L t_i} Z for every t_i from one recurrence; the last time is the longest."""
    radius = max(operator.radius, 1e-3)  # P = 0 has a spectrum too
    degree = order or a_priori_degree(radius, times[-1], 0.1 * tol)
    weights = coefficients(radius, times, 2 * degree + 64, operator.shift)
    states = torch.stack([Z * float(w) for w in weights[0]])
    older = Z.clone()
    newer = operator.add_product_(torch.empty_like(Z), Z, scale=1.0 / radius, keep=0.0)
    truncation, cancellation, grown = None, 1.0, 1.0
    for k in range(1, MAX_DEGREE):
        if k == len(weights):
            weights = coefficients(radius, times, 2 * k, operator.shift)
        for state, weight in zip(states, weights[k], strict=True):
            state.add_(newer, alpha=float(weight))
        if k >= degree and (order is not None or not has_values(Z)):
            break
        if k > degree:
            # A posteriori: the spectrum may leave [-ρ, ρ]; then the terms fall later. Two terms in a row must be
            # small: on a star even and odd ones differ by a factor of √leaves.
            start, before, now, *sizes = operator.segments.norms(Z, older, newer, *states)
            truncation = max(
                ratio(max(abs(w) * before, abs(v) * now), size)
                for w, v, size in zip(weights[k - 1], weights[k], sizes, strict=True)
            )
            if not math.isfinite(sum(sizes) + before + now):
                return Step(states, k, math.inf)
            if start and min(sizes) == 0.0:  # less than the least number
                return Step(states, k, 1.0)
            if truncation <= 0.1 * tol:
                # Terms have the size c_k γ^k ‖Z‖, with γ > 1 where the spectrum is complex.
                growth = max(1.0, ratio(max(before, now), start)) ** (1.0 / k)
                terms = (weights[: k + 1] * growth ** np.arange(k + 1.0)[:, None]).sum(0)
                cancellation = max(ratio(float(a) * start, size) for a, size in zip(terms, sizes, strict=True))
                grown = ratio(start, sizes[-1])
                break
        older = operator.add_product_(older, newer, scale=2.0 / radius, keep=-1.0)
        older, newer = newer, older
    else:
        truncation = None if truncation is None else math.inf  # the terms never became small
    return Step(states, k, truncation, cancellation, grown)


def chebyshev(
    operator: Propagator,
    Z: Tensor,
    times: Sequence[float],
    tol: float,
    order: int | None = None,
    weights: Sequence[float] | None = None,
) -> Outcome:
    """Chebyshev expansion of degree ``order`` (default: as many terms as ``tol`` needs).

    Terms of size e^{(ρ-1)T}‖Z‖ cancel where the result is smaller; when rounding would then spoil ``tol``, the time is
    cut into steps, in each of which less cancels.
    """
    radius, growth = max(operator.radius, 1e-3), operator.radius - operator.shift
    longest = math.inf
    if order is None:
        longest = min(
            MAX_GROWTH / growth if growth > 0.0 else math.inf,
            math.inf if operator.has_real_spectrum else MAX_COMPLEX / radius,
            math.inf if weights is None else MAX_MANY / radius,
        )
    step = partial(chebyshev_step, operator, order)
    return march(operator, Z, times, tol, step, longest, weights, halve=order is None)
