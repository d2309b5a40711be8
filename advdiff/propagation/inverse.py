r"""(θI + L)⁻¹Z, whatever method solved for it: what the solution tells about θI + L, and its gradient.

By the implicit-function theorem, with X = (θI + L)⁻¹Z and λ = (θI + L)⁻ᵀG for the incoming gradient G,

.. math::
    \partial \mathbf Z = \boldsymbol\lambda, \qquad \partial \mathbf P = \boldsymbol\lambda \mathbf X^\top, \qquad
    \partial \theta = -\langle \boldsymbol\lambda, \mathbf X \rangle .
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.plain import plain_product, replayed_gradient, with_tensors
from advdiff.operators.precision import full_precision
from advdiff.operators.propagator import Propagator


@dataclass(frozen=True)
class Diagnosis:
    r"""What the vector x = (θI + L)⁻¹1 tells about θI + L, whose off-diagonal entries are not positive.

    x > 0 if and only if θI + L is a nonsingular M-matrix, that is, θ exceeds the singular value θ*. Then
    ‖(θI + L)⁻¹‖_∞ = max x exactly, and by Collatz–Wielandt θ − 1/min x ≤ θ* ≤ θ − 1/max x.

    A condition number of NaN says that P or Z itself is not finite, of which nothing follows.
    """

    is_m_matrix: bool
    condition: float
    singular_theta: float

    @classmethod
    def of(
        cls,
        operator: Propagator,
        theta: float,
        x: Tensor,
        X: Tensor | None = None,
        Z: Tensor | None = None,
        info: Tensor | None = None,
    ) -> Diagnosis:
        r"""From x [N, H, 1], one column per head, with one look at the values.

        X and Z are another solved system: below θ*, where max \|x\| is only a lower bound on the norm of the inverse,
        max \|X\| / max \|Z\| may show a singular point that x does not see. ``info`` is that of LAPACK, not 0 where a
        matrix was exactly singular.
        """
        if not has_values(x) or x.numel() == 0:
            return cls(True, 1.0, -math.inf)
        row_sums = operator.add_product_(torch.empty_like(x), torch.ones_like(x), keep=0.0)
        sizes = [x.new_zeros(()) if t is None or t.numel() == 0 else t.abs().amax() for t in (X, Z)]
        failed = x.new_zeros(()) if info is None else info.ne(0).any().to(x.dtype)
        low, high = x.aminmax()
        found = torch.stack([row_sums.amax(), -low, high, *sizes, failed])
        # The one time that the host waits for the device.
        norm, low, high, size_X, size_Z, singular = operator.segments.reductions.highest(found).tolist()
        low, norm = -low, norm + abs(1.0 + theta)
        if not math.isfinite(norm + size_Z):
            return cls(True, math.nan, math.nan)
        if singular or not math.isfinite(low + high + size_X):
            return cls(False, math.inf, theta)
        largest = high if high >= -low else low  # negative below θ*, where θ* lies above θ
        amplification = size_X / size_Z if size_Z else 0.0
        return cls(low > 0.0, norm * max(abs(largest), amplification), theta - 1.0 / largest)


@dataclass(frozen=True)
class Inverse:
    """What one method computes on constants: X [N, H, F], its work, its error, and how to solve with the transpose.

    ``transposed(operator, Y, *kept)`` is (θI + L)⁻ᵀY, with what the forward pass kept for it.
    """

    value: Tensor
    products: int
    estimated_error: float
    diagnosis: Diagnosis
    transposed: Callable[..., Tensor]
    kept: tuple[Tensor | None, ...]


class InverseAction(torch.autograd.Function):
    """X = (θI + L)⁻¹Z, which some method has computed on constants, differentiable in U, W, β, V, Z and θ."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx: Any,
        left: Tensor | None,
        right: Tensor | None,
        beta: Tensor | None,
        entries: Tensor | None,
        Z: Tensor,
        theta: Tensor | None,
        inverse: Inverse,
        operator: Propagator,
        solve: Callable[[Propagator, Tensor], Inverse],
    ):
        ctx.operator, ctx.transposed, ctx.solve = operator, inverse.transposed, solve
        ctx.beta_shape, ctx.theta_shape = (None if t is None else t.shape for t in (beta, theta))
        ctx.shared = Z.size(1) == 1 and operator.heads > 1
        ctx.inputs = left, right, beta, entries  # the operator holds them anyway
        ctx.save_for_backward(theta, inverse.value, *inverse.kept)
        return inverse.value

    @staticmethod
    @full_precision
    def backward(ctx: Any, grad: Tensor):  # type: ignore[no-untyped-def]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grad)
        _, X, *kept = ctx.saved_tensors
        adjoint = ctx.transposed(ctx.operator, grad.contiguous(), *kept)
        gradients = ctx.operator.gradients(ctx.needs_input_grad[:4])
        gradients.add(X, adjoint)
        grad_Z = adjoint.sum(1, keepdim=True) if ctx.shared else adjoint
        grad_theta = -(adjoint * X).sum().view(ctx.theta_shape) if ctx.needs_input_grad[5] else None
        return *gradients.tensors(ctx.beta_shape), grad_Z, grad_theta, None, None, None


def _differentiable_backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
    """The gradient for those who differentiate it again: λ by the same differentiable solve, with the transpose."""
    tensors, (theta, X) = ctx.inputs, ctx.saved_tensors[:2]
    transposed = with_tensors(ctx.operator, *tensors).T
    with torch.no_grad():
        inverse = ctx.solve(ctx.operator.T, grad.detach().contiguous())
    adjoint = InverseAction.apply(*transposed.tensors, grad, theta, inverse, ctx.operator.T, ctx.solve)

    def product(*tensors: Any) -> list[Tensor]:
        return [plain_product(with_tensors(ctx.operator, *tensors[:4]), tensors[4])]

    of_operator = replayed_gradient(product, (*tensors, X), [adjoint], (*ctx.needs_input_grad[:4], False))[:4]
    grad_Z = adjoint.sum(1, keepdim=True) if ctx.shared else adjoint
    grad_theta = -(adjoint * X).sum().view(ctx.theta_shape) if ctx.needs_input_grad[5] else None
    return *of_operator, grad_Z, grad_theta, None, None, None
