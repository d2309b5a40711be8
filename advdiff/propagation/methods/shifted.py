r"""Sparse resolvents (sI − βV)⁻¹ Y for one or many shifts s, real or complex, from one sequence of products.

For an undirected graph the spectrum of V lies in [-1, 1], where with z = s/β and w = z − √(z²−1), \|w\| < 1,

.. math::
    \frac{1}{z - x} = \frac{2}{\sqrt{z^2 - 1}} \Bigl(\tfrac12 + \sum_{k \ge 1} w^k\, T_k(x)\Bigr).

The polynomials T_k(V)Y are shared by all shifts and real even where the shifts are complex. The number of terms is
known beforehand: the rate is \|w\|. For a directed graph the spectrum fills the unit disc, where the geometric series
Σ_k z^{-k-1} V^k is the natural expansion, with rate 1/\|z\|.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from advdiff.operators.velocity import Velocity


def joukowski(z: complex) -> complex:
    r"""w = z − √(z²−1) with \|w\| ≤ 1: the inverse Joukowski map, outside [-1, 1]."""
    root = cmath.sqrt(z - 1) * cmath.sqrt(z + 1)  # this branch makes |z + root| ≥ 1
    return 1.0 / (z + root)


def rate(velocity: Velocity, z: complex) -> float:
    """Factor by which one more product reduces the error; at least 1 means no convergence."""
    return abs(joukowski(z)) if velocity.undirected else 1.0 / abs(z) if z != 0 else math.inf


def terms_needed(velocity: Velocity, z: complex, tol: float) -> int:
    """Terms for a relative error ``tol`` of (z − V)⁻¹ in the 2-norm (see ``Velocity.skew``)."""
    q = rate(velocity, z)
    # Tail of the series against the smallest |1/(z - x)| = 1/(|z| + 1), scalar by scalar.
    first = 2.0 / abs(cmath.sqrt(z - 1) * cmath.sqrt(z + 1)) if velocity.undirected else 1.0 / abs(z)
    return max(1, math.ceil(math.log(tol * (1.0 - q) / (first * (abs(z) + 1.0) * velocity.skew)) / math.log(q)))


def sparse_resolvents(
    velocity: Velocity | None, beta: float, Y: Tensor, shifts: Sequence[complex], tol: float
) -> tuple[Tensor, int]:
    """(s_i I − βV)⁻¹ Y stacked [shifts, N, F], real if all shifts are, and the number of products."""
    is_real = all(complex(s).imag == 0.0 for s in shifts)
    dtype = Y.dtype if is_real else torch.complex(Y[:1, :1], Y[:1, :1]).dtype
    out = Y.new_zeros(len(shifts), *Y.shape, dtype=dtype)
    if velocity is None or beta == 0.0 or velocity.num_edges == 0:
        for result, s in zip(out, shifts, strict=True):
            _accumulate(result, Y, 1.0 / complex(s))
        return out, 0
    poles = [complex(s) / beta for s in shifts]
    for s, z in zip(shifts, poles, strict=True):
        if rate(velocity, z) >= 1.0 - 1e-12:
            raise ValueError(
                f"sI − βV with s = {s:.4g} and β = {beta:.4g} cannot be inverted by a convergent series: s lies "
                f"inside {'[-β, β]' if velocity.undirected else 'the disc |s| ≤ β'}; use method='dense' on a small "
                "graph, or another θ."
            )
    needed = [terms_needed(velocity, z, tol) for z in poles]
    undirected = velocity.undirected
    older, newer = torch.zeros_like(Y), Y.clone()
    for k in range(max(needed) + 1):
        for result, z, last in zip(out, poles, needed, strict=True):
            if k <= last:
                _accumulate(result, newer, _coefficient(z, k, undirected) / beta)
        if k == max(needed):
            break
        # T_{k+1} = 2 V T_k − T_{k-1} (T_1 = V T_0), or V^{k+1} = V V^k.
        chebyshev = undirected and k > 0
        velocity.add_product_(older, newer, scale=2.0 if chebyshev else 1.0, keep=-1.0 if chebyshev else 0.0)
        older, newer = newer, older
    return out, max(needed)


def _coefficient(z: complex, k: int, undirected: bool) -> complex:
    if not undirected:
        return z ** -(k + 1)
    scale = (1.0 if k == 0 else 2.0) / (cmath.sqrt(z - 1) * cmath.sqrt(z + 1))
    return scale * joukowski(z) ** k


def _accumulate(result: Tensor, term: Tensor, coefficient: complex) -> None:
    if result.is_complex():
        parts = torch.view_as_real(result)
        parts[..., 0].add_(term, alpha=coefficient.real)
        parts[..., 1].add_(term, alpha=coefficient.imag)
    else:
        result.add_(term, alpha=coefficient.real)
