"""The library's operators as scipy's, for its eigensolvers, Krylov methods and ``expm_multiply``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from advdiff.operators.generator import Generator
from advdiff.operators.linear import as_operator


def as_scipy(L: Any, dtype: torch.dtype = torch.float64) -> Any:
    """L, with one head, as a ``scipy.sparse.linalg.LinearOperator``: L Z and Lᵀ Z, without a copy of L.

    Args:
        L: a Generator or any linear operator of the library; its tensors must have the precision of the products.
        dtype: precision of the products.

    Example:
        >>> import numpy as np, torch, advdiff
        >>> from scipy.sparse.linalg import expm_multiply
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2, dtype=torch.float64)
        >>> L = advdiff.as_scipy(advdiff.Generator(None, V, beta=1.0))  # L 1 = 0
        >>> expm_multiply(-L, np.ones(2), traceA=-2.0).round(6)
        array([1., 1.])
    """
    from scipy.sparse.linalg import LinearOperator

    operator = as_operator(L)
    if isinstance(operator, Generator) and operator.propagator.multi_head:
        raise ValueError("scipy's operators have no heads; view the generator of one head.")
    device, transposed = operator.propagator.segments.counts.device, operator.T

    def product(A: Any, X: np.ndarray) -> np.ndarray:
        with torch.no_grad():
            return (A @ torch.as_tensor(np.ascontiguousarray(X), dtype=dtype, device=device)).cpu().numpy()

    return LinearOperator(
        (operator.num_nodes, operator.num_nodes),
        matvec=lambda x: product(operator, x.reshape(-1)),
        rmatvec=lambda x: product(transposed, x.reshape(-1)),
        matmat=lambda X: product(operator, X),
        rmatmat=lambda X: product(transposed, X),
        dtype=np.dtype(str(dtype).removeprefix("torch.")),
    )
