r"""How far a representation does move when the graph changes: f(L') − f(L), measured. Chapter 5.

f is any of the library's functions of a generator, called ``f(L, Z)``; the default is the closed form at time 1. For
another time, or another solver, pass for example

    partial(advdiff.exponential, time=5.0, tol=1e-10)
    partial(advdiff.resolvent, theta=1.0)
    lambda L, Z: advdiff.powers(L.propagator, Z, 3)[-1]

Nothing here forms an N×N matrix, except for the infinity norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from advdiff.checks import check_choice, check_nonnegative, expects, has_values
from advdiff.operators import Generator
from advdiff.propagation.exponential import exponential
from advdiff.theory.norms import NORMS, Product, spectral_norm

Function = Callable[[Generator, Tensor], Tensor]
LARGEST_DENSE = 4096  # nodes up to which the infinity norm forms its N×N matrix


def _closed_form(L: Generator, Z: Tensor) -> Tensor:
    return exponential(L, Z, tol=1e-10)


def _check_pair(L: Generator, other: Generator) -> None:
    if L.num_nodes != other.num_nodes:
        raise ValueError(
            f"the graphs have {L.num_nodes} and {other.num_nodes} nodes; a variation needs the same nodes."
        )
    first, second = (G.propagator.heads if G.propagator.multi_head else None for G in (L, other))
    if first != second:
        raise ValueError(f"the generators have heads={first} and heads={second}; give both the same coupling.")


#: Of the quadrature in :func:`first_order`, whose points are found by a dense eigenvalue problem.
LONGEST_TIME = 100.0


@expects
def difference(L: Generator, other: Generator, Z: Tensor, f: Function = _closed_form) -> Tensor:
    """f(L')Z − f(L)Z, where L' is ``other``: what the change of the graph does to the representation of Z.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.theory import variation
        >>> edges = [[0, 1, 2, 3], [1, 0, 3, 2]], [[0, 2, 1, 3], [2, 0, 3, 1]]
        >>> V = [advdiff.normalize_adjacency(torch.tensor(e), 4, dtype=torch.float64) for e in edges]
        >>> before, after = (advdiff.Generator(None, v, beta=1.0) for v in V)
        >>> Z = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)  # the couples agree
        >>> variation.difference(before, after, Z)  # (e^{-2} − 1) Z
        tensor([-0.8647, -0.8647,  0.8647,  0.8647], dtype=torch.float64)
    """
    _check_pair(L, other)
    return f(other, Z) - f(L, Z)


@expects
def relative(L: Generator, other: Generator, Z: Tensor, f: Function = _closed_form) -> float:
    """The relative variation ‖Z(T; A') − Z(T; A)‖_F / ‖Z(T; A)‖_F.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.theory import variation
        >>> edges = [[0, 1, 2, 3], [1, 0, 3, 2]], [[0, 2, 1, 3], [2, 0, 3, 1]]
        >>> V = [advdiff.normalize_adjacency(torch.tensor(e), 4, dtype=torch.float64) for e in edges]
        >>> before, after = (advdiff.Generator(None, v, beta=1.0) for v in V)
        >>> Z = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)  # the couples agree
        >>> round(variation.relative(before, after, Z), 4)
        0.8647
    """
    _check_pair(L, other)
    before = f(L, Z)
    _check_values(before)
    size = float(before.norm())
    if size == 0.0:
        raise ValueError("the representation on the first graph is zero; a relative variation is not defined.")
    return float((f(other, Z) - before).norm()) / size


@expects
def operator(L: Generator, other: Generator, f: Function = _closed_form, norm: str = "spectral") -> float:
    r"""‖f(L') − f(L)‖, the largest variation over all Z of length one; with several heads, the largest of all.

    The spectral norm needs products with f and, since f(L)ᵀ = f(Lᵀ), with f of the transposed generators. The infinity
    norm, the largest row sum of absolute values, forms the matrix and is for small graphs.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.theory import variation
        >>> edges = {"before": [[0, 1, 2, 3], [1, 0, 3, 2]], "after": [[0, 2, 1, 3], [2, 0, 3, 1]]}
        >>> local = [advdiff.Generator(None, advdiff.normalize_adjacency(torch.tensor(e), 4, dtype=torch.float64), 1.0)
        ...          for e in edges.values()]
        >>> round(variation.operator(*local), 4)  # 1 − e^{-2}
        0.8647
    """
    _check_pair(L, other)
    return _norm(lambda Z: difference(L, other, Z, f), lambda Z: difference(L.T, other.T, Z, f), L, norm)


@expects
def first_order(L: Generator, other: Generator, Z: Tensor, time: float = 1.0) -> Tensor:
    r"""The Fréchet derivative of the closed form in the direction of the change, applied to Z.

    .. math::
        \mathcal L_{\exp}(-\mathbf L T)\bigl[(\mathbf L-\mathbf L')T\bigr]\mathbf Z
        = \int_0^T e^{-\mathbf L(T-s)}(\mathbf L-\mathbf L')\,e^{-\mathbf Ls}\mathbf Z\,ds

    the part of Δ Z that is linear in the change. The integrand is entire in s, so a few Gauss points give all digits.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.theory import variation
        >>> edges = [[0, 1, 2, 3], [1, 0, 3, 2]], [[0, 2, 1, 3], [2, 0, 3, 1]]
        >>> V = [advdiff.normalize_adjacency(torch.tensor(e), 4, dtype=torch.float64) for e in edges]
        >>> before, after = (advdiff.Generator(None, v, beta=1.0) for v in V)
        >>> Z = torch.tensor([1.0, 1.0, -1.0, -1.0], dtype=torch.float64)  # the couples agree
        >>> variation.first_order(before, after, Z, time=0.1)  # the difference itself is −0.1813 Z
        tensor([-0.2000, -0.2000,  0.2000,  0.2000], dtype=torch.float64)
    """
    _check_pair(L, other)
    check_nonnegative("time", time)
    time = float(time)
    if time > LONGEST_TIME:
        raise ValueError(f"time is {time:g}; the integral over it is taken up to {LONGEST_TIME:g}.")
    spread = L.propagator.spread(Z).expand(-1, L.propagator.heads, -1)
    nodes, weights = np.polynomial.legendre.leggauss(12 + 6 * math.ceil(time))
    total = torch.zeros_like(spread)
    for node, weight in zip((nodes + 1) / 2 * time, weights / 2 * time, strict=True):
        early = exponential(L, spread, float(node), tol=1e-12)
        total = total + weight * exponential(L, L @ early - other @ early, float(time - node), tol=1e-12)
    return L.propagator.restore(total, Z)


@expects
def first_order_operator(L: Generator, other: Generator, time: float = 1.0, norm: str = "spectral") -> float:
    """The norm of :func:`first_order` as an operator on Z.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.theory import variation
        >>> edges = [[0, 1, 2, 3], [1, 0, 3, 2]], [[0, 2, 1, 3], [2, 0, 3, 1]]
        >>> V = [advdiff.normalize_adjacency(torch.tensor(e), 4, dtype=torch.float64) for e in edges]
        >>> before, after = (advdiff.Generator(None, v, beta=1.0) for v in V)
        >>> round(variation.first_order_operator(before, after, time=0.1), 4)
        0.2
    """
    _check_pair(L, other)
    check_nonnegative("time", time)
    return _norm(lambda Z: first_order(L, other, Z, time), lambda Z: first_order(L.T, other.T, Z, time), L, norm)


def _norm(
    product: Callable[[Tensor], Tensor], transposed: Callable[[Tensor], Tensor], L: Generator, norm: str
) -> float:
    check_choice("norm", norm, NORMS)
    exact = _reference_tensor(L)
    _check_values(exact)
    # With heads, f(L) acts on [N, H, F] head by head: one matrix of N·H rows with a block for each head.
    shape = (L.num_nodes, L.propagator.heads, 1) if L.propagator.multi_head else (L.num_nodes,)

    def on_arrays(f: Callable[[Tensor], Tensor]) -> Product:
        def call(y: np.ndarray) -> np.ndarray:
            Z = torch.as_tensor(y, device=exact.device, dtype=exact.dtype).reshape(shape)
            return f(Z).detach().cpu().double().flatten().numpy()

        return call

    with torch.no_grad():
        if norm == "spectral":
            return spectral_norm(on_arrays(product), on_arrays(transposed), math.prod(shape))
        if L.num_nodes > LARGEST_DENSE:
            raise ValueError(
                f"the infinity norm forms an N×N matrix and the graph has {L.num_nodes} nodes; "
                f"use norm='spectral' above {LARGEST_DENSE}."
            )
        eye = torch.eye(L.num_nodes, device=exact.device, dtype=exact.dtype)
        return float(product(eye).abs().sum(-1).max()) if L.num_nodes else 0.0


def _check_values(tensor: Tensor) -> None:
    if not has_values(tensor):
        raise ValueError("the generator lies on the meta device and has no values; move it to a real one.")


def _reference_tensor(L: Generator) -> Tensor:
    """A tensor with the device and precision in which the generator computes."""
    if L.coupling is not None:
        return L.coupling.left
    if L.velocity is None:  # refused when the generator was made
        raise AssertionError("a generator has a coupling or a velocity")
    return L.velocity.entries.new_empty(0, dtype=L.velocity.dtype)
