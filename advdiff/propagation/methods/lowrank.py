r"""The fast inverse: (θI + L)⁻¹Z from sparse solves with B = (1+θ)I − βV, shared by all heads.

Forward: one sequence of products gives B⁻¹[Z, 1, U_1, …, U_H]; a capacitance matrix of size d + 1 per graph and head
does the rest (:mod:`advdiff.propagation.methods.woodbury`). The transpose, for the backward pass
(:mod:`advdiff.propagation.inverse`):

.. math::
    (\theta\mathbf I + \mathbf L)^{-\top} \mathbf Y = \mathbf B^{-\top}
    \bigl(\mathbf Y + \mathbf W\, \mathbf M^{-\top} (\mathbf B^{-1}\mathbf U)^\top \mathbf Y\bigr),

M the capacitance matrix: one more sequence of products, and no iteration is kept in memory.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from advdiff.operators.propagator import Propagator
from advdiff.propagation.inverse import Diagnosis, Inverse
from advdiff.propagation.methods.shifted import sparse_resolvents
from advdiff.propagation.methods.woodbury import capacitance, with_correction


def lowrank_inverse(operator: Propagator, Z: Tensor, theta: float, tol: float) -> Inverse:
    """Z is [N, 1 or H, F]; heads that share it share its sparse solve."""
    # Truncate far below ``tol``, since the capacitance matrix amplifies the error by the condition number, and
    # once more if that number turns out to be large: a coarse solve would hide that the matrix is singular.
    eps = torch.finfo(Z.dtype).eps
    truncation, products = max(0.02 * tol, 0.25 * eps), 0
    while True:
        X, solved_left, matrix, diagnosis, more = _solve(operator, Z, theta, truncation)
        products += more
        error = truncation * diagnosis.condition
        if not error > tol or truncation <= 0.25 * eps:  # NaN ends it, too
            break
        truncation = max(min(0.5 * tol / diagnosis.condition, 1e-3 * truncation), 0.25 * eps)
    transposed = partial(_transposed, theta=theta, truncation=truncation)
    return Inverse(X, products, max(error, eps * diagnosis.condition), diagnosis, transposed, (solved_left, matrix))


def _transposed(
    operator: Propagator,
    Y: Tensor,
    solved_left: Tensor | None,
    matrix: Tensor | None,
    theta: float,
    truncation: float,
) -> Tensor:
    """(θI + L)⁻ᵀY for Y [N, H, F]."""
    if solved_left is not None and matrix is not None:
        assert operator.right is not None
        moments = operator.segments.outer(solved_left, Y)
        coefficients, _ = torch.linalg.solve_ex(matrix.transpose(-1, -2), moments)
        Y = operator.segments.add_apply_(Y.clone(), operator.right, coefficients)
    return _sparse_solve(operator.T, [Y], theta, truncation)[0][0]


def _solve(
    operator: Propagator, Z: Tensor, theta: float, truncation: float
) -> tuple[Tensor, Tensor | None, Tensor | None, Diagnosis, int]:
    """(θI + L)⁻¹Z, B⁻¹U, the capacitance matrix, the diagnosis and the number of products."""
    own = operator.heads if operator.beta_per_head is not None else 1
    Z = Z.expand(-1, max(own, Z.size(1)), -1)  # heads with their own β share no solve
    columns = [Z, Z.new_ones(Z.size(0), own, 1)]
    if operator.left is not None:
        columns.append(operator.left)
    # Whole cache lines: at 169,343 nodes the sparse product of 208 columns is faster than that of 195.
    columns.append(Z.new_zeros(Z.size(0), own, -sum(c.size(1) * c.size(2) for c in columns) % 16))
    solved, products = _sparse_solve(operator, columns, theta, truncation)
    X, ones = solved[0], solved[1]
    solved_left = matrix = info = None
    if operator.left is not None and operator.right is not None:
        solved_left = solved[2]
        matrix = capacitance(operator, solved_left)
        right_sides = [operator.segments.outer(operator.right, part) for part in (X, ones)]
        coefficients, info = torch.linalg.solve_ex(matrix, torch.cat(right_sides, dim=-1))
        X = with_correction(operator, X, solved_left, coefficients[..., :-1])
        ones = with_correction(operator, ones, solved_left, coefficients[..., -1:])
    return X, solved_left, matrix, Diagnosis.of(operator, theta, ones, X, Z, info), products


def _sparse_solve(operator: Propagator, columns: list[Tensor], theta: float, tol: float) -> tuple[list[Tensor], int]:
    """((1+θ)I − βV)⁻¹ of [N, 1 or H, …] columns, all by one sequence of products, and how many they were."""
    betas: float | list[float] = operator.beta_value
    if len(operator.beta_values) > 1:
        betas = [b for part in columns for b in operator.beta_values for _ in range(part.size(2))]
    flat = torch.cat([part.flatten(1) for part in columns], dim=1)
    solved, products = sparse_resolvents(operator.velocity, betas, flat, [1.0 + theta], tol)
    parts = solved[0].split([part.size(1) * part.size(2) for part in columns], dim=1)
    return [part.reshape(like.shape) for part, like in zip(parts, columns, strict=True)], products
