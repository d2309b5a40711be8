r"""The gradient of e^{-LT}Z, whatever method computed it, with memory that does not grow with its iterations.

Let z(s) = e^{-Ls}Z and λ(s) = Σ_i e^{-Lᵀ(T_i-s)}G_i, over the times T_i ≥ s with incoming gradients G_i. Then

.. math::
    \frac{\partial}{\partial \mathbf Z} = \boldsymbol\lambda(0), \qquad
    \frac{\partial}{\partial \mathbf P} = \int_0^T \boldsymbol\lambda(s)\, \mathbf z(s)^\top\, ds, \qquad
    \frac{\partial}{\partial T_i} = -\langle \mathbf G_i, \mathbf L \mathbf z(T_i) \rangle .

The integrand is entire in s, so a few Gauss–Legendre points per panel give it to rounding; the states at all
points of a panel come from one recurrence. No N×N matrix appears: the integral is only ever multiplied by the
thin factors of P. Time runs forward for z and backward for λ: the states at the ends of the panels are computed
anew from a few that are kept, eight for each level of panels within panels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.gradients import Gradients
from advdiff.operators.plain import plain_product, replayed_gradient, with_tensors
from advdiff.operators.precision import full_precision
from advdiff.operators.propagator import Propagator
from advdiff.propagation.accuracy import judge
from advdiff.propagation.methods.marching import check_steps
from advdiff.propagation.methods.suited import flow
from advdiff.propagation.solution import Outcome

#: Panels are at most this long in units of 1/(1 + β).
PANEL = 2.0
#: States that are kept of each level of panels.
KEPT = 8


def gauss_points(tol: float) -> int:
    """Points q with the error a^{2q} / ((2q)! 2^{2q-1}) of a panel below ``tol``, for a = 1.5 PANEL."""
    for q in range(2, 16):
        if (1.5 * PANEL) ** (2 * q) / (math.factorial(2 * q) * 2.0 ** (2 * q - 1)) <= 0.1 * tol:
            return q
    return 16


class Sweep:
    """The integral of λ zᵀ from the last time back to 0, panel by panel; ``error`` adds up what its steps leave out."""

    def __init__(self, operator: Propagator, gradients: Gradients, times: Sequence[float], grad: Tensor, tol: float):
        self.operator, self.gradients, self.tol, self.error = operator, gradients, tol, 0.0
        self.transposed = operator.T
        points, self.weights = np.polynomial.legendre.leggauss(gauss_points(tol))
        self.points = (1.0 + points) / 2.0
        self.arrivals: dict[int, Tensor] = {}
        self.grid = [0.0]
        check_steps(operator.radius * max(times) / PANEL, max(times))
        for index in sorted(range(len(times)), key=lambda i: times[i]):
            gap = times[index] - self.grid[-1]
            if gap > 0.0:
                panels = max(1, math.ceil(operator.radius * gap / PANEL))
                self.grid += [self.grid[-1] + gap * (i + 1) / panels for i in range(panels)]
            here = len(self.grid) - 1
            self.arrivals[here] = grad[index] + self.arrivals[here] if here in self.arrivals else grad[index]
        self.adjoint = self.arrivals[len(self.grid) - 1].contiguous()

    def run(self, first: int, last: int, state: Tensor) -> None:
        """Panels first … last − 1, from the state at the beginning of the first."""
        grid = self.grid
        if last - first > 1:
            parts = min(KEPT, last - first)
            cuts = [first + (last - first) * i // parts for i in range(parts + 1)]
            states = [state, *self._flow(self.operator, state, [grid[i] - grid[first] for i in cuts[1:-1]])]
            for begin, end, known in zip(cuts[-2::-1], cuts[:0:-1], states[::-1], strict=True):
                self.run(begin, end, known)
            return
        length = grid[last] - grid[first]
        offsets = [length * float(p) for p in self.points]
        if last != len(grid) - 1 and last in self.arrivals:
            self.adjoint = self.adjoint + self.arrivals[last]
        states = self._flow(self.operator, state, offsets)
        costates = self._flow(self.transposed, self.adjoint, [length - s for s in offsets] + [length])
        for known, costate, weight in zip(states, costates, self.weights, strict=False):
            self.gradients.add(known, costate.mul_(length * float(weight) / 2.0))
        self.adjoint = costates[-1]

    def _flow(self, operator: Propagator, Z: Tensor, times: list[float]) -> Any:
        """States, with the share of the tolerance that such a part of the time has."""
        outcome = flow(operator, Z, times, self.tol * max(times) / self.grid[-1])
        self.error += outcome.estimated_error or 0.0
        return outcome.value


class ExponentialAction(torch.autograd.Function):
    """Y_i = e^{-LT_i}Z, which some method has computed on constants, differentiable in U, W, β, V, Z and T.

    With ``weights`` the value is Σ_i w_i Y_i, and constant in T.
    """

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx: Any,
        left: Tensor | None,
        right: Tensor | None,
        beta: Tensor | None,
        entries: Tensor | None,
        Z: Tensor,
        learned: Tensor | None,
        outcome: Outcome,
        operator: Propagator,
        times: Sequence[float],
        weights: Sequence[float] | None,
        tol: float,
        solve: Callable[[Propagator, Tensor, Sequence[float]], Outcome],
    ):
        ctx.operator, ctx.times, ctx.weights, ctx.tol, ctx.solve = operator, times, weights, tol, solve
        ctx.error = outcome.estimated_error or 0.0
        ctx.beta_shape, ctx.time_shape = (None if t is None else t.shape for t in (beta, learned))
        # The value itself is needed for the gradient of the time only.
        value = [outcome.value] * ctx.needs_input_grad[5]
        ctx.inputs = left, right, beta, entries  # the operator holds them anyway
        ctx.save_for_backward(learned, Z, *value)
        return outcome.value

    @staticmethod
    @full_precision
    def backward(ctx: Any, grad: Tensor):  # type: ignore[no-untyped-def]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad)
        _, Z, *value = ctx.saved_tensors
        Z = Z.contiguous()
        operator, times, tol = ctx.operator, ctx.times, ctx.tol
        needs, grad_times, end, lost = ctx.needs_input_grad[:4], None, max(times), 0.0
        if value:  # ∂Y/∂T = −LY
            Y = value[0].contiguous()
            rates = [operator.add_product_(state.clone(), state, keep=-operator.shift) for state in Y]
            parts = [(G * rate).sum() for G, rate in zip(grad, rates, strict=True)]
            grad_times = torch.stack(parts).view(ctx.time_shape)
            lost = _lost_in_rates(operator, Y, rates, times, tol) if has_values(Z) else 0.0
        if ctx.weights is not None:
            grad = torch.stack([grad[0] * w for w in ctx.weights])
        if end == 0.0:
            return (None, None, None, None, grad.sum(0), grad_times, *[None] * 6)
        gradients = operator.gradients(needs)
        if any(needs) or len(times) > 1:
            sweep = Sweep(operator, gradients, times, grad, tol)
            sweep.run(0, len(sweep.grid) - 1, Z)
            adjoint, error = sweep.adjoint, sweep.error
            if 0 in sweep.arrivals:
                adjoint = adjoint + sweep.arrivals[0]
        else:  # no gradient to the operator is the same as a zero one
            outcome = flow(operator.T, grad[0].contiguous(), times, tol)
            adjoint, error = outcome.value[0], outcome.estimated_error or 0.0
        found = gradients.tensors(ctx.beta_shape)
        if has_values(Z):
            error = max(error + ctx.error, lost)
            asked = max(tol, ctx.solve.keywords["tol"])  # ``dense`` computes with more digits than are asked for
            _judge(operator, Z, grad, [adjoint, *(t for t in found if t is not None)], error, times, asked)
        return (*found, adjoint, grad_times, *[None] * 6)


def _lost_in_rates(operator: Propagator, Y: Tensor, rates: list[Tensor], times: Sequence[float], tol: float) -> float:
    """Relative error of −LY, whose roundings have the size of Y; a rate below a hundredth of Y/T is as good as 0."""
    norms, worst = operator.segments.norms(*Y, *rates), 0.0
    absolute = tol + 2.0 * torch.finfo(Y.dtype).eps * (abs(operator.shift) + operator.radius)
    for time, size, rate in zip(times, norms, norms[len(times) :], strict=False):
        if time and size:
            worst = max(worst, absolute / max(rate / size, 0.01 / time))
    return worst


def _judge(
    operator: Propagator, Z: Tensor, grad: Tensor, found: list[Tensor], error: float, times: Sequence[float], tol: float
) -> None:
    """Say what the gradient has lost, relative to its size for a G of this size that does not cancel in it."""
    *sizes, of_Z, of_G = operator.segments.norms(*(t.detach() for t in found), Z, grad)
    if not math.isfinite(of_Z + of_G):  # NaN in, NaN out
        return
    if not math.isfinite(sum(sizes)):
        error = math.nan
    # The adjoint takes as many products as the flow; the attention passes its own roundings on to query and key.
    products, condition = operator.radius * max(times), operator.condition
    error += torch.finfo(Z.dtype).eps * (2.0 + products * (1.0 + condition) + condition**2)
    judge(operator, Z, "the gradient of e^{-LT}Z", error, times, tol)


def _differentiable_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradient for those who differentiate it again: the same integral over differentiable states and adjoints."""
    tensors, (learned, Z) = ctx.inputs, ctx.saved_tensors[:2]
    constant, needs = ctx.operator, ctx.needs_input_grad
    P = with_tensors(constant, *tensors)
    learned_times = [None] * len(ctx.times) if learned is None else list(learned.flatten().unbind())

    def carried(P: Propagator, constant: Propagator, Z: Tensor, end: float, learned: Tensor | None) -> Tensor:
        """e^{-L·end}Z."""
        with torch.no_grad():
            outcome = ctx.solve(constant, Z.detach().contiguous(), [end])
        part = None if learned is None else learned.view(1)
        Y: Tensor = ExponentialAction.apply(*P.tensors, Z, part, outcome, constant, [end], None, ctx.tol, ctx.solve)
        return Y[0]

    def product(*tensors: Any) -> list[Tensor]:
        return [plain_product(with_tensors(constant, *tensors[:4]), tensors[4])]

    of_operator: list[Tensor | None] = [None] * 4
    of_Z, of_times = torch.zeros_like(Z), []
    grads = grad if ctx.weights is None else [grad[0] * w for w in ctx.weights]
    for end, time, G in zip(ctx.times, learned_times, grads, strict=True):
        panels = max(1, math.ceil(constant.radius * end / PANEL))
        points, weights = np.polynomial.legendre.leggauss(gauss_points(ctx.tol))
        for share, weight in (
            ((p + (1.0 + x) / 2.0) / panels, w / 2.0 / panels)
            for p in range(panels)
            for x, w in zip(points.tolist(), weights.tolist(), strict=True)
            if end and any(needs[:4])
        ):
            done, left = (None if time is None else time * part for part in (share, 1.0 - share))
            state = carried(P, constant, Z, end * share, done)
            costate = carried(P.T, constant.T, G, end * (1.0 - share), left)
            scaled = costate * (weight * (end if time is None else time))
            part = replayed_gradient(product, (*tensors, state), [scaled], (*needs[:4], False))[:4]
            of_operator = [
                b if a is None else a if b is None else a + b for a, b in zip(of_operator, part, strict=True)
            ]
        of_Z = of_Z + carried(P.T, constant.T, G, end, time)
        if needs[5]:
            Y = carried(P, constant, Z, end, time)
            of_times.append((G * (plain_product(P, Y) - constant.shift * Y)).sum())
    grad_times = torch.stack(of_times).view(ctx.time_shape) if of_times else None
    return (*of_operator, of_Z, grad_times, *[None] * 6)
