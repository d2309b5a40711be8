"""Environments and the graphs drawn from them, against definitions written out entry by entry."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from advdiff.datasets.causal import block_model
from advdiff.datasets.causal.block_model import Environment, Randomness

TRAIN = Environment(0.1, 0.01, 5)
probabilities = st.floats(0.0, 1.0)
models = st.builds(Environment, probabilities, probabilities, st.integers(1, 6))


def dice(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


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
    chosen = block_model.environments(shift)
    assert len(chosen) == 12 and chosen[0] == TRAIN
    for environment, numbers in ((chosen[1], second), (chosen[11], last)):
        assert (environment.p_within, environment.p_between) == pytest.approx(numbers[:2], rel=1e-14)
        assert environment.blocks == numbers[2]


def test_expected_edges_of_the_paper():
    ends = {}
    for shift in block_model.SHIFTS:
        counts = [round(block_model.expected_edges(e, 1000)) for e in block_model.environments(shift)]
        ends[shift] = (counts[0], counts[-1])
    assert ends == {"homophily": (13986, 32301), "density": (13986, 59774), "block": (13986, 7805)}


def test_homophily_and_edge_probability_by_hand():
    model = Environment(0.6, 0.2, 4)
    assert model.edge_probability == pytest.approx(0.6 / 4 + 0.2 * 3 / 4)
    assert model.homophily == pytest.approx(0.5)
    assert math.isnan(Environment(0.0, 0.0, 2).homophily)


@pytest.mark.parametrize("numbers", [(-0.1, 0.1, 2), (0.1, 1.1, 2), (math.nan, 0.1, 2), (0.1, 0.1, 0), (0.1, 0.1, 2.5)])
def test_bad_environments(numbers):
    with pytest.raises(ValueError, match=r"between 0 and 1|at least 1"):
        Environment(*numbers)


def test_an_unknown_shift_is_answered_with_the_list():
    with pytest.raises(ValueError, match="homophily, density, block, none"):
        block_model.environments("colour")


def test_the_control_never_moves():
    assert set(block_model.environments("none")) == {TRAIN}


# --- randomness and graphs ---------------------------------------------------------------------------------


def test_pairs_are_all_pairs_in_order():
    everyone = Randomness.draw(40, dice(0))
    assert everyone.pairs.T.tolist() == [[u, v] for v in range(40) for u in range(v)]


@given(st.integers(1, 2**25), st.floats(0.0, 1.0))
def test_numbers_of_pairs_survive_rounding(v, share):
    u = min(int(share * v), v - 1)
    assert block_model._pair(torch.tensor([v * (v - 1) // 2 + u])).flatten().tolist() == [u, v]


@pytest.mark.parametrize("num_nodes", [0, 1, 2])
@pytest.mark.parametrize("ceiling", [1e-9, 0.5, 1.0])
def test_smallest_graphs(num_nodes, ceiling):
    drawn = Randomness.draw(num_nodes, dice(0), ceiling=ceiling)
    edges = block_model.sample_graph(Environment(ceiling, ceiling, 3), drawn)
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
    edges = list(map(tuple, block_model.sample_graph(model, drawn).T.tolist()))
    assert set(edges) == expected and len(edges) == len(expected)


@given(models, probabilities, probabilities, st.integers(0, 2**16))
def test_common_random_numbers_nest_graphs(model, more_within, more_between, seed):
    denser = Environment(max(model.p_within, more_within), max(model.p_between, more_between), model.blocks)
    drawn = Randomness.draw(9, dice(seed))
    small, large = (set(map(tuple, block_model.sample_graph(e, drawn).T.tolist())) for e in (model, denser))
    assert small <= large


def test_number_of_edges_is_binomial_given_the_blocks():
    drawn = Randomness.draw(1000, dice(1), ceiling=0.2)
    for shift in block_model.SHIFTS:
        for model in block_model.environments(shift):
            sizes = torch.bincount(model.block(drawn.latent), minlength=model.blocks).double()
            within = float((sizes * (sizes - 1) / 2).sum())
            between = 499500 - within
            p, r = model.p_within, model.p_between
            deviation = math.sqrt(within * p * (1 - p) + between * r * (1 - r))
            edges = block_model.sample_graph(model, drawn).size(1) / 2
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
        block_model.sample_graph(TRAIN, Randomness.draw(5, ceiling=0.05))
