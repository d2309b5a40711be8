r"""(θI + L)⁻¹Z for any linear operator: GMRES, the smallest residual over a Krylov space, restarted.

The space is that of :mod:`advdiff.propagation.methods.krylov`, in the Frobenius inner product: one basis serves all
columns and heads. The error is the residual times ‖(θI + L)⁻¹‖, at most 1/(s + θ − ρ) where the disc of radius ρ that
holds the field of values of P does not reach s + θ; elsewhere the small least-squares problem gives an estimate.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.inverse import Diagnosis, Inverse
from advdiff.propagation.methods.krylov import MAX_BASIS, arnoldi, largest_basis

MAX_RESTARTS = 200


def krylov_inverse(operator: Propagator, Z: Tensor, theta: float, tol: float) -> Inverse:
    """Z is [N, 1 or H, F]."""
    Z = Z.expand(-1, operator.heads, -1).contiguous()
    X, products, error, condition = _gmres(operator, Z, operator.shift + theta, tol)
    transposed = partial(_transposed, theta=theta, tol=tol)
    return Inverse(X, products, error, Diagnosis(True, condition, math.nan), transposed, ())


def _transposed(operator: Propagator, Y: Tensor, theta: float, tol: float) -> Tensor:
    """(θI + L)⁻ᵀY."""
    return _gmres(operator.T, Y, operator.shift + theta, tol)[0]


def _gmres(operator: Propagator, Z: Tensor, sigma: float, tol: float) -> tuple[Tensor, int, float, float]:
    """(σI − P)⁻¹Z, the number of products, the relative error and the condition number that are to be expected."""
    X, products = torch.zeros_like(Z), 0
    if not has_values(Z) or Z.numel() == 0:
        return X, 0, 0.0, 1.0
    eps, distance = torch.finfo(Z.dtype).eps, sigma - operator.radius
    inverse_norm, residual, error = 1.0 / distance if distance > 0.0 else 0.0, Z, math.inf
    (size,) = operator.segments.norms(residual)
    if size == 0.0:
        return X, 0, 0.0, 1.0
    for _ in range(MAX_RESTARTS):
        if not math.isfinite(size):  # NaN in, NaN out
            return torch.full_like(Z, math.nan), products, math.nan, math.nan
        basis, hessenberg, used = arnoldi(operator, residual, size, largest_basis(operator, Z, MAX_BASIS))
        m = hessenberg.size(1)
        matrix = sigma * torch.eye(m + 1, m, dtype=hessenberg.dtype) - hessenberg
        smallest = float(torch.linalg.svdvals(matrix)[-1])
        if distance <= 0.0:
            inverse_norm = max(inverse_norm, 1.0 / smallest if smallest else math.inf)
        right_side = matrix.new_zeros(m + 1, 1)
        right_side[0] = size
        coordinates = torch.linalg.pinv(matrix) @ right_side
        X = X + (coordinates[:, 0].to(Z) @ basis[:m]).view(Z.shape)
        residual = Z - operator.add_product_(X.clone(), X, scale=-1.0, keep=sigma)
        products += used + 1
        before, (size, solved) = size, operator.segments.norms(residual, X)
        error = size * inverse_norm / solved if solved else math.inf
        if error <= 0.5 * tol or size > 0.9 * before:
            break
    condition = (abs(sigma) + operator.radius) * inverse_norm
    error = max(error, eps * min(condition, 1.0 / eps))
    return X, products, error, condition
