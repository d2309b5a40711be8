"""The generator L = I − C − βV: products, transposes and dense matrices over the whole table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import advdiff
from tests.cases import BETAS, BY_NAME, PATH, GraphCase, some
from tests.reference import EPS, STATES, leaf, make_problem, normalized, randn, relative_error

f64 = torch.float64


def test_products(case: GraphCase, kind: str, dtype: torch.dtype, heads: int | None) -> None:
    for beta, state in itertools.product(BETAS, STATES):
        problem = make_problem(case, kind, beta, heads, dtype, state)
        L, Z = problem.L, problem.Z
        assert (L @ Z).dtype == dtype
        assert relative_error(L @ Z, problem.product()) <= EPS[dtype]
        assert relative_error(L.T @ Z, problem.transposed_product()) <= EPS[dtype]
        assert relative_error(L.propagator @ Z, problem.act(problem.P)) <= EPS[dtype]


def test_dense_matrices(case: GraphCase, kind: str, dtype: torch.dtype, heads: int | None) -> None:
    for beta in BETAS:
        problem = make_problem(case, kind, beta, heads, dtype)
        P = problem.P if heads else problem.P[0]
        for operator, expected in ((problem.L.propagator, P), (problem.L, problem.eye - P)):
            assert operator.to_dense().dtype == dtype
            assert relative_error(operator.to_dense(), expected) <= EPS[dtype]
            assert relative_error(operator.T.to_dense(), expected.swapaxes(-1, -2)) <= EPS[dtype]


def test_path_by_hand() -> None:
    """Zero queries: C = ¼ everywhere. On Z = (1, 2, 4, 9) with mean 4 and β = ½: LZ = Z − 4 − ½ VZ."""
    zeros = torch.zeros(4, 2, dtype=f64)
    L = advdiff.Generator(advdiff.Attention(zeros, zeros), PATH.velocity("row"), beta=0.5)
    Z = torch.tensor([1.0, 2.0, 4.0, 9.0], dtype=f64)
    # D⁻¹A Z = (2, 2.5, 5.5, 4)
    assert (L @ Z).tolist() == [1 - 4 - 1, 2 - 4 - 1.25, 4 - 4 - 2.75, 9 - 4 - 2]


@some("undirected", "directed_weighted", "isolated", "no_edges", "batch_unsorted")
@pytest.mark.parametrize("terms", ["C", "V"])
def test_one_term_alone(case: GraphCase, kind: str, dtype: torch.dtype, terms: str) -> None:
    """Non-local diffusion I − C, and local diffusion I − V at β = 1."""
    problem = make_problem(case, kind, 1.0, None, dtype, terms=terms)
    assert relative_error(problem.L @ problem.Z, problem.product()) <= EPS[dtype]
    assert relative_error(problem.L.T @ problem.Z, problem.transposed_product()) <= EPS[dtype]
    assert relative_error(problem.L.to_dense(), problem.eye - problem.P[0]) <= EPS[dtype]


def test_velocity_alone_takes_any_shape_and_precision(kind: str) -> None:
    case = BY_NAME["directed"]
    L = advdiff.Generator(None, case.velocity(kind, torch.float32), beta=0.7)
    Z = randn(8, 3, 2)
    expected = Z.numpy() - 0.7 * np.einsum("uv,v...->u...", normalized(case.adjacency, kind), Z.numpy())
    assert relative_error(L @ Z, expected) <= 1e-14


@pytest.mark.parametrize("beta", [0.3, torch.tensor(0.3), torch.tensor([0.3]), torch.nn.Parameter(torch.tensor(0.3))])
def test_beta_may_be_a_number_or_a_tensor(beta, dtype: torch.dtype) -> None:
    problem = make_problem(BY_NAME["weighted"], "row", 0.3, 3, dtype)
    L = advdiff.Generator(problem.L.coupling, problem.L.velocity, beta)
    assert (L @ problem.Z).dtype == dtype
    assert relative_error(L @ problem.Z, problem.product()) <= 1e-6
    assert relative_error(L.to_dense(), problem.eye - problem.P) <= 1e-6


def test_states_in_any_memory_layout(heads: int | None) -> None:
    problem = make_problem(BY_NAME["batch_unsorted"], heads=heads, state="heads")
    Z = problem.Z.permute(2, 0, 1).contiguous().permute(1, 2, 0)
    assert relative_error(problem.L @ Z, problem.product()) <= 1e-13


@some("path", "duplicates", "batch_unsorted", "no_edges")
@pytest.mark.parametrize("state", STATES)
def test_gradcheck(case: GraphCase, kind: str, heads: int | None, state: str) -> None:
    """Products with L and Lᵀ in query, key, β and Z."""
    n = case.num_nodes
    tail = {"vector": (), "matrix": (2,), "heads": (heads or 1, 2)}[state]
    shape = (n, 2) if heads is None else (n, heads, 2)
    query, key, Z = (leaf(*sizes) for sizes in (shape, shape, (n, *tail)))
    beta = torch.tensor(0.6, dtype=f64, requires_grad=True)
    V = case.velocity(kind)

    def products(query, key, beta, Z):
        L = advdiff.Generator(advdiff.Attention(query, key, case.batch_vector), V, beta)
        return L @ Z, L.T @ Z

    assert torch.autograd.gradcheck(products, (query, key, beta, Z), fast_mode=heads == 3)


def test_gradcheck_of_the_dense_matrix(kind: str) -> None:
    query, key = (leaf(4, 2, 2) for _ in range(2))
    beta = torch.tensor(0.6, dtype=f64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda q, k, b: advdiff.Generator(advdiff.Attention(q, k), PATH.velocity(kind), b).to_dense(),
        (query, key, beta),
    )


def test_gradient_of_beta_keeps_its_shape_and_precision() -> None:
    """A float32 parameter of shape [1] in a float64 model."""
    problem = make_problem(BY_NAME["weighted"], heads=3)
    beta = torch.full((1,), 0.5, requires_grad=True)
    L = advdiff.Generator(problem.L.coupling, problem.L.velocity, beta)
    (L @ problem.Z).sum().backward()
    assert beta.grad is not None
    assert (beta.grad.shape, beta.grad.dtype) == ((1,), torch.float32)
    V = normalized(BY_NAME["weighted"].adjacency, "symmetric")
    assert float(beta.grad) == pytest.approx(-3 * (V @ problem.Z.numpy()).sum(), rel=1e-6)


def test_nothing_of_size_n_by_n_is_formed() -> None:
    """A product on 200,000 nodes, where one dense matrix would take 160 GB."""
    n = 200_000
    ring = torch.stack([torch.arange(n), (torch.arange(n) + 1) % n])
    query = torch.ones(n, 1, 2, dtype=f64)
    L = advdiff.Generator(advdiff.Attention(query, query), advdiff.normalize_adjacency(ring, n), beta=0.5)
    product = L @ torch.ones(n, 1, dtype=f64)
    assert product.shape == (n, 1, 1)
    assert float((product + 0.5).abs().max()) <= 1e-9


def test_empty_graph(heads: int | None) -> None:
    shape = (0, 2) if heads is None else (0, heads, 2)
    V = advdiff.normalize_adjacency(torch.empty(2, 0, dtype=torch.int64), 0)
    for batch in (None, torch.empty(0, dtype=torch.int64)):
        L = advdiff.Generator(advdiff.Attention(torch.empty(shape), torch.empty(shape), batch), V)
        Z = torch.empty(0, 3)
        for product in (L @ Z, L.T @ Z, advdiff.exponential(L, Z), advdiff.resolvent(L, Z, 1.0)):
            assert product.shape == ((0, 3) if heads is None else (0, heads, 3))
        assert L.to_dense().shape == ((0, 0) if heads is None else (heads, 0, 0))


def test_it_says_what_it_is() -> None:
    L = make_problem(BY_NAME["weighted"], "row", heads=3).L
    coupling, velocity = "Attention(nodes=8, heads=3, rank=4, graphs=1)", "Velocity(nodes=8, edges=24, kind='row')"
    assert repr(L) == f"Generator(coupling={coupling}, velocity={velocity}, beta=0.5)"
