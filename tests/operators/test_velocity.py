"""The sparse products V Z and Vᵀ Z, their gradients, and what V knows about itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import advdiff
from tests.cases import BY_NAME, PATH, GraphCase, some, star
from tests.reference import EPS, leaf, normalized, randn, relative_error

TAILS = [(), (3,), (2, 3), (0,)]  # Z of shape [N], [N, F], [N, H, F] and without columns


def test_products(case: GraphCase, kind: str, dtype: torch.dtype) -> None:
    V, dense = case.velocity(kind, dtype), normalized(case.adjacency, kind)
    for operator, matrix in ((V, dense), (V.T, dense.T), (V.T.T, dense)):
        assert relative_error(operator.to_dense(), matrix) <= EPS[dtype]
        for tail in TAILS:
            Z = randn(case.num_nodes, *tail, dtype=dtype)
            product = operator @ Z
            assert product.dtype == dtype
            assert relative_error(product, np.einsum("uv,v...->u...", matrix, Z.double().numpy())) <= EPS[dtype]


def test_product_by_hand() -> None:
    Z = torch.tensor([[1.0, 0.0], [2.0, 0.0], [4.0, 0.0], [8.0, 1.0]], dtype=torch.float64)
    assert (PATH.velocity("row") @ Z).tolist() == [[2, 0], [2.5, 0], [5, 0.5], [4, 0]]
    assert (PATH.velocity("row").T @ Z).tolist() == [[1, 0], [3, 0], [9, 1], [2, 0]]


@some("undirected", "directed_weighted", "duplicates", "no_edges")
def test_products_follow_the_precision_of_the_state(case: GraphCase, kind: str, dtype: torch.dtype) -> None:
    """One V serves both precisions, and its entries are not rounded on the way."""
    other = {torch.float64: torch.float32, torch.float32: torch.float64}[dtype]
    Z = randn(case.num_nodes, 2, dtype=other)
    product = case.velocity(kind, dtype) @ Z
    assert product.dtype == other
    assert relative_error(product, normalized(case.adjacency, kind) @ Z.double().numpy()) <= EPS[other]


@pytest.mark.parametrize("view", [lambda Z: Z.T.contiguous().T, lambda Z: Z[:, ::2], lambda Z: Z[:, :1].expand(-1, 3)])
def test_states_in_any_memory_layout(view, kind: str) -> None:
    case = BY_NAME["directed_weighted"]
    Z = view(randn(case.num_nodes, 4))
    assert not Z.is_contiguous()
    assert relative_error(case.velocity(kind) @ Z, normalized(case.adjacency, kind) @ Z.numpy()) <= 1e-14


def test_gradient_is_the_transposed_product(case: GraphCase, kind: str) -> None:
    for tail in TAILS:
        Z = leaf(case.num_nodes, *tail)
        G = torch.ones_like(Z).cumsum(0)
        (gradient,) = torch.autograd.grad(case.velocity(kind) @ Z, Z, G)
        expected = np.einsum("vu,v...->u...", normalized(case.adjacency, kind), G.numpy())
        assert relative_error(gradient, expected) <= 1e-13


def test_gradcheck(kind: str) -> None:
    V = BY_NAME["directed_weighted"].velocity(kind)
    Z = leaf(9, 2)
    assert torch.autograd.gradcheck(lambda Z: V @ Z, (Z,))
    assert torch.autograd.gradgradcheck(lambda Z: (V @ Z) ** 2, (Z,))


@pytest.mark.parametrize("mkl", [True, False], ids=["mkl", "torch"])
def test_what_is_not_kept_may_be_anything(
    case: GraphCase, kind: str, mkl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An uninitialised buffer may hold NaN, and 0 · NaN is NaN."""
    if not mkl:
        monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: False)
    V, Z = case.velocity(kind), randn(case.num_nodes, 3)
    out = torch.full_like(Z, float("nan"))
    torch.testing.assert_close(V.add_product_(out, Z, scale=2.0, keep=0.0), 2.0 * (V @ Z))
    assert not V.add_product_(torch.full_like(Z, float("nan")), Z, scale=0.0, keep=0.0).any()


def test_undirected_is_recognised(case: GraphCase, kind: str) -> None:
    """A stored zero may hide a symmetric matrix, but a directed one never passes for undirected."""
    V = case.velocity(kind)
    assert V.undirected == case.is_undirected
    assert V.T.undirected == V.undirected


def test_undirected_looks_at_the_weights() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    for weights, undirected in (([1.0, 1.0], True), ([1.0, 1.0 + 1e-9], False), ([2.0, 1.0], False)):
        V = advdiff.normalize_adjacency(edges, 2, torch.tensor(weights, dtype=torch.float64))
        assert V.undirected is undirected
    once = advdiff.normalize_adjacency(torch.tensor([[0, 1, 1], [1, 0, 0]]), 2, torch.tensor([1.0, 0.25, 0.75]))
    assert once.undirected, "duplicate edges add up before they are compared"


def test_skew_bounds_the_condition_of_the_similarity(kind: str) -> None:
    """D^{1/2} D⁻¹A D^{-1/2} is symmetric, at the cost √(d_max/d_min): 3 for a star with 9 leaves."""
    V = star(9).velocity(kind)
    assert V.skew == pytest.approx(3.0 if kind == "row" else 1.0)
    assert np.linalg.norm(V.to_dense().numpy(), 2) <= V.skew * 1.0 + 1e-12


def test_it_says_what_it_is() -> None:
    V = PATH.velocity("row")
    assert repr(V) == "Velocity(nodes=4, edges=6, kind='row')"
    assert (V.num_nodes, V.num_edges, V.device.type) == (4, 6, "cpu")
    assert V.T.edge_index.tolist() == V.edge_index.flip(0).tolist()
