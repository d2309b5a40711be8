"""The parts of a graph as graphs of their own."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.utils import subgraph

from advdiff.distributed.clusters import clusters


def graph(num_nodes: int = 60) -> Data:
    drawn = torch.Generator().manual_seed(0)
    edge_index = torch.randint(num_nodes - 5, (2, 200), generator=drawn)  # the last nodes are isolated
    data = Data(x=torch.randn(num_nodes, 3, generator=drawn), edge_index=edge_index, y=torch.arange(num_nodes))
    data.edge_weight = torch.rand(200, generator=drawn)
    data.name = "shared"
    return data


@pytest.mark.parametrize("method", ["metis", "range"])
def test_a_cluster_is_the_subgraph_of_its_nodes(method):
    data = graph()
    parts = clusters(data, 4, method)
    assert torch.equal(torch.cat([part.node for part in parts]).sort().values, torch.arange(60))
    for part in parts:
        edge_index, weight = subgraph(part.node, data.edge_index, data.edge_weight, relabel_nodes=True, num_nodes=60)
        assert torch.equal(part.edge_index, edge_index) and torch.equal(part.edge_weight, weight)
        assert torch.equal(part.x, data.x[part.node]) and torch.equal(part.y, part.node)
        assert part.name == "shared"


def test_one_cluster_is_the_graph():
    data = graph()
    (whole,) = clusters(data, 1)
    assert torch.equal(whole.edge_index, data.edge_index) and torch.equal(whole.x, data.x)


def test_a_cluster_without_edges_and_one_of_a_single_node():
    data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    first, second = clusters(data, 2, torch.tensor([0, 0, 1]))
    assert first.num_edges == 2 and second.num_edges == 0 and second.num_nodes == 1


@pytest.mark.parametrize("parts", [0, 61])
def test_the_number_of_parts_is_checked(parts):
    with pytest.raises(ValueError, match="must lie between 1 and the number of nodes"):
        clusters(graph(), parts)


def test_a_graph_without_edges_is_refused():
    with pytest.raises(ValueError, match="no edge_index"):
        clusters(Data(x=torch.eye(3)), 1)
