r"""Sparse resolvents (sI − βV)⁻¹ Y for one or many shifts s, real or complex, from one sequence of products.

For an undirected graph the spectrum of V lies in [-1, 1], where with w = (s − √(s²−β²))/β, \|w\| < 1,

.. math::
    \frac{1}{s - \beta x} = \frac{2}{\sqrt{s^2 - \beta^2}} \Bigl(\tfrac12 + \sum_{k \ge 1} w^k\, T_k(x)\Bigr).

The polynomials T_k(V)Y are shared by all shifts and all β, and real even where the shifts are complex. The number of
terms is known beforehand: the rate is \|w\|. For a directed graph the spectrum fills the unit disc, where the geometric
series Σ_k β^k s^{-k-1} V^k is the natural expansion, with rate β/\|s\|.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from advdiff.operators.velocity import Velocity


def joukowski(s: complex, beta: float) -> complex:
    r"""w = (s − √(s²−β²))/β with \|w\| ≤ 1: the inverse Joukowski map of s/β, outside [-1, 1]; 0 for β = 0."""
    return beta / (s + _root(s, beta))


def _root(s: complex, beta: float) -> complex:
    return cmath.sqrt(s - beta) * cmath.sqrt(s + beta)  # this branch makes |s + root| ≥ β


def rate(velocity: Velocity, s: complex, beta: float) -> float:
    """Factor by which one more product reduces the error; at least 1 means no convergence."""
    if velocity.undirected:
        return abs(joukowski(s, beta)) if abs(s) + beta > 0 else math.inf
    return beta / abs(s) if s != 0 else math.inf


def terms_needed(velocity: Velocity, s: complex, beta: float, tol: float) -> int:
    """Terms for a relative error ``tol`` of (s − βV)⁻¹ in the 2-norm (see ``Velocity.skew``)."""
    q = rate(velocity, s, beta)
    if q == 0.0:
        return 1
    # Tail of the series against the smallest |1/(s - βx)| = 1/(|s| + β), scalar by scalar.
    first = 2.0 / abs(_root(s, beta)) if velocity.undirected else 1.0 / abs(s)
    return max(1, math.ceil(math.log(tol * (1.0 - q) / (first * (abs(s) + beta) * velocity.skew)) / math.log(q)))


def sparse_resolvents(
    velocity: Velocity | None, beta: float | Sequence[float], Y: Tensor, shifts: Sequence[complex], tol: float
) -> tuple[Tensor, int]:
    """(s_i I − βV)⁻¹ Y stacked [shifts, N, F], real if all shifts are, and the number of products.

    ``beta`` is one number or one for each column of Y, [F].
    """
    is_real = all(complex(s).imag == 0.0 for s in shifts)
    dtype = Y.dtype if is_real else torch.complex(Y[:1, :1], Y[:1, :1]).dtype
    out = Y.new_zeros(len(shifts), *Y.shape, dtype=dtype)
    betas = [float(beta)] if isinstance(beta, float | int) else sorted(set(beta))
    if velocity is None or max(betas, default=0.0) == 0.0 or velocity.num_edges == 0:
        for result, s in zip(out, shifts, strict=True):
            _accumulate(result, Y, 1.0 / complex(s))
        return out, 0
    poles = [complex(s) for s in shifts]
    for s in poles:
        if rate(velocity, s, betas[-1]) >= 1.0 - 1e-12:
            raise ValueError(
                f"sI − βV with s = {_plain(s):.4g} and β = {betas[-1]:.4g} cannot be inverted by a convergent series: "
                f"s lies inside {'[-β, β]' if velocity.undirected else 'the disc |s| ≤ β'}; use method='dense' on a "
                "small graph, or another θ."
            )
    needed = [max(terms_needed(velocity, s, b, tol) for b in betas) for s in poles]
    undirected = velocity.undirected
    older, newer = torch.zeros_like(Y), Y.clone()
    for k in range(max(needed) + 1):
        for result, s, last in zip(out, poles, needed, strict=True):
            if k <= last:
                values = {b: _coefficient(s, b, k, undirected) for b in betas}
                _accumulate(result, newer, values[betas[0]] if len(betas) == 1 else [values[b] for b in beta])  # type: ignore[union-attr]
        if k == max(needed):
            break
        # T_{k+1} = 2 V T_k − T_{k-1} (T_1 = V T_0), or V^{k+1} = V V^k.
        chebyshev = undirected and k > 0
        velocity.add_product_(older, newer, scale=2.0 if chebyshev else 1.0, keep=-1.0 if chebyshev else 0.0)
        older, newer = newer, older
    return out, max(needed)


def _plain(s: complex) -> complex | float:
    return s if s.imag else s.real


def _coefficient(s: complex, beta: float, k: int, undirected: bool) -> complex:
    if not undirected:
        return (beta / s) ** k / s
    return (1.0 if k == 0 else 2.0) / _root(s, beta) * joukowski(s, beta) ** k


def _accumulate(result: Tensor, term: Tensor, coefficient: complex | list[complex]) -> None:
    """result += coefficient · term, with one coefficient or one for each column."""
    if isinstance(coefficient, list):
        row = torch.tensor(coefficient, dtype=torch.complex128)
        row = row.to(result.device, result.dtype) if result.is_complex() else row.real.to(result.device, result.dtype)
        result.addcmul_(row, term.to(result.dtype))
    elif result.is_complex():
        parts = torch.view_as_real(result)
        parts[..., 0].add_(term, alpha=coefficient.real)
        parts[..., 1].add_(term, alpha=coefficient.imag)
    else:
        result.add_(term, alpha=coefficient.real)
