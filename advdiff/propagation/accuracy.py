r"""What rounding costs e^{-LT}Z, whatever method computes it, and when to say so.

An error made at time s is carried on by e^{-L(T-s)}. With ‖e^{tP}‖ ≤ e^{ωt} it has grown, relative to the result, by
at most

.. math::
    \kappa = \frac{e^{(\omega - 1)T}\, \|\mathbf Z\|}{\|e^{-\mathbf L T}\mathbf Z\|}.

The time T takes ρT products with P, each off by one rounding of its own and by c of the entries of C
(``Propagator.condition``), so that rounding costs eps (2 + ρT(1 + c)κ). Where that bound would miss the tolerance,
κ is measured instead: by what becomes of random perturbations of Z.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.errors import AccuracyWarning, FlowOverflowError
from advdiff.propagation.methods.marching import MAX_STEPS
from advdiff.propagation.methods.suited import flow
from advdiff.propagation.solution import Outcome

#: Random perturbations by which κ is measured; the largest is taken, twice.
PROBES = 4
#: A relative error of so many times the tolerance is said.
ALLOWED = 10.0


def rounding(operator: Propagator, Z: Tensor, states: Tensor, times: Sequence[float], tol: float) -> float:
    """Relative error of the states at the times by rounding alone; NaN if a state is not finite."""
    eps = torch.finfo(Z.dtype).eps
    start, *sizes = operator.norms(Z, *states)
    if not math.isfinite(start + sum(sizes)):
        return math.nan
    if start == 0.0:
        return 0.0
    entries = operator.segments.all_nodes * Z.shape[1:].numel()
    resolved = max(_unresolved(Z.dtype, entries, size) for size in sizes)
    exponent = operator.growth - operator.shift
    kappas = [
        math.exp(min(exponent * t, 700.0)) * start / size if size else 1.0 for t, size in zip(times, sizes, strict=True)
    ]
    worst = max(range(len(times)), key=lambda i: times[i] * kappas[i])
    per_kappa = operator.radius * times[worst] * (1.0 + operator.condition)
    error = eps * (2.0 + per_kappa * kappas[worst])
    is_short = operator.radius * times[worst] <= MAX_STEPS  # else it would take longer than the solver did
    if error > ALLOWED * tol and times[worst] and sizes[worst] and is_short:
        kappa = _measured(operator, Z, times[worst], sizes[worst])
        if math.isfinite(kappa):
            error = min(error, eps * (2.0 + per_kappa * kappa))
    return error + resolved


def _measured(operator: Propagator, Z: Tensor, time: float, size: float) -> float:
    """κ from perturbations of random sign that are as large, row by row, as Z."""
    rows = torch.linalg.vector_norm(Z.double() if Z.device.type != "mps" else Z, dim=2, keepdim=True)
    largest = float(operator.segments.reductions.highest(rows.max()))
    generator = torch.Generator().manual_seed(0)
    signs = torch.randint(0, 2, (*Z.shape[:2], PROBES), generator=generator).to(Z.device, Z.dtype).mul_(2.0).sub_(1.0)
    probes = signs * (rows / largest).to(Z.dtype)
    grown = flow(operator, probes, [time], 0.1).value[0]
    return 2.0 * max(operator.segments.norms(*grown.unbind(2))) * largest / size


def _unresolved(dtype: torch.dtype, entries: int, size: float) -> float:
    """The relative error of a state of this size where its entries are next to the least number; 1 where all are 0."""
    least = torch.finfo(dtype).tiny * torch.finfo(dtype).eps
    return min(1.0, least * math.sqrt(entries) / size) if size else 1.0


def judge(operator: Propagator, Z: Tensor, what: str, error: float, times: Sequence[float], tol: float) -> None:
    """Overflow and lost digits by name; NaN in, NaN out is none of its business."""
    if math.isnan(error):
        P_Z = operator.add_product_(torch.empty_like(Z), Z, keep=0.0)
        if math.isfinite(sum(operator.segments.norms(Z, P_Z))):
            raise FlowOverflowError(
                f"{what} exceeds the largest number of {Z.dtype} at T = {max(times):g} (e^{{-LT}} grows up to "
                f"e^{{{operator.growth - operator.shift:.3g} T}}): choose a shorter time or a smaller β, or compute in "
                "float64."
            )
    if error > ALLOWED * tol:
        wider = "" if Z.dtype == torch.float64 else "compute in float64, "
        warnings.warn(
            f"{what} at T = {max(times):g} in {Z.dtype} may have a relative error of {error:.1e}, not "
            f"tol = {tol:.1e}: {wider}choose another method (auto) or a shorter time, or raise tol.",
            AccuracyWarning,
            stacklevel=5,
        )


def judged(
    operator: Propagator,
    Z: Tensor,
    times: list[float],
    tol: float,
    solve: Callable[..., Outcome],
    what: str = "e^{-LT}Z",
) -> Outcome:
    """What the method found, with the error that is to be expected of it; overflow and lost digits by name."""
    outcome = solve(operator, Z, times)
    if outcome.estimated_error is None or not has_values(Z) or not Z.numel():
        return outcome
    ends = times if len(outcome.value) == len(times) else [max(times)]  # one sum of many states
    error = outcome.estimated_error + rounding(operator, Z, outcome.value, ends, tol)
    judge(operator, Z, what, error, times, tol)
    return outcome._replace(estimated_error=error)
