"""The ODE method: integrate ∂Z/∂t = −LZ with torchdiffeq (optional dependency), as a neural ODE would."""

from __future__ import annotations

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.solution import Outcome


def ode(operator: Propagator, Z: Tensor, time: float, tol: float) -> Outcome:
    """Dormand–Prince of order 5 with adaptive steps; products counts right-hand sides."""
    try:
        from torchdiffeq import odeint
    except ImportError:
        raise ValueError("method='ode' needs torchdiffeq: pip install 'advdiff[ode]', or use method='auto'.") from None
    if time == 0.0 or not has_values(Z) or Z.numel() == 0:
        return Outcome(Z.clone(), 0)
    evaluations = 0

    def velocity_field(t: Tensor, state: Tensor) -> Tensor:
        nonlocal evaluations
        evaluations += 1
        return operator.add_product_(state.clone(), state, keep=-1.0)

    times = torch.tensor([0.0, time], dtype=Z.dtype, device=Z.device)
    # The integrator controls the error of each step relative to the state: leave room for their sum.
    local = max(0.01 * tol, 4 * torch.finfo(Z.dtype).eps)
    reductions, entries = operator.segments.reductions, operator.segments.all_nodes * Z[:1].numel()
    scale = float(reductions.highest(Z.abs().max()))

    def root_mean_square(state: Tensor) -> Tensor:
        return reductions.norms(state)[0] / entries**0.5

    options = None if reductions.is_whole else {"norm": root_mean_square}  # by default that of the rows at hand
    try:
        state = odeint(
            velocity_field, Z, times, rtol=local, atol=local * max(scale, 1e-30), method="dopri5", options=options
        )[-1]
    except AssertionError as error:  # torchdiffeq's way to say that its steps shrank to nothing
        if bool(velocity_field(times[0], Z).isfinite().all()):
            raise ValueError("method='ode' cannot keep the tolerance with steps of any length; raise tol.") from error
        state = torch.full_like(Z, float("nan"))
    return Outcome(state, evaluations)
