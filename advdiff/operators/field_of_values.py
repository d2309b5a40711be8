r"""Where the numbers ⟨x, Ax⟩, ‖x‖ = 1, of a linear operator lie: the rectangle by which the solvers plan their work."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from advdiff.checks import has_values

#: Steps of the Lanczos process that estimates a field of values, and the margin added to what it finds.
LANCZOS_STEPS, LANCZOS_MARGIN = 20, 0.05

Product = Callable[[Tensor], Tensor]


class FieldOfValues(NamedTuple):
    """A rectangle that holds W(A): real parts in [low, high], imaginary parts up to ``height``."""

    low: float
    high: float
    height: float = 0.0

    def __add__(self, other: FieldOfValues) -> FieldOfValues:  # type: ignore[override]
        return FieldOfValues(self.low + other.low, self.high + other.high, self.height + other.height)

    @property
    def centre(self) -> float:
        return 0.5 * (self.low + self.high)

    @property
    def radius(self) -> float:
        """Of the disc around the centre."""
        return math.hypot(0.5 * (self.high - self.low), self.height)


def gershgorin(index: Tensor, values: Tensor, num_nodes: int, symmetric: bool) -> FieldOfValues:
    """Gershgorin's circles of the symmetric part, and ‖(A − Aᵀ)/2‖_∞ for the imaginary parts."""
    if not has_values(values) or num_nodes == 0:
        return FieldOfValues(0.0, 1.0)
    row, column = index
    zeros = values.new_zeros(num_nodes, dtype=torch.float64 if values.device.type != "mps" else values.dtype)
    values = values.to(zeros.dtype)
    off = torch.where(row == column, 0.0, values)
    diagonal = zeros.index_add(0, row, values - off)
    # Half the absolute row and column sums bound those of (A ± Aᵀ)/2, exactly so if A is symmetric.
    sums = 0.5 * (zeros.index_add(0, row, off.abs()) + zeros.index_add(0, column, off.abs()))
    low, high, height = torch.stack([(diagonal - sums).min(), (diagonal + sums).max(), sums.max()]).tolist()
    return FieldOfValues(low, high, 0.0 if symmetric else height)


def of_factors(U: Tensor, W: Tensor) -> FieldOfValues:
    """Of UWᵀ exactly, from the 2r×2r matrices of (UWᵀ ± WUᵀ)/2 in an orthonormal basis of [U, W]."""
    if not has_values(U) or U.numel() == 0:
        return FieldOfValues(0.0, 1.0)
    wide = torch.cat([U, W], dim=1).to(torch.float64 if U.device.type != "mps" else U.dtype)
    R = torch.linalg.qr(wide).R
    A = R[:, : U.size(1)] @ R[:, U.size(1) :].T
    real = torch.linalg.eigvalsh((A + A.T) / 2)
    height = float(torch.linalg.matrix_norm((A - A.T) / 2, 2))
    # Outside the span of U and W the operator is 0.
    scale = float(real.abs().max())
    low, high = min(float(real.min()), 0.0), max(float(real.max()), 0.0)
    low, high = (0.0 if abs(x) < 1e-14 * scale else x for x in (low, high))
    return FieldOfValues(low, float(f"{high:.15g}"), 0.0 if height <= 1e-12 * scale else height)


def estimated(product: Product, transposed: Product | None, start: Tensor) -> FieldOfValues:
    """From Lanczos' process on (A + Aᵀ)/2 and on the antisymmetric part, from ``start`` [N], widened by a margin."""
    back = transposed or product
    low, high = _lanczos(lambda Z: 0.5 * (product(Z) + back(Z)), start)
    margin = LANCZOS_MARGIN * max(high - low, abs(high), abs(low))
    if transposed is None:
        return FieldOfValues(low - margin, high + margin)

    def antisymmetric(Z: Tensor) -> Tensor:
        return 0.5 * (product(Z) - back(Z))

    # K = (A − Aᵀ)/2 has the eigenvalues ±iμ, and −K² = KᵀK the eigenvalues μ².
    _, square = _lanczos(lambda Z: -antisymmetric(antisymmetric(Z)), start)
    return FieldOfValues(low - margin, high + margin, (1.0 + LANCZOS_MARGIN) * math.sqrt(max(square, 0.0)))


def _lanczos(product: Product, start: Tensor) -> tuple[float, float]:
    """The extreme Ritz values of a symmetric operator after a few steps, with full reorthogonalisation."""
    steps = min(LANCZOS_STEPS, start.numel())
    basis, projected = start.new_zeros(steps, start.numel()), torch.zeros(steps, steps, dtype=torch.float64)
    vector, size = start, float(torch.linalg.vector_norm(start))
    for m in range(steps):
        if not size > 1e-10 * max(float(projected.abs().max()), 1e-30) or not math.isfinite(size):
            projected = projected[:m, :m]
            break
        basis[m] = vector / size
        vector = product(basis[m].unsqueeze(1)).squeeze(1)
        for _ in range(2):
            part = basis[: m + 1] @ vector
            vector = vector - basis[: m + 1].T @ part
            projected[: m + 1, m] += part.double().cpu()
        size = float(torch.linalg.vector_norm(vector))
    values = torch.linalg.eigvalsh(projected.triu() + projected.triu(1).T)
    return (float(values[0]), float(values[-1])) if values.numel() else (0.0, 0.0)
