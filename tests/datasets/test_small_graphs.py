"""Small random graphs: connected, of the promised sizes, with labels that only the edges tell."""

import networkx as nx
import pytest
import torch
from torch_geometric.utils import to_networkx

from advdiff.datasets import load
from advdiff.datasets.small_graphs import SIZES


def test_sizes_counts_and_connectedness():
    data = load("small_graphs", num_graphs=40, seed=3)
    assert (len(data.graphs("train")), len(data.graphs("valid")), len(data.graphs("test"))) == (40, 10, 10)
    assert data.task == "graph" and data.metric == "mse"
    for name, (low, high) in SIZES.items():
        for graph in data.graphs(name):
            assert low <= graph.num_nodes <= high
            drawn = to_networkx(graph, to_undirected=True)
            assert nx.is_connected(drawn) and not graph.has_self_loops() and graph.is_undirected()
            assert 2 * drawn.number_of_edges() == graph.num_edges


def test_the_label_by_hand():
    graph = load("small_graphs", seed=1).graphs("train")[0]
    x, edges = graph.x[:, 0], graph.edge_index
    means = torch.stack([x[edges[0, edges[1] == u]].mean() for u in range(graph.num_nodes)])
    assert torch.allclose(graph.y, 6 * (means.abs().mean() - 0.5))


def test_seeds():
    first, again, other = (load("small_graphs", seed=seed).graphs("train")[5] for seed in (0, 0, 1))
    assert torch.equal(first.x, again.x) and torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.y, other.y)
    few = load("small_graphs", num_graphs=8).graphs("train")[5]
    assert torch.equal(first.x, few.x)
    labels = torch.cat([graph.y for graph in load("small_graphs", num_graphs=400).graphs("train")])
    assert abs(float(labels.mean())) < 1 and 0.5 < float(labels.std()) < 1.5


@pytest.mark.parametrize(("bad", "message"), [({"num_graphs": 3}, "at least 4"), ({"seed": -1}, "negative")])
def test_bad_input(bad, message):
    with pytest.raises(ValueError, match=message):
        load("small_graphs", **bad)
