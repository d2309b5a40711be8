"""Small graphs for the book's examples, without any download."""

from __future__ import annotations

from typing import NamedTuple

import networkx as nx
import numpy as np
import torch
from torch import Tensor


class ExampleGraph(NamedTuple):
    """A graph with something to draw: both directions of every edge, a place for every node, a class for every node."""

    edge_index: Tensor
    num_nodes: int
    positions: np.ndarray
    label: Tensor


def karate_club() -> ExampleGraph:
    """Zachary's karate club, the running example: 34 members, 78 friendships, two factions after the split.

    Example:
        >>> from advdiff.datasets.examples import karate_club
        >>> graph = karate_club()
        >>> graph.num_nodes, graph.edge_index.shape[1] // 2
        (34, 78)
    """
    graph = nx.karate_club_graph()
    forward = torch.tensor(list(graph.edges()), dtype=torch.int64).T
    layout = nx.kamada_kawai_layout(graph, weight=None)
    label = torch.tensor([int(graph.nodes[u]["club"] != "Mr. Hi") for u in graph])
    positions = np.array([layout[u][::-1] for u in graph])  # lying, since a page is wider than high
    return ExampleGraph(torch.cat([forward, forward.flip(0)], dim=1), len(graph), positions, label)


def star(leaves: int) -> Tensor:
    """Edges of a star with node 0 in the middle, both directions.

    Example:
        >>> star(2)
        tensor([[0, 0, 1, 2],
                [1, 2, 0, 0]])
    """
    tips = torch.arange(1, leaves + 1)
    out = torch.stack([torch.zeros_like(tips), tips])
    return torch.cat([out, out.flip(0)], dim=1)


def river(length: int) -> Tensor:
    """Edges of a directed path 0 → 1 → … : water flows from each node to the next.

    Example:
        >>> river(3)
        tensor([[0, 1],
                [1, 2]])
    """
    node = torch.arange(length - 1)
    return torch.stack([node, node + 1])
