"""Gradients in query, key, β and Z: ``gradcheck`` in float64, and autograd through dense matrices."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

import advdiff
from tests.cases import BY_NAME, GraphCase, some
from tests.reference import leaf, normalized

f64 = torch.float64
SMALL = ("path", "duplicates", "batch_with_empty_graph", "batch_unsorted", "isolated", "no_edges")


def inputs(case: GraphCase, heads: int | None, shared: bool = True, beta: float = 0.6) -> list[Tensor]:
    """query, key, β, Z and a source; Z is [N, 2], or [N, H, 2] where the heads do not share it."""
    shape = (case.num_nodes, 2) if heads is None else (case.num_nodes, heads, 2)
    state = (case.num_nodes, 2) if shared else shape
    return [leaf(*shape), leaf(*shape), torch.tensor(beta, dtype=f64, requires_grad=True), leaf(*state), leaf(*state)]


def gradcheck(case: GraphCase, kind: str, function: Callable, tensors: list[Tensor]) -> bool:
    """``function`` of the generator and the remaining tensors."""
    V = case.velocity(kind)

    def of_tensors(query, key, beta, *rest):
        return function(advdiff.Generator(advdiff.Attention(query, key, case.batch_vector), V, beta), *rest)

    # Every entry of the Jacobian on four nodes; one random projection of it on the others.
    return torch.autograd.gradcheck(of_tensors, tensors, atol=1e-6, fast_mode=tensors[0].numel() > 8)


@some(*SMALL)
@pytest.mark.parametrize("method", ["dense", "taylor", "krylov", "chebyshev", "rational"])
def test_exponential(case: GraphCase, kind: str, method: str) -> None:
    for heads, shared in ((None, True), (2, True), (2, False)):
        for time in (0.0, 0.7):  # later ones below, against autograd
            tensors = inputs(case, heads, shared)[:4]
            assert gradcheck(case, kind, lambda L, Z, T=time: advdiff.exponential(L, Z, T, method, 1e-10), tensors)


@some("duplicates", "batch_unsorted")
def test_exponential_by_the_integrator(case: GraphCase, kind: str) -> None:
    assert gradcheck(case, kind, lambda L, Z: advdiff.exponential(L, Z, 0.7, "ode", 1e-10), inputs(case, None)[:4])


@some(*SMALL)
@pytest.mark.parametrize("method", ["dense", "lowrank"])
def test_resolvent(case: GraphCase, kind: str, method: str) -> None:
    for heads, shared in ((None, True), (2, True), (2, False)):
        tensors = inputs(case, heads, shared)[:4]
        assert gradcheck(case, kind, lambda L, Z: advdiff.resolvent(L, Z, 2.0, method, 1e-12), tensors)


@some(*SMALL)
@pytest.mark.parametrize("with_source", [False, True], ids=["plain", "source"])
def test_powers(case: GraphCase, kind: str, with_source: bool) -> None:
    for heads, shared in ((None, True), (2, True), (2, False)):
        for order in (1, 3):
            tensors = inputs(case, heads, shared)[: 5 if with_source else 4]
            assert gradcheck(
                case,
                kind,
                lambda L, Z, M=None, K=order: tuple(advdiff.powers(L.propagator, Z, K, source=M)[1:]),
                tensors,
            )


@pytest.mark.parametrize("wanted", [{0}, {1}, {2}, {0, 2}], ids=str)
def test_powers_with_some_states_unused(wanted: set[int]) -> None:
    """A loss may look at any of the states."""
    tensors = inputs(BY_NAME["path"], 2)
    assert gradcheck(
        BY_NAME["path"],
        "row",
        lambda L, Z, M: [advdiff.powers(L.propagator, Z, 3, source=M)[1:][k] for k in sorted(wanted)],
        tensors,
    )


@pytest.mark.parametrize("terms", ["C", "V"])
def test_one_term_alone(kind: str, terms: str) -> None:
    case = BY_NAME["path"]
    query, key, beta, Z, _ = inputs(case, None)
    functions = [
        *(lambda L, Z, m=m: advdiff.exponential(L, Z, 1.0, m, 1e-10) for m in ("dense", "taylor", "krylov")),
        *(lambda L, Z, m=m: advdiff.exponential(L, Z, 1.0, m, 1e-10) for m in ("chebyshev", "rational")),
        *(lambda L, Z, m=m: advdiff.resolvent(L, Z, 2.0, m, 1e-10) for m in ("dense", "lowrank")),
        lambda L, Z: advdiff.powers(L.propagator, Z, 2)[2],
    ]
    for function in functions:
        if terms == "C":
            check = lambda q, k, Z, f=function: f(advdiff.Generator(advdiff.Attention(q, k)), Z)  # noqa: E731
            assert torch.autograd.gradcheck(check, (query, key, Z), atol=1e-6)
        else:
            check = lambda b, Z, f=function: f(advdiff.Generator(None, case.velocity(kind), b), Z)  # noqa: E731
            assert torch.autograd.gradcheck(check, (beta, Z), atol=1e-6)


# --------------------------------------------------------------------- against autograd through dense matrices


def dense_propagator(case: GraphCase, kind: str, query: Tensor, key: Tensor, beta: Tensor) -> Tensor:
    """P [H, N, N] by the formula, on autograd's own tape."""
    unit = [x / x.norm(dim=-1, keepdim=True) for x in (query, key)]
    scores = 1.0 + torch.einsum("uhd,vhd->huv", *unit)
    if case.batch_vector is not None:
        scores = scores * (case.batch_vector[:, None] == case.batch_vector[None, :])
    V = torch.tensor(normalized(case.adjacency, kind))
    return scores / scores.sum(-1, keepdim=True) + beta * V


@pytest.mark.filterwarnings(
    "ignore::advdiff.AccuracyWarning"
)  # the value may be at its limit on a directed graph, the gradient not
@pytest.mark.parametrize("method", ["taylor", "krylov", "chebyshev", "rational"])
def test_gradients_keep_the_tolerance_at_long_times(case: GraphCase, kind: str, method: str) -> None:
    """Beyond what finite differences resolve: ‖∂ − ∂_dense‖ ≤ tol ‖∂_dense‖ over all inputs together."""
    query, key, beta, Z, G = inputs(case, 2, shared=False, beta=0.5)
    leaves = (query, key, beta, Z)
    P = dense_propagator(case, kind, query, key, beta)
    L = advdiff.Generator(advdiff.Attention(query, key, case.batch_vector), case.velocity(kind), beta)
    for time in (0.5, 4.0, 10.0):
        flow = torch.linalg.matrix_exp(time * P) * np.exp(-time)
        dense = torch.einsum("huv,vhf->uhf", flow, Z)
        expected = torch.autograd.grad(dense, leaves, G.detach(), retain_graph=True)
        for tol in (1e-4, 1e-8):
            value = advdiff.exponential(L, Z, time, method, tol)
            actual = torch.autograd.grad(value, leaves, G.detach(), retain_graph=True, materialize_grads=True)
            error = sum(float((a - e).square().sum()) for a, e in zip(actual, expected, strict=True)) ** 0.5
            assert error <= tol * sum(float(e.square().sum()) for e in expected) ** 0.5, (time, tol)


# ------------------------------------------------------------------------------------------------- zero vectors


@pytest.mark.parametrize("name", ["path", "batch_with_one_node_graph"])
@pytest.mark.parametrize("value", [0.0, 1.0], ids=["zero_query", "opposed_query"])
def test_vectors_without_direction_give_finite_gradients(name: str, value: float, dtype: torch.dtype) -> None:
    case = BY_NAME[name]
    query = torch.full((case.num_nodes, 2, 3), value, dtype=dtype, requires_grad=True)
    key = torch.full((case.num_nodes, 2, 3), -1.0, dtype=dtype, requires_grad=True)
    Z = torch.arange(2.0 * case.num_nodes, dtype=dtype).view(-1, 2)
    L = advdiff.Generator(advdiff.Attention(query, key, case.batch_vector), case.velocity("row"), 0.5)
    outputs = [advdiff.exponential(L, Z, 1.0, m) for m in ("dense", "taylor", "krylov", "chebyshev", "rational")]
    outputs += [advdiff.resolvent(L, Z, 1.0, m) for m in ("dense", "lowrank")]
    outputs += [advdiff.powers(L.propagator, Z, 2)[2], L @ Z]
    for output in outputs:
        assert bool(torch.isfinite(output).all())
        for gradient in torch.autograd.grad(output.square().sum(), (query, key), retain_graph=True):
            assert bool(torch.isfinite(gradient).all())
