"""The synthetic study: what is fixed, what drifts, and labels against their definition."""

from __future__ import annotations

import itertools

import pytest
import torch

from advdiff.datasets import Dataset, load, synthetic
from advdiff.datasets.causal import block_model

OPTIONS = [(labels, edges) for labels in ("per_graph", "shared") for edges in ("independent", "common")]


def small(**options: object) -> Dataset:
    return load("synthetic", **{"num_nodes": 60, **options})


def graph(data: Dataset, number: int):
    return data.environments[f"#{number}"][0]


@pytest.mark.parametrize("shift", [*block_model.SHIFTS, "none"])
def test_the_papers_roles_and_sizes(shift):
    data = load("synthetic", shift=shift)
    assert list(data.environments) == [f"#{k}" for k in range(1, 13)]
    assert (data.train, data.valid, len(data.test), data.test[0], data.test[-1]) == (("#1",), ("#2",), 10, "#3", "#12")
    for number, environment in enumerate(block_model.environments(shift), start=1):
        g = graph(data, number)
        assert g.x.shape == (1000, data.in_channels) and g.y.shape == (1000, data.out_channels)
        expected = block_model.expected_edges(environment, 1000)
        # The number of pairs within blocks varies with the latents as well: some more than a binomial.
        assert abs(g.num_edges / 2 - expected) < 0.05 * expected
        assert g.is_undirected() and not g.has_self_loops()
        assert torch.equal(g.block, environment.block(g.latent))


@pytest.mark.parametrize(("labels", "edges"), OPTIONS)
def test_only_the_graph_changes(labels, edges):
    data = small(labels=labels, edges=edges)
    first = graph(data, 1)
    for number in range(2, 13):
        other = graph(data, number)
        assert torch.equal(first.x, other.x) and torch.equal(first.latent, other.latent)
        assert not torch.equal(first.edge_index, other.edge_index)
        assert torch.equal(first.y, other.y) == (labels == "shared")


def test_labels_follow_their_own_graph():
    """Equal graphs have equal labels: with common edges and no shift, every graph is graph #1."""
    data = small(shift="none", edges="common")
    for number in range(2, 13):
        assert torch.equal(graph(data, number).edge_index, graph(data, 1).edge_index)
        torch.testing.assert_close(graph(data, number).y, graph(data, 1).y, rtol=0, atol=1e-6)


def test_common_edges_only_add_where_probabilities_grow():
    data = small(shift="homophily", edges="common")
    sets = [set(map(tuple, graph(data, k).edge_index.T.tolist())) for k in range(1, 13)]
    assert all(a < b for a, b in itertools.pairwise(sets))


def test_a_label_that_does_not_know_the_graph():
    data = small(graph_share=0.0)
    for number in range(2, 13):
        torch.testing.assert_close(graph(data, number).y, graph(data, 1).y, rtol=0, atol=1e-6)


def test_seeds():
    a, again, b = small(seed=0), small(seed=0), small(seed=1)
    for number in (1, 7):
        assert torch.equal(graph(a, number).y, graph(again, number).y)
        assert torch.equal(graph(a, number).edge_index, graph(again, number).edge_index)
    assert not torch.equal(graph(a, 1).x, graph(b, 1).x)
    # Nodes, features and the first graph belong to the seed, not to the protocol.
    for shift, labels, edges in [("block", "shared", "common"), ("none", "per_graph", "independent")]:
        other = small(seed=0, shift=shift, labels=labels, edges=edges)
        for key in ("x", "edge_index", "y"):
            assert torch.equal(graph(other, 1)[key], graph(a, 1)[key])


def test_loading_leaves_the_global_random_state_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    small()
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shift": "colour"}, "homophily, density, block, none"),
        ({"labels": "none"}, "per_graph, shared"),
        ({"edges": "some"}, "independent, common"),
        ({"num_nodes": 1}, "at least 2"),
        ({"seed": -1}, "negative"),
        ({"graph_share": 1.5}, "between 0 and 1"),
        ({"blocks": 3}, "its options are: shift, labels, edges, seed, num_nodes, graph_share"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ValueError, match=message):
        load("synthetic", **options)


def test_unknown_names():
    with pytest.raises(ValueError, match="choose one of: synthetic"):
        load("sythetic")
    with pytest.raises(ValueError, match="unknown environment '#13'"):
        small().graphs("#1", "#13")
    assert len(small().graphs("#1", "#2")) == 2


def test_the_world_of_a_seed_makes_its_labels():
    latent, mechanism = synthetic.world(seed=3, num_nodes=60, graph_share=0.7)
    for labels, source in (("per_graph", "#7"), ("shared", "#1")):
        data = load("synthetic", shift="block", labels=labels, seed=3, num_nodes=60, graph_share=0.7)
        graph = data.graphs("#7")[0]
        expected = mechanism.labels(latent, data.graphs(source)[0].edge_index)
        assert torch.equal(graph.latent, latent) and torch.equal(graph.y[:, 0], expected.float())
        assert torch.equal(graph.x, mechanism.features(latent).float())
