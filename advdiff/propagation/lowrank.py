r"""The fast inverse: (θI + L)⁻¹Z from sparse solves with B = (1+θ)I − βV, shared by all heads.

Forward: one sequence of products gives B⁻¹[Z, 1, U_1, …, U_H]; a capacitance matrix of size d + 1 per graph and head
does the rest (:mod:`advdiff.propagation.woodbury`). Backward, by the implicit-function theorem: with λ = (θI + L)⁻ᵀG,

.. math::
    \partial \mathbf Z = \boldsymbol\lambda, \qquad \partial \mathbf P = \boldsymbol\lambda \mathbf X^\top, \qquad
    \boldsymbol\lambda = \mathbf B^{-\top}
    \bigl(\mathbf G + \mathbf W\, \mathbf M^{-\top} (\mathbf B^{-1}\mathbf U)^\top \mathbf G\bigr),

M the capacitance matrix: one more sequence of products, and no iteration is kept in memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from advdiff.checks import has_values
from advdiff.propagation.shifted import sparse_resolvents
from advdiff.propagation.woodbury import capacitance, corrected, solve_capacitance
from advdiff.propagator import Propagator


@dataclass(frozen=True)
class Diagnosis:
    r"""What the vector x = (θI + L)⁻¹1 tells about θI + L, whose off-diagonal entries are not positive.

    x > 0 if and only if θI + L is a nonsingular M-matrix, that is, θ exceeds the singular value θ*. Then
    ‖(θI + L)⁻¹‖_∞ = max x exactly, and by Collatz–Wielandt θ − 1/min x ≤ θ* ≤ θ − 1/max x.
    """

    is_m_matrix: bool
    condition: float
    singular_theta: float

    @classmethod
    def of(cls, operator: Propagator, theta: float, x: Tensor, amplification: float = 0.0) -> Diagnosis:
        r"""From x [N, H, 1], one column per head.

        ``amplification`` is max \|X\| / max \|Z\| of another solved system: below θ*, where max \|x\| is only a lower
        bound on the norm of the inverse, it may show a singular point that x does not see.
        """
        if not has_values(x) or x.numel() == 0:
            return cls(True, 1.0, -math.inf)
        if not bool(torch.isfinite(x).all()):
            return cls(False, math.inf, theta)
        row_sums = operator.add_product_(torch.empty_like(x), torch.ones_like(x), keep=0.0)
        norm = abs(1.0 + theta) + float(row_sums.max())
        largest = float(x.flatten()[x.abs().argmax()])  # negative below θ*, where θ* lies above θ
        return cls(bool(x.min() > 0), norm * max(abs(largest), amplification), theta - 1.0 / largest)


def amplification(X: Tensor, Z: Tensor) -> float:
    r"""max \|X\| / max \|Z\|, a lower bound on the ∞-norm of the matrix that maps Z to X (0 where that is unknown)."""
    if not has_values(Z) or Z.numel() == 0 or not bool(Z.any()):
        return 0.0
    return float(X.detach().abs().max() / Z.detach().abs().max())


class LowRankInverse(torch.autograd.Function):
    """X = (θI + L)⁻¹Z as a differentiable function of U, W, β and Z."""

    class Outcome(NamedTuple):
        products: int
        error: float
        diagnosis: Diagnosis

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx: Any,
        left: Tensor | None,
        right: Tensor | None,
        beta: Tensor | None,
        Z: Tensor,
        operator: Propagator,
        theta: float,
        tol: float,
        box: list[LowRankInverse.Outcome],
    ):
        operator = operator.detach()
        ctx.operator, ctx.theta = operator, theta
        ctx.beta_shape = None if beta is None else beta.shape
        # Truncate far below ``tol``, since the capacitance matrix amplifies the error by the condition number, and
        # once more if that number turns out to be large: a coarse solve would hide that the matrix is singular.
        eps = torch.finfo(Z.dtype).eps
        ctx.truncation, products = max(0.02 * tol, 0.25 * eps), 0
        while True:
            X, solved_left, matrix, diagnosis, more = _solve(operator, Z, theta, ctx.truncation)
            products += more
            error = ctx.truncation * diagnosis.condition
            if error <= tol or ctx.truncation <= 0.25 * eps:
                break
            ctx.truncation = max(min(0.5 * tol / diagnosis.condition, 1e-3 * ctx.truncation), 0.25 * eps)
        box.append(LowRankInverse.Outcome(products, max(error, eps * diagnosis.condition), diagnosis))
        ctx.shared = Z.size(1) == 1 and operator.heads > 1
        ctx.save_for_backward(X, solved_left, matrix)
        return X

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor):  # type: ignore[no-untyped-def]
        X, solved_left, matrix = ctx.saved_tensors
        operator: Propagator = ctx.operator
        right_side = grad.contiguous()
        if solved_left is not None:
            assert operator.right is not None
            moments = operator.segments.outer(solved_left, right_side)
            coefficients = solve_capacitance(matrix.transpose(-1, -2), moments)
            right_side = operator.segments.add_apply_(right_side.clone(), operator.right, coefficients)
        solved, _ = _sparse_solve(operator.T, right_side.flatten(1), ctx.theta, ctx.truncation)
        adjoint = solved.view(grad.shape)
        grads = operator.gradients(X, adjoint, ctx.needs_input_grad[:3])
        grad_beta = None if grads[2] is None else grads[2].reshape(ctx.beta_shape)
        grad_Z = adjoint.sum(1, keepdim=True) if ctx.shared else adjoint
        return grads[0], grads[1], grad_beta, grad_Z, None, None, None, None


def _solve(
    operator: Propagator, Z: Tensor, theta: float, truncation: float
) -> tuple[Tensor, Tensor | None, Tensor | None, Diagnosis, int]:
    """(θI + L)⁻¹Z, B⁻¹U, the capacitance matrix, the diagnosis and the number of products."""
    columns = [Z.flatten(1), Z.new_ones(Z.size(0), 1)]
    if operator.left is not None:
        columns.append(operator.left.flatten(1))
    # Whole cache lines: at 169,343 nodes the sparse product of 208 columns is faster than that of 195.
    columns.append(Z.new_zeros(Z.size(0), -sum(c.size(1) for c in columns) % 16))
    solved, products = _sparse_solve(operator, torch.cat(columns, dim=1), theta, truncation)
    parts = solved.split([c.size(1) for c in columns], dim=1)
    X, ones = parts[0].reshape(Z.shape), parts[1].unsqueeze(1)
    solved_left = matrix = None
    if operator.left is not None:
        solved_left = parts[2].reshape(operator.left.shape)
        matrix = capacitance(operator, solved_left)
        X, ones = (corrected(operator, part, solved_left, matrix) for part in (X, ones))
    return X, solved_left, matrix, Diagnosis.of(operator, theta, ones, amplification(X, Z)), products


def _sparse_solve(operator: Propagator, Y: Tensor, theta: float, tol: float) -> tuple[Tensor, int]:
    """((1+θ)I − βV)⁻¹Y [N, columns] and the number of products."""
    solved, products = sparse_resolvents(operator.velocity, operator.beta_value, Y, [1.0 + theta], tol)
    return solved[0], products
