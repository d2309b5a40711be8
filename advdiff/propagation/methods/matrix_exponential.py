r"""e^A of small dense matrices, by scaling and squaring: e^A = (e^{A/2^s})^{2^s}, ‖A/2^s‖ ≤ ½.

Taylor's series of degree 16 leaves out less than 1e-19. For a matrix without negative entries nothing cancels, neither
in the series nor in the squares, so that every entry keeps its digits. (``torch.linalg.matrix_exp`` loses up to three
digits of float64 where the norm is small.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from advdiff.checks import has_values


def exponential_of(A: Tensor, exponent: float = 0.0) -> Tensor:
    """e^{A + exponent·I} for A [..., n, n] without negative entries, or of any that are centred around 0."""
    if A.numel() == 0:
        return A.clone()
    norm = float(A.abs().sum(-1).amax()) if has_values(A) else 1.0
    identity = torch.eye(A.size(-1), dtype=A.dtype, device=A.device).expand_as(A)
    result: Tensor = _series_and_squares(A, identity, norm, exponent)
    return result


def exponential_of_array(A: np.ndarray) -> np.ndarray:
    """e^A for a small matrix on the host, where numpy is the faster."""
    result: np.ndarray = _series_and_squares(A, np.eye(len(A)), float(np.abs(A).sum(-1).max()), 0.0)
    return result


def _series_and_squares(A: Any, identity: Any, norm: float, exponent: float) -> Any:
    squarings = max(0, math.ceil(math.log2(norm)) + 1) if 0.0 < norm < math.inf else 0
    A = A / 2.0**squarings
    powers = [identity, A]
    for _ in range(3):
        powers.append(powers[-1] @ A)
    # Σ_{j<4} A^{4j} Σ_{i<4} A^i/(4j + i)! + A^16/16!, by Horner's scheme in A⁴ (Paterson–Stockmeyer).
    result = identity / math.factorial(16)
    for j in reversed(range(4)):
        part = sum((powers[i] / math.factorial(4 * j + i) for i in range(1, 4)), identity / math.factorial(4 * j))
        result = result @ powers[4] + part
    result = result * math.exp(exponent / 2.0**squarings)
    for _ in range(squarings):
        result = result @ result
    return result
