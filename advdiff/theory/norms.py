r"""The norms in which the bounds speak: operator norms, found from products alone, and the logarithmic norm μ₂."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import scipy.sparse.linalg
import torch
from torch import Tensor

from advdiff.checks import check_finite, check_floating, expects, has_values
from advdiff.operators.attention import Attention

NORMS = ("spectral", "infinity")
_LANCZOS_VECTORS = 48

Product = Callable[[np.ndarray], np.ndarray]


@expects
def spectral_norm(product: Product, transposed: Product, size: int, *, tol: float = 1e-8) -> float:
    r"""‖M‖₂, the square root of the largest eigenvalue of MᵀM, from y ↦ My and y ↦ Mᵀy alone.

    Lanczos iteration (ARPACK) from a fixed start, in float64: the same number every time, memory O(N).

    Args:
        product, transposed: multiply a vector [N] by M and by Mᵀ.
        size: number N of rows.
        tol: relative accuracy of the eigenvalue.

    Example:
        >>> import numpy as np
        >>> from advdiff.theory.norms import spectral_norm
        >>> M = np.array([[0.0, 2.0], [0.0, 0.0]])
        >>> round(spectral_norm(lambda y: M @ y, lambda y: M.T @ y, size=2), 6)
        2.0
    """
    if size == 0:
        return 0.0
    if size <= _LANCZOS_VECTORS:  # fewer columns than Lanczos vectors: take the matrix itself
        matrix = np.stack([product(column) for column in np.eye(size)], axis=1)
        _check_products(matrix)
        return float(np.linalg.norm(matrix, 2))
    # The image of a second start, should M take the first to 0. Scaled, so that no square under- or overflows.
    for start in np.random.default_rng(0).standard_normal((2, size)):
        image = product(start)
        _check_products(image)
        largest = float(np.abs(image).max())
        if largest > 0.0:
            break
    else:
        return 0.0
    scale = largest * float(np.linalg.norm(image / largest) / np.linalg.norm(start))
    gram = scipy.sparse.linalg.LinearOperator(
        (size, size), matvec=lambda y: transposed(product(y.ravel()) / scale) / scale, dtype=float
    )
    top = scipy.sparse.linalg.eigsh(
        gram, k=1, which="LA", v0=start, ncv=_LANCZOS_VECTORS, tol=tol, return_eigenvectors=False
    )
    return scale * math.sqrt(max(float(top[0]), 0.0))


def _check_products(values: np.ndarray) -> None:
    if not np.isfinite(values).all():
        raise ValueError("the products hold NaN or infinite entries, so there is no norm; choose a shorter time.")


@expects
def log_norm(M: Tensor | Attention) -> float:
    r"""The logarithmic norm :math:`\mu_2(\mathbf M) = \lambda_{\max}\bigl((\mathbf M + \mathbf M^\top)/2\bigr)`.

    It is the best rate in ‖e^{Mt}‖₂ ≤ e^{μ₂(M) t} for all t ≥ 0 (chapter 5). For an :class:`advdiff.Attention`
    C = U Wᵀ it is the largest eigenvalue of a matrix of 2(d + 1) rows, O(N d²); with several heads, the largest of all.

    Args:
        M: a dense square matrix, or the attention of one graph.

    Example:
        >>> import torch
        >>> from advdiff.theory.norms import log_norm
        >>> log_norm(torch.tensor([[0.0, 2.0], [0.0, 0.0]]))
        1.0
    """
    if isinstance(M, Attention):
        if M.segments.num_graphs != 1:
            raise ValueError(f"the attention has {M.segments.num_graphs} graphs; take one graph at a time.")
        return max(_low_rank_log_norm(M.left[:, h], M.right[:, h]) for h in range(M.heads))
    if M.dim() != 2 or M.size(0) != M.size(1):
        raise ValueError(f"M has shape {tuple(M.shape)}; the logarithmic norm needs a square matrix [N, N].")
    check_floating("M", M)
    check_finite("M", M)
    if not has_values(M):
        raise ValueError("M lies on the meta device and has no values; move it to a real one.")
    M = M.detach().double()
    return float(torch.linalg.eigvalsh((M + M.T) / 2)[-1]) if M.numel() else 0.0


def _low_rank_log_norm(U: Tensor, W: Tensor) -> float:
    """λ_max of ½(U Wᵀ + W Uᵀ) = B S Bᵀ with B = [U, W], S = ½[[0, I], [I, 0]]: that of R S Rᵀ with B = QR.

    For N > 2r the zeros outside the range of Q change nothing: S is indefinite, so λ_max(R S Rᵀ) ≥ 0 by Sylvester.
    """
    if not has_values(U):
        raise ValueError("the attention lies on the meta device and has no values; move it to a real one.")
    rank = U.size(1)
    R = torch.linalg.qr(torch.cat([U, W], dim=1).detach().double(), mode="r")[1]
    inner = R[:, :rank] @ R[:, rank:].T
    return float(torch.linalg.eigvalsh((inner + inner.T) / 2)[-1]) if inner.numel() else 0.0
