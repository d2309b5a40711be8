r"""The scaled Taylor method: e^{-LT}Z = e^{-T} (Σ_k (hP)^k/k!)^s Z with h = T/s.

P = C + βV has no negative entries, so no term of the series cancels another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.methods.marching import Step, march, ratio
from advdiff.propagation.solution import Outcome

#: ‖hP‖ of one step. Longer steps save products but let terms grow beyond the result.
STEP_NORM = 4.0
MAX_DEGREE = 200


def a_priori_degree(norm: float, tol: float) -> int:
    """Smallest m with Σ_{k>m} norm^k/k! ≤ tol · e^norm."""
    term, tail, degree = 1.0, math.exp(norm) - 1.0, 0
    while tail > tol * math.exp(norm) and degree < MAX_DEGREE:
        degree += 1
        term *= norm / degree
        tail -= term
    return max(degree, 1)


def taylor_step(
    operator: Propagator, order: int | None, share: float, Z: Tensor, times: list[float], tol: float
) -> Step:
    """e^{-L t_i} Z for every t_i from one series; the last time is the longest. ``share``: of one step in ‖hP‖."""
    length = times[-1]
    degree = order or a_priori_degree(share, tol)
    states = torch.stack([Z] * len(times))
    term, spare, grown, truncation = Z.clone(), torch.empty_like(Z), 1.0, None
    for k in range(1, MAX_DEGREE + 1):
        spare = operator.add_product_(spare, term, scale=length / k, keep=0.0)
        term, spare = spare, term
        for state, time in zip(states, times, strict=True):
            state.add_(term, alpha=(time / length) ** k)
        if k < degree:
            continue
        if order is not None or not has_values(Z):
            break
        # ‖P‖ may exceed 1 + β in the symmetric normalisation: go on until the terms are small.
        start, last, *sizes = operator.segments.norms(Z, term, *states)
        truncation = max(ratio(last, size) for size in sizes)
        grown = ratio(start, sizes[-1] * math.exp(-operator.shift * length))
        if not truncation > 0.1 * tol:  # NaN ends it, too
            break
    for state, time in zip(states, times, strict=True):
        state *= math.exp(-operator.shift * time)
    return Step(states, k, truncation, 1.0, grown)


def taylor(
    operator: Propagator,
    Z: Tensor,
    times: Sequence[float],
    tol: float,
    order: int | None = None,
    steps: int | None = None,
    weights: Sequence[float] | None = None,
) -> Outcome:
    """Taylor series of degree ``order`` (default: as many terms as ``tol`` needs) in each of ``steps`` steps."""
    end = max(times)
    steps = steps or max(1, math.ceil(operator.radius * end / STEP_NORM))
    step = partial(taylor_step, operator, order, operator.radius * end / steps)
    return march(operator, Z, times, tol, step, end / steps, weights, halve=False)
