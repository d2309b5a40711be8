r"""The gradient of e^{-LT}Z, whatever method computed it, with memory that does not grow with its iterations.

Let z(s) = e^{-Ls}Z and λ(s) = e^{-Lᵀ(T-s)}G for the incoming gradient G. Then

.. math::
    \frac{\partial}{\partial \mathbf Z} = \boldsymbol\lambda(0), \qquad
    \frac{\partial}{\partial \mathbf P} = \int_0^T \boldsymbol\lambda(s)\, \mathbf z(s)^\top\, ds .

The integrand is entire in s, so a few Gauss–Legendre points per panel give it to rounding; the states at all
points of a panel come from one Chebyshev recurrence. No N×N matrix appears: the integral is only ever multiplied by the
thin factors of P.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from advdiff.propagation.chebyshev import chebyshev_states
from advdiff.propagation.record import Solution
from advdiff.propagator import Propagator

#: Panels are at most this long in units of 1/(1 + β).
PANEL = 2.0


def gauss_points(tol: float) -> int:
    """Points q with the error a^{2q} / ((2q)! 2^{2q-1}) of a panel below ``tol``, for a = 1.5 PANEL."""
    for q in range(2, 16):
        if (1.5 * PANEL) ** (2 * q) / (math.factorial(2 * q) * 2.0 ** (2 * q - 1)) <= 0.1 * tol:
            return q
    return 16


class ExponentialAction(torch.autograd.Function):
    """Y = e^{-LT}Z by any method; ``solve`` runs it on constants and keeps its own record."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx: Any,
        left: Tensor | None,
        right: Tensor | None,
        beta: Tensor | None,
        Z: Tensor,
        operator: Propagator,
        time: float,
        tol: float,
        solve: Callable[[Propagator, Tensor], Solution],
    ):
        ctx.operator, ctx.time, ctx.tol = operator.detach(), time, tol
        ctx.beta_shape = None if beta is None else beta.shape
        Z = Z.contiguous()
        ctx.save_for_backward(Z)
        return solve(ctx.operator, Z).value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor):  # type: ignore[no-untyped-def]
        (Z,) = ctx.saved_tensors
        operator, time, tol = ctx.operator, ctx.time, ctx.tol
        adjoint, needs = grad.contiguous(), ctx.needs_input_grad[:3]
        if time == 0.0 or not any(needs):  # no gradient to the operator is the same as a zero one
            if time:
                adjoint = chebyshev_states(operator.T, adjoint, [time], tol)[0][0]
            return (None, None, None, adjoint, None, None, None, None)
        panels = max(1, math.ceil(operator.radius * time / PANEL))
        length = time / panels
        points, weights = np.polynomial.legendre.leggauss(gauss_points(tol))
        offsets = [length * (1.0 + p) / 2.0 for p in points]
        totals: list[Tensor | None] = [None, None, None]
        for panel in reversed(range(panels)):
            start = Z if panel == 0 else chebyshev_states(operator, Z, [panel * length], tol)[0][0]
            states = chebyshev_states(operator, start, offsets, tol)[0]
            adjoints = chebyshev_states(operator.T, adjoint, [length - s for s in offsets] + [length], tol)[0]
            for state, costate, weight in zip(states, adjoints, weights, strict=False):
                parts = operator.gradients(state, costate.mul_(length * float(weight) / 2.0), needs)
                totals = [
                    p if t is None else t.add_(p) if p is not None else t for t, p in zip(totals, parts, strict=True)
                ]
            adjoint = adjoints[-1]
        if totals[2] is not None:
            totals[2] = totals[2].reshape(ctx.beta_shape)
        return (*totals, adjoint, None, None, None, None)
