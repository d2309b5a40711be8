"""The ODE method: integrate ∂Z/∂t = −LZ with torchdiffeq (optional dependency), as a neural ODE would."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.solution import Outcome


def ode(operator: Propagator, Z: Tensor, times: Sequence[float], tol: float) -> Outcome:
    """Dormand–Prince of order 5 with adaptive steps; products counts right-hand sides."""
    try:
        from torchdiffeq import odeint
    except ImportError:
        raise ValueError("method='ode' needs torchdiffeq: pip install 'advdiff[ode]', or use method='auto'.") from None
    if max(times) == 0.0 or not has_values(Z) or Z.numel() == 0:
        return Outcome(Z.unsqueeze(0).repeat(len(times), *[1] * Z.dim()), 0, 0.0)
    evaluations = 0

    def velocity_field(t: Tensor, state: Tensor) -> Tensor:
        nonlocal evaluations
        evaluations += 1
        return operator.add_product_(state.clone(), state, keep=-operator.shift)

    distinct = sorted({0.0, *times})
    # The integrator controls the error of each step relative to the state: leave room for their sum.
    eps = torch.finfo(Z.dtype).eps
    local = max(0.01 * tol, 4 * eps)
    reductions, entries = operator.segments.reductions, operator.segments.all_nodes * Z[:1].numel()
    scale = float(reductions.highest(Z.abs().max()))

    def root_mean_square(state: Tensor) -> Tensor:
        return state.new_tensor(reductions.norms(state)[0] / entries**0.5)

    options = None if reductions.is_whole else {"norm": root_mean_square}  # by default that of the rows at hand
    absolute = local * max(scale, 1e-30)
    try:
        grid = torch.tensor(distinct, dtype=torch.float64 if Z.device.type != "mps" else Z.dtype, device=Z.device)
        states = odeint(velocity_field, Z, grid, rtol=local, atol=absolute, method="dopri5", options=options)
    except AssertionError as failure:  # torchdiffeq's way to say that its steps shrank to nothing
        room = math.log(torch.finfo(Z.dtype).max) - math.log(max(scale, 1e-30))
        overflows = (operator.radius - operator.shift) * max(times) > room
        if math.isfinite(reductions.norms(velocity_field(Z, Z))[0]) and not overflows:
            raise ValueError("method='ode' cannot keep the tolerance with steps of any length; raise tol.") from failure
        states = torch.full((len(distinct), *Z.shape), float("nan"), dtype=Z.dtype, device=Z.device)
    value = states[[distinct.index(time) for time in times]]
    # Each of the steps, of six evaluations, adds its share, part of it relative to Z rather than to the result.
    smallest = min(operator.segments.norms(*value))
    of_steps = evaluations / 6 * (0.1 * local + eps)
    error = of_steps * (1.0 + operator.segments.norms(Z)[0] / smallest) if smallest else 1.0
    return Outcome(value, evaluations, error if math.isfinite(smallest) else math.nan)
