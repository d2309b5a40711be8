"""Sums and products within each graph of a batch, against a loop over the graphs."""

from __future__ import annotations

import pytest
import torch

from advdiff.operators.segments import Segments
from tests.reference import randn

BATCHES = {
    "none": (5, None),
    "one_graph": (5, [0, 0, 0, 0, 0]),
    "sorted": (6, [0, 0, 0, 1, 1, 2]),
    "unsorted": (7, [2, 0, 1, 2, 0, 0, 2]),
    "gap": (5, [1, 1, 4, 4, 4]),
    "one_node_graphs": (4, [0, 1, 2, 3]),
    "skewed": (12, [1] + [0] * 9 + [2, 1]),
    "no_nodes": (0, None),
    "empty_batch": (0, []),
}


@pytest.fixture(params=BATCHES.values(), ids=BATCHES.keys())
def setting(request: pytest.FixtureRequest) -> tuple[Segments, list[list[int]]]:
    """Segments, and by definition the nodes of each graph."""
    num_nodes, batch = request.param
    vector = None if batch is None else torch.tensor(batch, dtype=torch.int64)
    graph = [0] * num_nodes if batch is None else batch
    members = [[u for u in range(num_nodes) if graph[u] == g] for g in range(max(graph, default=0) + 1)]
    return Segments(num_nodes, vector, torch.device("cpu")), members


def test_counts_sums_and_reading_back(setting) -> None:
    segments, members = setting
    X = randn(segments.num_nodes, 2, 3)
    assert segments.num_graphs == len(members)
    assert segments.counts.tolist() == [len(nodes) for nodes in members]
    sums = segments.sum(X)
    torch.testing.assert_close(sums, torch.stack([X[nodes].sum(0) for nodes in members]))
    read = segments.per_node(sums)
    assert read.shape == X.shape
    for g, nodes in enumerate(members):
        torch.testing.assert_close(read[nodes], sums[g].expand(len(nodes), 2, 3))


@pytest.mark.parametrize("heads, shared, width", [(1, False, 2), (3, False, 2), (3, True, 2), (3, False, 11)])
def test_outer_and_apply(setting, heads: int, shared: bool, width: int) -> None:
    segments, members = setting
    n = segments.num_nodes
    A, B = randn(n, heads, 4), randn(n, 1 if shared else heads, width)
    moments = segments.outer(A, B)
    spread = B.expand(n, heads, width)
    loop = torch.stack([torch.einsum("uhr,uhf->hrf", A[nodes], spread[nodes]) for nodes in members])
    torch.testing.assert_close(moments, loop)
    applied = torch.zeros(n, heads, width, dtype=torch.float64)
    for g, nodes in enumerate(members):
        applied[nodes] = torch.einsum("uhr,hrf->uhf", A[nodes], loop[g])
    torch.testing.assert_close(segments.apply(A, moments), applied)


@pytest.mark.parametrize("keep", [1.0, -0.5, 0.0])
def test_add_apply_in_place(setting, keep: float) -> None:
    segments, _ = setting
    n = segments.num_nodes
    A, S = randn(n, 2, 3), randn(segments.num_graphs, 2, 3, 4)
    # What ``keep`` = 0 discards may be anything: an uninitialised buffer holds NaN.
    out = torch.full((n, 2, 4), float("nan"), dtype=torch.float64) if keep == 0.0 else randn(n, 2, 4)
    expected = 2.0 * segments.apply(A, S) + (keep * out if keep else 0.0)
    assert segments.add_apply_(out, A, S, scale=2.0, keep=keep) is out
    torch.testing.assert_close(out, expected)


def test_graphs_are_padded_to_the_largest(setting) -> None:
    segments, members = setting
    X = randn(segments.num_nodes, 2, 3)
    padded, mask = segments.pad(X), segments.mask
    largest = max(len(nodes) for nodes in members)
    assert padded.shape == (len(members), 2, largest, 3)
    for g, nodes in enumerate(members):
        torch.testing.assert_close(padded[g, :, : len(nodes)], X[nodes].transpose(0, 1))
        assert not padded[g, :, len(nodes) :].any()
        if mask is not None:
            assert mask[g].tolist() == [True] * len(nodes) + [False] * (largest - len(nodes))
    assert (mask is None) == all(len(nodes) == largest for nodes in members)
    torch.testing.assert_close(segments.unpad(padded), X)


def test_padding_is_differentiable(setting) -> None:
    segments, _ = setting
    X = randn(segments.num_nodes, 2, 3).requires_grad_()
    if segments.num_nodes:
        assert torch.autograd.gradcheck(lambda X: segments.unpad(segments.pad(X).square()), (X,))


def test_means_are_those_of_each_graph(setting) -> None:
    segments, members = setting
    X = randn(segments.num_nodes, 2, 3)
    means = torch.stack([X[nodes].mean(0) if nodes else torch.zeros(2, 3, dtype=X.dtype) for nodes in members])
    torch.testing.assert_close(segments.mean(X), means)
    torch.testing.assert_close(segments.centred(X), X - segments.per_node(means))


def test_padding_is_bounded() -> None:
    """One graph of a thousand nodes among a hundred of one node: tiles of the mean size, never of the largest."""
    batch = torch.cat([torch.zeros(1000, dtype=torch.int64), torch.arange(1, 101)])
    segments = Segments(1100, batch, torch.device("cpu"))
    largest = []

    class Spy(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            out = function(*args, **(kwargs or {}))
            largest.append(out.numel() if isinstance(out, torch.Tensor) else 0)
            return out

    X = torch.ones(1100, 1, 1)
    with Spy():
        total = segments.outer(X, X)
    assert total.flatten().tolist() == [1000.0] + [1.0] * 100
    assert max(largest) <= 2 * 1100 + 11
