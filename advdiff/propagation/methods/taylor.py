r"""The scaled Taylor method: e^{-LT}Z = e^{-T} (Σ_k (hP)^k/k!)^s Z with h = T/s.

P = C + βV has no negative entries, so no term of the series cancels another.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
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


def taylor(
    operator: Propagator,
    Z: Tensor,
    time: float,
    tol: float,
    order: int | None = None,
    steps: int | None = None,
) -> Outcome:
    """Taylor series of degree ``order`` (default: as many terms as ``tol`` needs) in each of ``steps`` steps."""
    norm = operator.radius * time
    steps = steps or max(1, math.ceil(norm / STEP_NORM))
    length = time / steps
    degree = order or a_priori_degree(norm / steps, tol / steps)
    state, products, error = Z.clone(), 0, 0.0
    for _ in range(steps):
        term, spare = state.clone(), torch.empty_like(state)
        size = last = 0.0
        for k in range(1, MAX_DEGREE + 1):
            spare = operator.add_product_(spare, term, scale=length / k, keep=0.0)
            term, spare = spare, term
            state += term
            products += 1
            if k < degree:
                continue
            if order is not None or not has_values(Z):
                break
            # ‖P‖ may exceed 1 + β in the symmetric normalisation: go on until the terms are small.
            size, last = operator.segments.reductions.norms(state, term).tolist()
            if not last > 0.1 * tol * size / steps:  # NaN ends it, too
                break
        error += last / size if size else 0.0
        state *= math.exp(-length)
    return Outcome(state, products, error if order is None else None)
