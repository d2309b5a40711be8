"""Integrate ∂Z/∂t = f(Z) from 0 to T: fixed steps of our own, adaptive ones of torchdiffeq."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from advdiff.checks import check_choice, check_nonnegative, has_values

METHODS = ("euler", "rk4", "dopri5")


def check_integration(time: float, steps: int, method: str) -> None:
    """Refuse a negative time, fewer than one step and an unknown method."""
    check_nonnegative("time", time)
    check_choice("method", method, METHODS)
    if steps < 1:
        raise ValueError(f"steps is {steps}; it must be at least 1.")


def integrate(field: Callable[[Tensor], Tensor], Z: Tensor, time: float, steps: int, method: str) -> Tensor:
    """Z(T) of an autonomous equation, differentiable through the steps.

    ``"euler"`` is the scheme by which the paper's Appendix A turns a diffusion equation into layers, with τ = T/steps;
    ``"rk4"`` the classical Runge–Kutta method of order 4. ``"dopri5"`` chooses its own steps, to a relative error of
    1e-4 each (``steps`` has no effect, and the graphs of a batch share them), and needs torchdiffeq.
    """
    if method == "dopri5" and has_values(Z) and Z.numel() and time > 0:
        try:
            from torchdiffeq import odeint
        except ImportError:
            raise ValueError("method='dopri5' needs torchdiffeq: pip install 'advdiff[ode]', or use 'rk4'.") from None
        times = torch.tensor([0.0, time], dtype=Z.dtype, device=Z.device)
        end: Tensor = odeint(lambda t, state: field(state), Z, times, rtol=1e-4, atol=1e-6, method="dopri5")[-1]
        return end
    tau = time / steps
    for _ in range(steps):
        first = field(Z)
        if method == "euler":
            Z = Z + tau * first
            continue
        second = field(Z + 0.5 * tau * first)
        third = field(Z + 0.5 * tau * second)
        fourth = field(Z + tau * third)
        Z = Z + (tau / 6.0) * (first + 2.0 * (second + third) + fourth)
    return Z
