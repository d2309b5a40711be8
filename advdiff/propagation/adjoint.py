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
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from advdiff.operators.gradients import Gradients
from advdiff.operators.precision import full_precision
from advdiff.operators.propagator import Propagator
from advdiff.operators.reductions import inner, norms
from advdiff.propagation.errors import FlowOverflowError, ToleranceWarning
from advdiff.propagation.methods.chebyshev import chebyshev
from advdiff.propagation.methods.taylor import taylor
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


def flow(operator: Propagator, Z: Tensor, times: Sequence[float], tol: float) -> Outcome:
    """e^{-Lt}Z at the given times, by the method that suits the operator and cuts long times into steps."""
    return (chebyshev if operator.has_real_spectrum else taylor)(operator, Z, times, tol)


class Sweep:
    """The integral of λ zᵀ from the last time back to 0, panel by panel; ``error`` adds up what the states expect."""

    def __init__(self, operator: Propagator, gradients: Gradients, times: Sequence[float], grad: Tensor, tol: float):
        self.operator, self.gradients, self.tol, self.error = operator, gradients, tol, 0.0
        self.transposed = operator.T
        points, self.weights = np.polynomial.legendre.leggauss(gauss_points(tol))
        self.points = (1.0 + points) / 2.0
        self.arrivals: dict[int, Tensor] = {}
        self.grid = [0.0]
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
            outcome = flow(self.operator, state, [grid[i] - grid[first] for i in cuts[1:-1]], self.tol)
            self.error += outcome.estimated_error or 0.0
            states = [state, *outcome.value]
            for begin, end, known in zip(cuts[-2::-1], cuts[:0:-1], states[::-1], strict=True):
                self.run(begin, end, known)
            return
        length = grid[last] - grid[first]
        offsets = [length * float(p) for p in self.points]
        if last != len(grid) - 1 and last in self.arrivals:
            self.adjoint = self.adjoint + self.arrivals[last]
        forth = flow(self.operator, state, offsets, self.tol)
        back = flow(self.transposed, self.adjoint, [length - s for s in offsets] + [length], self.tol)
        for known, costate, weight in zip(forth.value, back.value, self.weights, strict=False):
            self.gradients.add(known, costate.mul_(length * float(weight) / 2.0))
        # The states differ from panel to panel, their errors do not add up; those of the adjoint do.
        self.error += back.estimated_error or 0.0
        self.adjoint = back.value[-1]


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
    ):
        ctx.operator, ctx.times, ctx.weights, ctx.tol = operator, times, weights, tol
        ctx.beta_shape, ctx.time_shape = (None if t is None else t.shape for t in (beta, learned))
        # The value itself is needed for the gradient of the time only.
        ctx.save_for_backward(Z.contiguous(), *[outcome.value] * ctx.needs_input_grad[5])
        return outcome.value

    @staticmethod
    @once_differentiable
    @full_precision
    def backward(ctx: Any, grad: Tensor):  # type: ignore[no-untyped-def]
        Z, *value = ctx.saved_tensors
        operator, times, tol = ctx.operator, ctx.times, ctx.tol
        needs, grad_times, end = ctx.needs_input_grad[:4], None, max(times)
        if value:  # ∂Y/∂T = −LY
            parts = [_rate(operator, Y.contiguous(), G) for Y, G in zip(value[0], grad, strict=True)]
            grad_times = torch.stack(parts).view(ctx.time_shape)
        if ctx.weights is not None:
            grad = torch.stack([grad[0] * w for w in ctx.weights])
        if end == 0.0:
            return (None, None, None, None, grad.sum(0), grad_times, *[None] * 5)
        gradients = operator.gradients(needs)
        if any(needs) or len(times) > 1:
            sweep = Sweep(operator, gradients, times, grad, tol)
            sweep.run(0, len(sweep.grid) - 1, Z)
            adjoint, error = sweep.adjoint, sweep.error
            if 0 in sweep.arrivals and len(sweep.grid) > 1:
                adjoint = adjoint + sweep.arrivals[0]
        else:  # no gradient to the operator is the same as a zero one
            outcome = flow(operator.T, grad[0].contiguous(), times, tol)
            adjoint, error = outcome.value[0], outcome.estimated_error or 0.0
        # The rounding of P's own entries, and of the row sums by which those of query and key are divided.
        rounding = operator.radius * end * operator.condition + 0.5 * operator.condition**2
        error += 0.5 * torch.finfo(Z.dtype).eps * rounding
        _judge(Z, grad, error, tol)
        return (*gradients.tensors(ctx.beta_shape), adjoint, grad_times, *[None] * 5)


def _rate(operator: Propagator, Y: Tensor, grad: Tensor) -> Tensor:
    """−⟨G, L Y⟩."""
    return inner(grad, operator.add_product_(Y.clone(), Y, keep=-operator.shift))


def _judge(Z: Tensor, grad: Tensor, error: float, tol: float) -> None:
    """Name what went wrong in the backward pass; NaN in, NaN out is none of its business."""
    if math.isnan(error) and math.isfinite(sum(norms(Z, grad))):
        raise FlowOverflowError(
            f"the gradient of e^{{-LT}}Z exceeds the largest number of {grad.dtype}: choose a shorter time or a "
            "smaller β, or compute in float64."
        )
    if error > 10.0 * tol:
        warnings.warn(
            f"the gradient of e^{{-LT}}Z may have a relative error of {error:.1e}, not tol = {tol:.1e}: compute in "
            "float64, choose a shorter time, or raise tol.",
            ToleranceWarning,
            stacklevel=2,
        )
