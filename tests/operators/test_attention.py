"""The attention C against its formula, entry by entry."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import advdiff
from tests.cases import BATCHED, BY_NAME, GraphCase, each, some
from tests.reference import EPS, STATES, attention, hub_attention, leaf, make_problem, randn, relative_error

f64 = torch.float64


def coupling(query: list, key: list, batch: list[int] | None = None, dtype: torch.dtype = f64) -> advdiff.Attention:
    query, key = torch.tensor(query, dtype=dtype), torch.tensor(key, dtype=dtype)
    return advdiff.Attention(query, key, None if batch is None else torch.tensor(batch))


def test_is_the_formula(case: GraphCase, heads: int | None, dtype: torch.dtype) -> None:
    for state in STATES:
        problem = make_problem(case, heads=heads, dtype=dtype, state=state, terms="C")
        C = problem.L.coupling
        assert (C.to_dense().dtype, (C @ problem.Z).dtype) == (dtype, dtype)
        assert relative_error(C.to_dense(), problem.P if heads else problem.P[0]) <= EPS[dtype]
        assert relative_error(C @ problem.Z, problem.act(problem.P)) <= EPS[dtype]
        assert relative_error(C.T @ problem.Z, problem.act(problem.P.swapaxes(1, 2))) <= EPS[dtype]


def test_four_nodes_by_hand() -> None:
    """Queries and keys ±1 on a line: 1 + qk is 2 for equal signs and 0 for opposite ones."""
    C = coupling([[1.0], [-3.0], [0.0], [2.0]], [[5.0], [1.0], [-1.0], [-2.0]])
    # Signs of the keys: + + − −. The zero query of node 2 attends uniformly.
    expected = [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5], [0.25] * 4, [0.5, 0.5, 0, 0]]
    assert C.to_dense().tolist() == expected
    assert (C @ torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=f64)).tolist() == [2, 6, 4, 2]


def test_right_angles_by_hand() -> None:
    """Orthogonal vectors give 1, equal ones 2: row sums 2 + 1 + 1 = 4."""
    basis = [[3.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 7.0]]
    assert coupling(basis, basis).to_dense().tolist() == [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]


def test_rows_are_probabilities_of_rank_at_most_d_plus_one(case: GraphCase, heads: int | None) -> None:
    C = make_problem(case, heads=heads, terms="C").L.coupling
    dense = C.to_dense().numpy().reshape(-1, case.num_nodes, case.num_nodes)
    assert dense.min() >= -1e-15
    assert np.abs(dense.sum(-1) - 1.0).max() <= 1e-14
    graphs = 1 if case.batch is None else len(set(case.batch))
    assert all(np.linalg.matrix_rank(head, tol=1e-10) <= C.rank * graphs for head in dense)
    assert C.rank == 4


@each(BATCHED)
def test_acts_within_each_graph(case: GraphCase) -> None:
    dense = make_problem(case, terms="C").L.coupling.to_dense()
    apart = np.not_equal.outer(case.batch, case.batch)
    assert np.all(dense.numpy()[apart] == 0.0)


@pytest.mark.parametrize(
    "query, key, batch, expected",
    [
        pytest.param([[0.0, 0.0]] * 3, [[1.0, 0.0]] * 3, None, np.full((3, 3), 1 / 3), id="zero_queries"),
        pytest.param([[1.0, 2.0]] * 3, [[0.0, 0.0]] * 3, None, np.full((3, 3), 1 / 3), id="zero_keys"),
        pytest.param([[1.0, 2.0]] * 3, [[-2.0, -4.0]] * 3, None, np.full((3, 3), 1 / 3), id="opposed_to_every_key"),
        pytest.param([[1.0]], [[-1.0]], None, np.ones((1, 1)), id="one_node_opposed"),
        pytest.param([[1.0]] * 3, [[-1.0], [1.0], [-1.0]], [0, 0, 1], [[0, 1, 0]] * 2 + [[0, 0, 1]], id="in_a_batch"),
    ],
)
def test_vectors_without_direction_attend_uniformly(query, key, batch, expected, dtype: torch.dtype) -> None:
    dense = coupling(query, key, batch, dtype).to_dense()
    assert relative_error(dense, np.array(expected, dtype=float)) <= EPS[dtype]


def test_only_the_direction_counts() -> None:
    rng = np.random.default_rng(0)
    query, key = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    stretch = 10.0 ** rng.uniform(-3, 3, size=(5, 1))
    stretched = coupling((query * stretch).tolist(), (key / stretch).tolist())
    assert relative_error(stretched.to_dense(), attention(query, key)) <= 1e-13


def test_hub_attention_is_a_legal_attention() -> None:
    """Theory §4: every row attends to the hub alone."""
    C = hub_attention(7).L.coupling.to_dense()
    assert torch.equal(C, torch.eye(8, dtype=f64)[0].expand(8, 8))


@some("undirected", "batch_unsorted")
def test_heads_are_separate_attentions(case: GraphCase) -> None:
    query, key = (randn(case.num_nodes, 3, 2) for _ in range(2))
    together = advdiff.Attention(query, key, case.batch_vector).to_dense()
    for h in range(3):
        alone = advdiff.Attention(query[:, h], key[:, h], case.batch_vector).to_dense()
        torch.testing.assert_close(together[h], alone, rtol=1e-13, atol=0.0)


@some("path", "batch_with_one_node_graph", "batch_unsorted")
@pytest.mark.parametrize("width", [2, 9])
def test_gradcheck(case: GraphCase, heads: int | None, width: int) -> None:
    shape = (case.num_nodes, width) if heads is None else (case.num_nodes, heads, width)
    query, key, Z = (leaf(*shape) for _ in range(3))

    def products(query, key, Z):
        C = advdiff.Attention(query, key, case.batch_vector)
        return C @ Z, C.T @ Z, C.to_dense()

    assert torch.autograd.gradcheck(products, (query, key, Z), fast_mode=width > 2)


@pytest.mark.parametrize("query", [[[0.0, 0.0]] * 4, [[1.0, 1.0]] * 4], ids=["zero", "opposed"])
def test_gradients_of_vectors_without_direction_are_finite(query: list, dtype: torch.dtype) -> None:
    query = torch.tensor(query, dtype=dtype, requires_grad=True)
    key = torch.tensor([[-1.0, -1.0]] * 3 + [[0.0, 0.0]], dtype=dtype, requires_grad=True)
    C = advdiff.Attention(query, key)
    loss = (C @ torch.arange(4, dtype=dtype)).pow(2).sum()
    for gradient in torch.autograd.grad(loss, (query, key)):
        assert bool(torch.isfinite(gradient).all())


def test_it_says_what_it_is() -> None:
    C = make_problem(BY_NAME["batch_with_one_node_graph"], heads=3, terms="C").L.coupling
    assert repr(C) == "Attention(nodes=9, heads=3, rank=4, graphs=3)"
