"""Environments, graphs and sizes of shifts against definitions written out entry by entry, and against numpy."""

from __future__ import annotations

import itertools
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
lively = st.builds(Environment, st.floats(0.01, 1.0), st.floats(0.01, 1.0), st.integers(1, 6))


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


# --- environments ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shift", "second", "last"),
    [
        ("homophily", (0.1, 0.01 + 0.05 / 12, 5), (0.1, 0.01 + 0.05 * 11 / 12, 5)),
        ("density", (0.1 + 0.1 / 12, 0.01 + 0.1 / 12, 5), (0.1 + 0.1 * 11 / 12, 0.01 + 0.1 * 11 / 12, 5)),
        ("block", (0.1, 0.01, 6), (0.1, 0.01, 16)),
    ],
)
def test_environments_of_the_paper(shift, second, last):
    chosen = shifts.environments(shift)
    assert len(chosen) == 12 and chosen[0] == TRAIN
    for environment, numbers in ((chosen[1], second), (chosen[11], last)):
        assert (environment.p_within, environment.p_between) == pytest.approx(numbers[:2], rel=1e-14)
        assert environment.blocks == numbers[2]


def test_expected_edges_of_the_paper():
    ends = {s: [round(shifts.expected_edges(e, 1000)) for e in shifts.environments(s)] for s in shifts.SHIFTS}
    assert [ends[s][0] for s in shifts.SHIFTS] == [13986] * 3
    assert [ends[s][-1] for s in shifts.SHIFTS] == [32301, 59774, 7805]


def test_homophily_and_edge_probability_by_hand():
    model = Environment(0.6, 0.2, 4)
    assert model.edge_probability == pytest.approx(0.6 / 4 + 0.2 * 3 / 4)
    assert model.homophily == pytest.approx(0.5)
    assert math.isnan(Environment(0.0, 0.0, 2).homophily)


@pytest.mark.parametrize("numbers", [(-0.1, 0.1, 2), (0.1, 1.1, 2), (math.nan, 0.1, 2), (0.1, 0.1, 0), (0.1, 0.1, 2.5)])
def test_bad_environments(numbers):
    with pytest.raises(ValueError, match=r"between 0 and 1|at least 1"):
        Environment(*numbers)


def test_unknown_names_are_answered_with_the_list():
    V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    with pytest.raises(ValueError, match="homophily, density, block"):
        shifts.environments("colour")
    with pytest.raises(ValueError, match="spectral, infinity"):
        shifts.shift_size(V, V, "nuclear")


# --- randomness and graphs ---------------------------------------------------------------------------------


def test_pairs_are_all_pairs_in_order():
    everyone = Randomness.draw(40, dice(0))
    assert everyone.pairs.T.tolist() == [[u, v] for v in range(40) for u in range(v)]


@given(st.integers(1, 2**25), st.floats(0.0, 1.0))
def test_numbers_of_pairs_survive_rounding(v, share):
    u = min(int(share * v), v - 1)
    assert shifts._pair(torch.tensor([v * (v - 1) // 2 + u])).flatten().tolist() == [u, v]


@pytest.mark.parametrize("num_nodes", [0, 1, 2])
@pytest.mark.parametrize("ceiling", [1e-9, 0.5, 1.0])
def test_smallest_graphs(num_nodes, ceiling):
    drawn = Randomness.draw(num_nodes, dice(0), ceiling=ceiling)
    edges = shifts.sample_graph(Environment(ceiling, ceiling, 3), drawn)
    assert drawn.num_nodes == num_nodes and edges.shape[0] == 2 and edges.shape[1] in (0, 2)


def test_skipping_has_the_law_of_throwing_every_pair():
    """Each pair is a candidate with probability ``ceiling``: counts per pair over many draws, and the uniforms."""
    repeats, ceiling, pairs = 4000, 0.15, 45
    generator, seen, uniform = dice(3), torch.zeros(10, 10), []
    for _ in range(repeats):
        drawn = Randomness.draw(10, generator, ceiling=ceiling)
        assert len(torch.unique(drawn.pairs, dim=1).T) == drawn.pairs.size(1)
        seen[drawn.pairs[0], drawn.pairs[1]] += 1
        uniform.append(drawn.uniform)
    u, v = torch.triu_indices(10, 10, 1)
    score = (seen[u, v] - repeats * ceiling) / math.sqrt(repeats * ceiling * (1 - ceiling))
    assert float(score.abs().max()) < 4.5 and seen.sum() == seen[u, v].sum()
    assert abs(float((score**2).sum()) - pairs) < 5 * math.sqrt(2 * pairs)  # chi-squared with 45 degrees of freedom
    values = torch.cat(uniform)
    assert values.max() < ceiling and abs(values.mean() / ceiling - 0.5) < 5 / math.sqrt(12 * len(values))


@given(models, st.integers(0, 12), st.integers(0, 2**16))
def test_graph_by_definition(model, num_nodes, seed):
    drawn = Randomness.draw(num_nodes, dice(seed))
    uniform = dict(zip(map(tuple, drawn.pairs.T.tolist()), drawn.uniform.tolist(), strict=True))
    b = model.blocks
    intervals = [(k / b, (k + 1) / b) for k in range(b)]
    block = [next(k for k, (low, high) in enumerate(intervals) if low <= u < high) for u in drawn.latent.tolist()]
    expected = set()
    for u, v in itertools.combinations(range(num_nodes), 2):
        if uniform[u, v] < (model.p_within if block[u] == block[v] else model.p_between):
            expected |= {(u, v), (v, u)}
    edges = list(map(tuple, shifts.sample_graph(model, drawn).T.tolist()))
    assert set(edges) == expected and len(edges) == len(expected)


@given(models, probabilities, probabilities, st.integers(0, 2**16))
def test_common_random_numbers_nest_graphs(model, more_within, more_between, seed):
    denser = Environment(max(model.p_within, more_within), max(model.p_between, more_between), model.blocks)
    drawn = Randomness.draw(9, dice(seed))
    small, large = (set(map(tuple, shifts.sample_graph(e, drawn).T.tolist())) for e in (model, denser))
    assert small <= large


def test_number_of_edges_is_binomial_given_the_blocks():
    drawn = Randomness.draw(1000, dice(1), ceiling=0.2)
    for shift in shifts.SHIFTS:
        for model in shifts.environments(shift):
            sizes = torch.bincount(model.block(drawn.latent), minlength=model.blocks).double()
            within = float((sizes * (sizes - 1) / 2).sum())
            between = 499500 - within
            p, r = model.p_within, model.p_between
            deviation = math.sqrt(within * p * (1 - p) + between * r * (1 - r))
            edges = shifts.sample_graph(model, drawn).size(1) / 2
            assert abs(edges - within * p - between * r) < 5 * deviation


def test_latents_can_be_kept():
    drawn = Randomness.draw(50, dice(0))
    again = Randomness.draw(50, dice(1), latent=drawn.latent)
    assert torch.equal(drawn.latent, again.latent) and not torch.equal(drawn.uniform, again.uniform)
    assert torch.equal(drawn.uniform, Randomness.draw(50, dice(0)).uniform)


def test_bad_randomness():
    for ceiling in (0.0, -1.0, 1.5, math.nan):
        with pytest.raises(ValueError, match="ceiling"):
            Randomness.draw(3, ceiling=ceiling)
    for latent in (torch.rand(4), torch.tensor([0.0, 0.5, 1.0]), torch.tensor([-0.1, 0.5, 0.7])):
        with pytest.raises(ValueError, match="latent"):
            Randomness.draw(3, latent=latent)
    with pytest.raises(ValueError, match="not be negative"):
        Randomness.draw(-1)
    with pytest.raises(ValueError, match=r"draw it with ceiling >= 0\.1"):
        shifts.sample_graph(TRAIN, Randomness.draw(5, ceiling=0.05))


# --- sizes of shifts ---------------------------------------------------------------------------------------


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


@given(lively, lively)
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


@given(lively, lively)
def test_population_shift_of_equal_partitions(first, second):
    second = Environment(second.p_within, second.p_between, first.blocks)
    b = first.blocks
    slope = [(e.p_within - e.p_between) / (e.p_within + (b - 1) * e.p_between) for e in (first, second)]
    expected = abs(slope[0] - slope[1]) if b > 1 else 0.0
    assert shifts.population_shift(first, second) == pytest.approx(expected, abs=1e-12)


@given(lively, st.floats(0.05, 1.0))
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
