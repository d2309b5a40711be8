"""Small graphs for the book's examples, without any download."""

from __future__ import annotations

from typing import NamedTuple

import networkx as nx
import numpy as np
import torch
from scipy.spatial import cKDTree
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


def disc_with_current(num_nodes: int = 1600) -> tuple[np.ndarray, Tensor, Tensor]:
    """The disc of the landing page: places [N, 2], ``edge_index`` and ``edge_weight``.

    A sunflower's seeds, slightly shaken, each joined to those nearby; an edge weighs e^{3.5 c}, with c the cosine
    between it and a current around the centre. The script of the page makes the same graph.

    Example:
        >>> from advdiff.datasets.examples import disc_with_current
        >>> places, edge_index, edge_weight = disc_with_current(100)
        >>> places.shape, bool((edge_weight > 0).all())
        ((100, 2), True)
    """
    k = np.arange(num_nodes)
    radius, angle = np.sqrt((k + 0.5) / num_nodes), (k + 0.5) * np.pi * (1 + 5**0.5)
    shake = 0.52 / num_nodes**0.5 * (np.stack([k * 2**0.5 % 1, k * 3**0.5 % 1], axis=1) - 0.5)
    places = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1) + shake
    pairs = cKDTree(places).query_pairs(2.5 / num_nodes**0.5, output_type="ndarray")
    both = np.concatenate([pairs, pairs[:, ::-1]])
    step, middle = places[both[:, 1]] - places[both[:, 0]], places[both].mean(1)
    current = np.stack([-middle[:, 1], middle[:, 0]], axis=1)
    cosine = (step * current).sum(1) / (np.linalg.norm(step, axis=1) * np.linalg.norm(current, axis=1).clip(1e-9))
    return places, torch.from_numpy(both.T.copy()), torch.from_numpy(np.exp(3.5 * cosine))
