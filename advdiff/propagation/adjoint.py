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

from advdiff.operators.plain import plain_product, replayed_gradient, with_tensors
from advdiff.operators.propagator import Propagator
from advdiff.propagation.methods.chebyshev import chebyshev_states
from advdiff.propagation.solution import Outcome

#: Panels are at most this long in units of 1/(1 + β).
PANEL = 2.0


def gauss_points(tol: float) -> int:
    """Points q with the error a^{2q} / ((2q)! 2^{2q-1}) of a panel below ``tol``, for a = 1.5 PANEL."""
    for q in range(2, 16):
        if (1.5 * PANEL) ** (2 * q) / (math.factorial(2 * q) * 2.0 ** (2 * q - 1)) <= 0.1 * tol:
            return q
    return 16


class ExponentialAction(torch.autograd.Function):
    """Y = e^{-LT}Z, which some method has computed on constants, differentiable in U, W, β, V, Z and T."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx: Any,
        left: Tensor | None,
        right: Tensor | None,
        beta: Tensor | None,
        entries: Tensor | None,
        Z: Tensor,
        learned_time: Tensor | None,
        outcome: Outcome,
        operator: Propagator,
        time: float,
        tol: float,
        solve: Callable[[Propagator, Tensor, float], Outcome],
    ):
        ctx.operator, ctx.time, ctx.tol, ctx.solve = operator, time, tol, solve
        ctx.beta_shape, ctx.time_shape = (None if t is None else t.shape for t in (beta, learned_time))
        # The value itself is needed for the gradient of the time only.
        value = [outcome.value] * ctx.needs_input_grad[5]
        ctx.inputs = left, right, beta, entries  # the operator holds them anyway
        ctx.save_for_backward(learned_time, Z, *value)
        return outcome.value

    @staticmethod
    def backward(ctx: Any, grad: Tensor):  # type: ignore[no-untyped-def]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad)
        _, Z, *value = ctx.saved_tensors
        Z = Z.contiguous()
        operator, time, tol = ctx.operator, ctx.time, ctx.tol
        adjoint, needs, grad_time = grad.contiguous(), ctx.needs_input_grad[:4], None
        if value:  # ∂Y/∂T = −LY
            Y = value[0].contiguous()
            rate = operator.add_product_(Y.clone(), Y, keep=-1.0)
            grad_time = (adjoint * rate).sum().view(ctx.time_shape)
        if time == 0.0 or not any(needs):  # no gradient to the operator is the same as a zero one
            if time:
                adjoint = chebyshev_states(operator.T, adjoint, [time], tol)[0][0]
            return (None, None, None, None, adjoint, grad_time, None, None, None, None, None)
        panels = max(1, math.ceil(operator.radius * time / PANEL))
        length = time / panels
        points, weights = np.polynomial.legendre.leggauss(gauss_points(tol))
        offsets = [length * (1.0 + p) / 2.0 for p in points]
        gradients = operator.gradients(needs)
        for panel in reversed(range(panels)):
            start = Z if panel == 0 else chebyshev_states(operator, Z, [panel * length], tol)[0][0]
            states = chebyshev_states(operator, start, offsets, tol)[0]
            adjoints = chebyshev_states(operator.T, adjoint, [length - s for s in offsets] + [length], tol)[0]
            for state, costate, weight in zip(states, adjoints, weights, strict=False):
                gradients.add(state, costate.mul_(length * float(weight) / 2.0))
            adjoint = adjoints[-1]
        return (*gradients.tensors(ctx.beta_shape), adjoint, grad_time, None, None, None, None, None)


def _differentiable_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradient for those who differentiate it again: the same integral over differentiable states and adjoints."""
    tensors, (learned, Z) = ctx.inputs, ctx.saved_tensors[:2]
    constant, needs = ctx.operator, ctx.needs_input_grad
    P = with_tensors(constant, *tensors)
    time = ctx.time if learned is None else learned

    def flow(P: Propagator, constant: Propagator, Z: Tensor, share: float) -> Tensor:
        """e^{-LT·share}Z."""
        end = ctx.time * share
        with torch.no_grad():
            outcome = ctx.solve(constant, Z.detach().contiguous(), end)
        part = None if learned is None else learned * share
        Y: Tensor = ExponentialAction.apply(*P.tensors, Z, part, outcome, constant, end, ctx.tol, ctx.solve)
        return Y

    def product(*tensors: Any) -> list[Tensor]:
        return [plain_product(with_tensors(constant, *tensors[:4]), tensors[4])]

    of_operator: list[Tensor | None] = [None] * 4
    if ctx.time and any(needs[:4]):
        panels = max(1, math.ceil(constant.radius * ctx.time / PANEL))
        points, weights = np.polynomial.legendre.leggauss(gauss_points(ctx.tol))
        for share, weight in (
            ((p + (1.0 + x) / 2.0) / panels, w / 2.0 / panels)
            for p in range(panels)
            for x, w in zip(points.tolist(), weights.tolist(), strict=True)
        ):
            state, adjoint = flow(P, constant, Z, share), flow(P.T, constant.T, grad, 1.0 - share)
            part = replayed_gradient(product, (*tensors, state), [adjoint * (weight * time)], (*needs[:4], False))[:4]
            of_operator = [
                b if a is None else a if b is None else a + b for a, b in zip(of_operator, part, strict=True)
            ]
    grad_time = None
    if needs[5]:
        Y = flow(P, constant, Z, 1.0)
        grad_time = (grad * (plain_product(P, Y) - Y)).sum().view(ctx.time_shape)
    return (*of_operator, flow(P.T, constant.T, grad, 1.0), grad_time, None, None, None, None, None)
