"""Products of attention on edges: against loops, with gradients, on the awkward graphs, and their memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from advdiff.nn.baselines import edges as module
from advdiff.nn.baselines.edges import Edges, edges_of
from advdiff.nn.cache import forget
from advdiff.operators.pattern import Pattern
from tests.cases import BY_NAME, CASES, GraphCase, each, some
from tests.reference import leaf, randn

HEADS, WIDTH = 3, 4
every_path = pytest.mark.parametrize("kernels", [True, False], ids=["csr", "gather"])


def sorted_edges(case: GraphCase, self_loops: bool = False) -> Edges:
    return edges_of(case.edge_index, case.num_nodes, case.edge_weight, self_loops)


@pytest.fixture
def gather(monkeypatch: pytest.MonkeyPatch, kernels: bool) -> None:
    """The path of devices without sparse kernels."""
    if not kernels:
        monkeypatch.setattr(Pattern, "has_kernels", lambda self, X: False)


@each(CASES)
@pytest.mark.parametrize("self_loops", [False, True], ids=["", "loops"])
@every_path
@pytest.mark.usefixtures("gather")
def test_products_and_softmax(case: GraphCase, self_loops: bool) -> None:
    edges, n = sorted_edges(case, self_loops), case.num_nodes
    query, key, Z = (randn(HEADS, n, WIDTH) for _ in range(3))
    score = edges.dot(query, key)
    pairs = list(zip(edges.target.tolist(), edges.source.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    A = case.adjacency - np.diag(np.diag(case.adjacency)) + np.eye(n) if self_loops else case.adjacency
    dense = torch.zeros(HEADS, n, n, dtype=torch.float64)
    for e, (u, v) in enumerate(pairs):
        for h in range(HEADS):
            assert score[h, e] == pytest.approx(float(query[h, u] @ key[h, v]))
            dense[h, u, v] = A[u, v] * score[h, e].exp()
    total = dense.sum(2, keepdim=True)
    dense = dense / torch.where(total > 0, total, 1.0)
    torch.testing.assert_close(edges.sum(edges.softmax(score), Z), dense @ Z)


def test_self_loops_replace_those_of_the_graph() -> None:
    edges = sorted_edges(BY_NAME["self_loops"], self_loops=True)
    loops = edges.target[edges.source == edges.target]
    assert loops.tolist() == list(range(5))


@some("directed_weighted", "duplicates", "isolated", "batch_unsorted")
@every_path
@pytest.mark.usefixtures("gather")
def test_gradients(case: GraphCase) -> None:
    edges, n = sorted_edges(case), case.num_nodes

    def attend(query: Tensor, key: Tensor, Z: Tensor) -> Tensor:
        return edges.sum(edges.softmax(edges.dot(query, key)), Z)

    assert torch.autograd.gradcheck(attend, tuple(leaf(2, n, 3) for _ in range(3)))


def test_large_scores_do_not_overflow() -> None:
    edges = sorted_edges(BY_NAME["undirected"])
    score = 1e4 * torch.randn(1, edges.num_edges)
    C = edges.softmax(score)
    assert C.isfinite().all()
    torch.testing.assert_close(edges.sum(C, torch.ones(1, 8, 1)), torch.ones(1, 8, 1))


def test_edges_are_sorted_once() -> None:
    forget()
    edge_index, weight = BY_NAME["weighted"].edge_index, BY_NAME["weighted"].edge_weight
    first = edges_of(edge_index, 8, weight)
    assert edges_of(edge_index, 8, weight) is first
    assert edges_of(edge_index, 8, weight, self_loops=True) is not first
    assert edges_of(edge_index, 8, None) is not first
    weight[0] = 5.0
    changed = edges_of(edge_index, 8, weight)
    assert changed is not first and not torch.equal(changed.weight, first.weight)
    forget()
    assert not module._remembered


def test_nothing_of_size_edges_times_width_is_kept() -> None:
    """What autograd saves grows with E only by numbers, not by rows."""
    nodes, width = 50, 64
    edge_index = torch.randint(nodes, (2, 9000))
    edges, saved = edges_of(edge_index, nodes, None), []
    inputs = [torch.randn(1, nodes, width, requires_grad=True) for _ in range(3)]
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t.numel()) or t, lambda t: t):
        edges.sum(edges.softmax(edges.dot(*inputs[:2])), inputs[2])
    assert max(saved) <= max(edges.num_edges, nodes * width)
