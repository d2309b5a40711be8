"""Sizes of shifts against definitions written out entry by entry, and against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import advdiff
from advdiff.theory import shifts
from advdiff.theory.shifts import Environment, Randomness
from tests.cases import KINDS

TRAIN = Environment(0.1, 0.01, 5)
probabilities = st.floats(0.0, 1.0)
models = st.builds(Environment, probabilities, probabilities, st.integers(1, 6))
environments_with_edges = st.builds(Environment, st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.integers(1, 6))


def dice(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dense(edge_index: Tensor, num_nodes: int) -> np.ndarray:
    A = np.zeros((num_nodes, num_nodes))
    for source, target in edge_index.T.tolist():
        A[target, source] += 1
    return A


def symmetric(A: np.ndarray) -> np.ndarray:
    """D^{-1/2} A D^{-1/2}, entry by entry."""
    d = A.sum(1)
    V = np.zeros_like(A)
    for u, v in zip(*np.nonzero(A), strict=True):
        V[u, v] = A[u, v] / math.sqrt(d[u] * d[v])
    return V


# --- sizes of shifts ---------------------------------------------------------------------------------------


def test_an_unknown_norm_is_answered_with_the_list():
    V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    with pytest.raises(ValueError, match="spectral, infinity"):
        shifts.shift_size(V, V, "nuclear")


@st.composite
def velocities(draw: st.DrawFn, kind: str | None = None) -> tuple[advdiff.Velocity, advdiff.Velocity]:
    """Two weighted graphs on the same nodes, directed or not, with isolated nodes and self-loops."""
    n, kind = draw(st.sampled_from([1, 2, 5, 90])), kind or draw(st.sampled_from(KINDS))
    generator, undirected = dice(draw(st.integers(0, 2**16))), draw(st.booleans())
    pair = []
    for _ in range(2):
        edges = torch.randint(n, (2, draw(st.integers(0, 3 * n))), generator=generator)
        weight = 10 ** torch.empty(edges.size(1), dtype=torch.float64).uniform_(-3, 3, generator=generator)
        if undirected:
            edges, weight = torch.cat([edges, edges.flip(0)], 1), weight.repeat(2)
        pair.append(advdiff.normalize_adjacency(edges, n, weight, kind))
    return pair[0], pair[1]


@given(velocities())
def test_shift_size_is_numpys_norm(pair):
    difference = (pair[1].to_dense() - pair[0].to_dense()).numpy()
    assert shifts.shift_size(*pair) == pytest.approx(np.linalg.norm(difference, 2), rel=1e-7, abs=1e-12)
    assert shifts.shift_size(*pair, "infinity") == pytest.approx(np.linalg.norm(difference, np.inf), abs=1e-12)
    assert shifts.shift_size(pair[0], pair[0]) == 0.0


@given(velocities(kind="symmetric"))
def test_a_shift_is_at_most_two(pair):
    assert shifts.shift_size(*pair) <= 2 + 1e-12


def test_rewiring_attains_two_also_with_many_nodes():
    """{01, 23} → {02, 13}, one copy by hand and a hundred for the sparse method."""
    before, after = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), torch.tensor([[0, 2, 1, 3], [2, 0, 3, 1]])
    for copies in (1, 100):
        offset = 4 * torch.arange(copies)
        graphs = [(e[:, None] + offset[:, None]).reshape(2, -1) for e in (before, after)]
        V, V2 = (advdiff.normalize_adjacency(e, 4 * copies, dtype=torch.float64) for e in graphs)
        assert shifts.shift_size(V, V2) == pytest.approx(2.0, rel=1e-12)
        assert shifts.adjacency_shift(*graphs, 4 * copies) == pytest.approx(2.0, rel=1e-12)


def test_tiny_shifts_do_not_underflow():
    ring = torch.arange(200)
    edges = torch.stack([torch.cat([ring, (ring + 1) % 200]), torch.cat([(ring + 1) % 200, ring])])
    weight = torch.ones(400, dtype=torch.float64)
    other = weight.clone()
    other[0] = other[200] = 1 + 1e-9  # the edge 0 - 1
    V, V2 = (advdiff.normalize_adjacency(edges, 200, w) for w in (weight, other))
    difference = (V2.to_dense() - V.to_dense()).numpy()
    assert shifts.shift_size(V, V2) == pytest.approx(np.linalg.norm(difference, 2), rel=1e-6)


def test_sizes_between_sampled_graphs_against_dense_matrices():
    drawn = Randomness.draw(300, dice(5))
    graphs = [shifts.sample_graph(e, drawn) for e in (TRAIN, Environment(0.1, 0.05, 5), Environment(0.1, 0.01, 9))]
    A = [dense(e, 300) for e in graphs]
    V = [advdiff.normalize_adjacency(e, 300, dtype=torch.float64) for e in graphs]
    for k in (1, 2):
        exact = np.linalg.norm(symmetric(A[k]) - symmetric(A[0]), 2)
        assert shifts.shift_size(V[0], V[k]) == pytest.approx(exact, rel=1e-7)
        assert shifts.adjacency_shift(graphs[0], graphs[k], 300) == pytest.approx(np.linalg.norm(A[k] - A[0], 2))


def test_graphs_that_cannot_be_compared():
    edges = torch.tensor([[0, 1], [1, 0]])
    V = advdiff.normalize_adjacency(edges, 2)
    with pytest.raises(ValueError, match="2 and 3 nodes"):
        shifts.shift_size(V, advdiff.normalize_adjacency(edges, 3))
    with pytest.raises(ValueError, match="normalise both alike"):
        shifts.shift_size(V, advdiff.normalize_adjacency(edges, 2, kind="row"))
    with pytest.raises(ValueError, match="meta"):
        shifts.shift_size(V, advdiff.normalize_adjacency(edges.to("meta"), 2))
    with pytest.raises(ValueError, match="valid numbers are 0 to 1"):
        shifts.adjacency_shift(edges, edges + 1, 2)


# --- what the environments predict -------------------------------------------------------------------------


@given(environments_with_edges, environments_with_edges)
def test_population_shift_on_a_fine_grid(first, second):
    """60 cells refine every partition into up to six blocks."""
    t = (np.arange(60) + 0.5) / 60

    def kernel(model: Environment) -> np.ndarray:
        block = np.floor(t * model.blocks)
        W = np.where(block[:, None] == block, model.p_within, model.p_between)
        return W / W.mean() / 60

    expected = np.linalg.norm(kernel(second) - kernel(first), 2)
    assert shifts.population_shift(first, second) == pytest.approx(expected, abs=1e-12)
    assert shifts.population_shift(second, first) == pytest.approx(expected, abs=1e-12)


@given(environments_with_edges, environments_with_edges)
def test_population_shift_of_equal_partitions(first, second):
    second = Environment(second.p_within, second.p_between, first.blocks)
    b = first.blocks
    slope = [(e.p_within - e.p_between) / (e.p_within + (b - 1) * e.p_between) for e in (first, second)]
    expected = abs(slope[0] - slope[1]) if b > 1 else 0.0
    assert shifts.population_shift(first, second) == pytest.approx(expected, abs=1e-12)


@given(environments_with_edges, st.floats(0.05, 1.0))
def test_pure_density_is_no_population_shift(model, factor):
    thinner = Environment(factor * model.p_within, factor * model.p_between, model.blocks)
    assert shifts.population_shift(model, thinner) < 1e-12


@pytest.mark.parametrize("common", [True, False])
def test_sampling_noise_is_a_row_variance(common):
    """N σ² against the variance of a_uv'/(N q') − a_uv/(N q), averaged over pairs, by simulation."""
    first, second, size = Environment(0.3, 0.1, 2), Environment(0.2, 0.4, 3), 400_000
    rng = np.random.default_rng(0)
    s, t, thrown, again = rng.random((4, size))
    W, W2 = (
        np.where(np.floor(s * e.blocks) == np.floor(t * e.blocks), e.p_within, e.p_between) for e in (first, second)
    )
    a, a2 = thrown < W, (thrown if common else again) < W2
    q, q2 = first.edge_probability, second.edge_probability
    variance = np.mean(((a2 - W2) / q2 - (a - W) / q) ** 2)
    assert shifts.sampling_noise(first, second, 50, common=common) ** 2 * 50 == pytest.approx(variance, rel=0.02)


def test_no_noise_without_a_difference():
    assert shifts.sampling_noise(TRAIN, TRAIN, 1000, common=True) == 0.0
    assert shifts.predicted_shift(TRAIN, TRAIN, 1000, common=True) == 0.0
    null = shifts.predicted_shift(TRAIN, TRAIN, 1000, common=False)
    assert null == pytest.approx(2 * math.sqrt(2 * (0.02 * 0.9 + 0.008 * 0.99) / 1000) / 0.028)
    assert null < 2 * math.sqrt(2 / 28)


def test_environments_without_edges_have_no_shift():
    with pytest.raises(ValueError, match="has no edges"):
        shifts.population_shift(TRAIN, Environment(0.0, 0.0, 5))


@pytest.mark.parametrize(
    ("shift", "number", "common"),
    [("homophily", 12, True), ("density", 12, True), ("block", 2, True), ("homophily", 1, False), ("block", 12, False)],
)
def test_prediction_against_a_graph(shift, number, common):
    drawn = Randomness.draw(1000, dice(0), ceiling=0.2)
    other = drawn if common else Randomness.draw(1000, dice(1), latent=drawn.latent, ceiling=0.2)
    model = shifts.environments(shift)[number - 1]
    V, V2 = (advdiff.normalize_adjacency(shifts.sample_graph(e, r), 1000) for e, r in ((TRAIN, drawn), (model, other)))
    predicted = shifts.predicted_shift(TRAIN, model, 1000, common=common)
    assert shifts.shift_size(V, V2) == pytest.approx(predicted, rel=0.05)
