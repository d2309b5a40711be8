r"""``phi``: the φ-functions of the generator, and with them advective diffusion with a constant source.

.. math::
    \varphi_k(-\mathbf L T)\, \mathbf Z
    = \int_0^1 e^{-\mathbf L T (1-u)}\, \frac{u^{k-1}}{(k-1)!}\, \mathbf Z\, du, \qquad k \ge 1

The integrand is entire, so Gauss–Legendre panels give it to rounding: a weighted sum of states, which one pass over the
time adds up without keeping them.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor

from advdiff.checks import check_nonnegative, check_tolerance, number_of
from advdiff.operators import Generator, Operator, as_operator
from advdiff.operators.precision import full_precision
from advdiff.propagation.accuracy import judged
from advdiff.propagation.adjoint import PANEL, ExponentialAction, gauss_points
from advdiff.propagation.exponential import exponential
from advdiff.propagation.methods.marching import check_steps
from advdiff.propagation.methods.suited import flow


@full_precision
def phi(k: int, L: Generator | Operator | Tensor, Z: Tensor, time: float | Tensor = 1.0, tol: float = 1e-6) -> Tensor:
    r"""φ_k(−LT)Z, where φ₀(x) = e^x and φ_{k+1}(x) = (φ_k(x) − 1/k!)/x.

    The solution of ∂Z/∂t = −LZ + M with a constant source M is Z(T) = e^{-LT}Z + T φ₁(−LT)M, and of one with the
    source M t^{k-1}/(k-1)! from Z = 0 it is T^k φ_k(−LT)M. Differentiable in all that :func:`advdiff.exponential` is.

    Args:
        k: 0, 1, 2, ….
        L: the generator, or any linear operator.
        Z: [N], [N, F] or [N, H, F].
        time: T ≥ 0, a number or a tensor with one element.
        tol: relative error in the Frobenius norm.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2, dtype=torch.float64)
        >>> L = advdiff.Generator(None, V, beta=2.0)  # L 1 = −1, so φ₁ = (e − 1)/1 at T = 1
        >>> advdiff.phi(1, L, torch.ones(2, dtype=torch.float64))
        tensor([1.7183, 1.7183], dtype=torch.float64)
    """
    if k < 0:
        raise ValueError(f"k is {k}; it must be 0 or larger.")
    if k == 0:
        return exponential(L, Z, time, tol=tol)
    check_nonnegative("time", time)
    check_tolerance(tol)
    length = number_of("time", time)
    operator = as_operator(L).propagator
    spread = operator.spread(Z)
    tol = max(tol, 4 * torch.finfo(spread.dtype).eps)
    heads, constant = spread.expand(-1, operator.heads, -1), operator.detach()
    times, weights = _rule(k, length, constant.radius, tol)
    solve = partial(flow, tol=tol, weights=weights)
    with torch.no_grad():
        outcome = judged(constant, heads.detach().contiguous(), times, tol, solve, "φ(−LT)Z")
    value = ExponentialAction.apply(*operator.tensors, heads, None, outcome, constant, times, weights, tol, solve)
    value = operator.restore(value[0], Z)
    if isinstance(time, Tensor) and time.requires_grad:
        value = value + (time - time.detach()).to(value.dtype) * _derivative(k, L, Z, value.detach(), length, tol)
    return value


def _rule(k: int, time: float, radius: float, tol: float) -> tuple[list[float], list[float]]:
    """Times T(1 − u) and weights w u^{k-1}/(k-1)! of Gauss–Legendre panels on [0, 1]."""
    if time == 0.0:
        return [0.0], [1.0 / math.factorial(k)]
    check_steps(radius * time / PANEL, time)
    panels = max(1, math.ceil(radius * time / PANEL))
    points, weights = np.polynomial.legendre.leggauss(gauss_points(tol) + (k + 1) // 2)
    u = ((np.arange(panels)[:, None] + (1.0 + points) / 2.0) / panels).flatten()
    w = np.tile(weights / (2.0 * panels), panels) * u ** (k - 1) / math.factorial(k - 1)
    return (time * (1.0 - u)).tolist(), w.tolist()


@torch.no_grad()
def _derivative(k: int, L: Generator | Operator | Tensor, Z: Tensor, value: Tensor, time: float, tol: float) -> Tensor:
    """∂φ_k(−LT)Z/∂T = (φ_{k-1} − k φ_k)/T, and −LZ/(k + 1)! at T = 0."""
    if time == 0.0:
        return -(as_operator(L) @ Z) / math.factorial(k + 1)
    return (phi(k - 1, L, Z, time, tol) - k * value) / time
