"""Small graphs as dense blocks: the same numbers and gradients as the factors and as the whole N×N matrix."""

from __future__ import annotations

import pytest
import torch

import advdiff
from advdiff.operators.blocks import Blocks
from advdiff.operators.segments import Segments
from tests.reference import randn

SIZES = (3, 1, 5, 2)


def batch_of_graphs(shuffled: bool = False):
    """Four small graphs (one a single node), directed, with a duplicate edge; nodes in order or mixed."""
    batch = torch.repeat_interleave(torch.arange(len(SIZES)), torch.tensor(SIZES))
    edges = torch.tensor([[0, 1, 2, 4, 5, 6, 8, 9, 10, 4], [1, 2, 0, 5, 4, 7, 7, 10, 9, 5]])
    if shuffled:
        order = torch.randperm(len(batch), generator=torch.Generator().manual_seed(1))
        batch, edges = batch[order.argsort()], order[edges]
    return batch, edges


def generator(batch, edges, heads=2, width=6, kind="symmetric", requires_grad=False):
    shape = (len(batch), heads, width) if heads else (len(batch), width)
    query, key = (randn(*shape).requires_grad_(requires_grad) for _ in range(2))
    V = advdiff.normalize_adjacency(edges, len(batch), kind=kind)
    return advdiff.Generator(advdiff.Attention(query, key, batch), V, 0.7), (query, key)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("heads", [None, 1, 3])
@pytest.mark.parametrize("kind", ["symmetric", "row"])
def test_blocks_are_those_of_the_whole_matrix(shuffled, heads, kind):
    batch, edges = batch_of_graphs(shuffled)
    P = generator(batch, edges, heads, kind=kind)[0].propagator
    assert P.has_small_graphs
    blocks, whole = P.blocks(torch.float64), P.to_dense().view(-1, len(batch), len(batch))
    assert blocks.matrix.shape == (4, heads or 1, 5, 5)
    for graph in range(4):
        nodes = (batch == graph).nonzero()[:, 0]
        n = len(nodes)
        torch.testing.assert_close(blocks.matrix[graph, :, :n, :n], whole[:, nodes][:, :, nodes])
        assert not blocks.matrix[graph, :, n:].any() and not blocks.matrix[graph, :, :, n:].any()


@pytest.mark.parametrize("shuffled", [False, True])
def test_padding_and_taking_it_away_are_inverse(shuffled):
    batch, _ = batch_of_graphs(shuffled)
    segments = Segments(len(batch), batch, batch.device)
    X = randn(len(batch), 2, 3)
    torch.testing.assert_close(segments.unpad(segments.pad(X)), X)


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("with_source", [False, True])
@pytest.mark.parametrize("per_head", [False, True])
def test_powers_and_their_gradients_agree_with_the_dense_matrix(shuffled, with_source, per_head):
    batch, edges = batch_of_graphs(shuffled)
    L, tensors = generator(batch, edges, heads=2, requires_grad=True)
    shape = (len(batch), 2, 4) if per_head else (len(batch), 4)
    Z, source = randn(*shape).requires_grad_(), randn(*shape) if with_source else None
    weights = [randn(len(batch), 2, 4) for _ in range(3)]

    def loss(states):
        return sum((state * weight).sum() for state, weight in zip(states, weights, strict=True))

    fast = torch.autograd.grad(
        loss(advdiff.powers(L.propagator, Z, 3, source=source)[1:]), (*tensors, Z), retain_graph=True
    )
    dense, states = L.propagator.to_dense(), []
    state = Z if per_head else Z.unsqueeze(1).expand(-1, 2, -1)
    extra = 0.0 if source is None else (source if per_head else source.unsqueeze(1))
    for _ in range(3):
        state = torch.einsum("huv,vhf->uhf", dense, state + extra)
        states.append(state)
    for ours, theirs in zip(fast, torch.autograd.grad(loss(states), (*tensors, Z)), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_one_product_is_the_first_power():
    batch, edges = batch_of_graphs()
    P = generator(batch, edges)[0].propagator
    Z = randn(len(batch), 4)
    torch.testing.assert_close(P @ Z, advdiff.powers(P, Z, 1)[1])
    torch.testing.assert_close(P @ Z, torch.einsum("huv,vf->uhf", P.to_dense(), Z))


@pytest.mark.parametrize("theta", [1.0, 3.0])
def test_dense_and_lowrank_solve_the_same_system(theta):
    batch, edges = batch_of_graphs(shuffled=True)
    L, tensors = generator(batch, edges, requires_grad=True)
    Z = randn(len(batch), 3)
    found, grads = [], []
    for method in ("dense", "lowrank", "auto"):
        solution = advdiff.resolvent(L, Z, theta, method=method, tol=1e-12, return_solution=True)
        X, statistics = solution.value, solution.statistics
        found.append(X.detach())
        grads.append(torch.autograd.grad(X.square().sum(), tensors, retain_graph=True))
    assert statistics.method == "dense" and "in each" in statistics.reason
    for each in range(1, 3):
        torch.testing.assert_close(found[each], found[0])
        torch.testing.assert_close(grads[each], grads[0])


def test_the_dense_exponential_of_a_batch_is_that_of_the_whole():
    batch, edges = batch_of_graphs()
    L, _ = generator(batch, edges)
    Z = randn(len(batch), 3)
    whole = torch.linalg.matrix_exp(-1.5 * L.to_dense())
    torch.testing.assert_close(advdiff.exponential(L, Z, 1.5, method="dense"), torch.einsum("huv,vf->uhf", whole, Z))


def test_larger_graphs_keep_their_factors():
    batch, edges = batch_of_graphs()
    assert not generator(batch, edges, width=3)[0].propagator.has_small_graphs  # five nodes, rank 4
    assert generator(batch, edges, width=4)[0].propagator.has_small_graphs


def test_padding_costs_no_memory_beyond_the_limit():
    """One graph of 5,000 nodes among 200 small ones: blocks of the largest would be 40 GB, and are refused."""
    batch = torch.cat([torch.zeros(5000, dtype=torch.int64), torch.arange(1, 201)])
    L = advdiff.Generator(advdiff.Attention(randn(5200, 2), randn(5200, 2), batch), None)
    with pytest.raises(ValueError, match="method='dense'"):
        advdiff.resolvent(L, randn(5200, 1), 1.0, method="dense")


def test_blocks_multiply_what_heads_share_once():
    segments = Segments(3, torch.tensor([0, 0, 1]), torch.device("cpu"))
    blocks = Blocks(segments, randn(2, 3, 2, 2))
    Z = randn(2, 1, 2, 4)
    torch.testing.assert_close(blocks @ Z, blocks.matrix @ Z.expand(-1, 3, -1, -1))
