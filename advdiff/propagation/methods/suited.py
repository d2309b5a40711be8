"""The method that suits an operator: what gradients and estimates are computed by, whatever the caller asked for."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from advdiff.operators.propagator import Propagator
from advdiff.propagation.methods.chebyshev import chebyshev
from advdiff.propagation.methods.taylor import taylor
from advdiff.propagation.solution import Outcome


def flow(
    operator: Propagator, Z: Tensor, times: Sequence[float], tol: float, weights: Sequence[float] | None = None
) -> Outcome:
    """e^{-Lt}Z at the given times, or their weighted sum, in steps where they are long."""
    return (chebyshev if operator.has_real_spectrum else taylor)(operator, Z, times, tol, weights=weights)
