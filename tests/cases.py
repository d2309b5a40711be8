"""The one table of graphs that parametrises the tests, each with its adjacency matrix by definition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

import advdiff

Edges = list[tuple[int, int]]

KINDS = ("symmetric", "row")
DTYPES = (torch.float64, torch.float32)
BETAS = (0.0, 0.2, 0.5, 1.0)
HEADS = (None, 1, 3)  # None: query and key are [N, d]


@dataclass(frozen=True, eq=False)
class GraphCase:
    """Edges source → target, their weights (None: ones) and the graph number of each node (None: one graph)."""

    name: str
    num_nodes: int
    edges: Edges
    weight: list[float] | None = None
    batch: list[int] | None = None

    @property
    def edge_index(self) -> Tensor:
        return torch.tensor(self.edges, dtype=torch.int64).reshape(-1, 2).T

    @property
    def edge_weight(self) -> Tensor | None:
        return None if self.weight is None else torch.tensor(self.weight, dtype=torch.float64)

    @property
    def batch_vector(self) -> Tensor | None:
        return None if self.batch is None else torch.tensor(self.batch)

    @property
    def adjacency(self) -> np.ndarray:
        """A[target, source], entry by entry; duplicate edges add up."""
        A = np.zeros((self.num_nodes, self.num_nodes))
        for (source, target), w in zip(self.edges, self.weight or [1.0] * len(self.edges), strict=True):
            A[target, source] += w
        return A

    @property
    def is_undirected(self) -> bool:
        return bool(np.array_equal(self.adjacency, self.adjacency.T))

    @property
    def has_isolated(self) -> bool:
        """Has V a zero row? Then P = C + βV has row sums below 1 + β."""
        return bool((self.adjacency.sum(1) == 0).any())

    def velocity(self, kind: str = "symmetric", dtype: torch.dtype = torch.float64, **options: str) -> advdiff.Velocity:
        weight = self.edge_weight
        return advdiff.normalize_adjacency(self.edge_index, self.num_nodes, weight, kind, dtype=dtype, **options)


def both_ways(edges: Edges) -> Edges:
    return [*edges, *((t, s) for s, t in edges)]


def block_model(sizes: tuple[int, ...], inside: float, across: float, seed: int = 0) -> GraphCase:
    """An undirected stochastic block model; a cycle through all nodes leaves none isolated."""
    rng = np.random.default_rng(seed)
    block = np.repeat(np.arange(len(sizes)), sizes)
    n = len(block)
    probability = np.where(block[:, None] == block[None, :], inside, across)
    chosen = np.triu(rng.random((n, n)) < probability, 1)
    chosen[np.arange(n - 1), np.arange(1, n)] = chosen[0, n - 1] = True
    return GraphCase("sbm", n, both_ways([(int(u), int(v)) for u, v in np.argwhere(chosen)]))


def star(leaves: int) -> GraphCase:
    """Node 0 is the hub."""
    return GraphCase("star", leaves + 1, both_ways([(0, leaf) for leaf in range(1, leaves + 1)]))


PATH = GraphCase("path", 4, both_ways([(0, 1), (1, 2), (2, 3)]))
_RING = [(u, (u + 1) % 8) for u in range(8)]
_CHORDS = [(0, 3), (1, 6), (2, 5), (0, 4)]
_RANDOM = both_ways(_RING + _CHORDS)
_ARCS = [*_RING, (0, 3), (3, 1), (6, 2), (5, 0), (4, 7), (2, 4)]
_WEIGHTS = [0.1 + 0.37 * ((5 * i) % 8) for i in range(12)]

CASES = [
    PATH,
    GraphCase("undirected", 8, _RANDOM),
    GraphCase("weighted", 8, _RANDOM, _WEIGHTS * 2),
    GraphCase("directed", 8, _ARCS),
    GraphCase("directed_weighted", 9, [*_ARCS, (2, 8)], [*_WEIGHTS, 1.5, 0.7, 2.0]),
    GraphCase("duplicates", 5, [*both_ways([(0, 1), (1, 2), (2, 3), (3, 4)] * 2), (4, 1), (4, 1)]),
    GraphCase("self_loops", 5, [(0, 0), (3, 3), (3, 3), *both_ways([(0, 1), (1, 2), (2, 3), (3, 4)])]),
    GraphCase("isolated", 7, both_ways([(0, 1), (1, 4), (4, 0), (4, 5)])),
    GraphCase("zero_weights", 4, both_ways([(0, 1), (1, 2), (2, 3)]), [1.0, 2.0, 0.0] * 2),
    GraphCase("no_edges", 5, []),
    GraphCase("one_node", 1, []),
    star(9),
    GraphCase(
        "batch_with_one_node_graph",
        9,
        both_ways([(0, 1), (1, 2), (2, 3), (5, 6), (6, 7), (7, 8), (8, 5)]),
        batch=[0, 0, 0, 0, 1, 2, 2, 2, 2],
    ),
    GraphCase("batch_with_empty_graph", 6, both_ways([(0, 1), (1, 2), (3, 4)]), batch=[1, 1, 1, 3, 3, 3]),
    GraphCase(
        "batch_unsorted",
        8,
        [(0, 3), (3, 5), (5, 0), (0, 5), (1, 4), (4, 6), (6, 1), (2, 7)],
        [1.0, 0.5, 2.0, 0.3, 1.2, 0.8, 1.0, 0.4],
        batch=[0, 2, 1, 0, 2, 0, 2, 1],
    ),
    GraphCase("batch_skewed", 11, both_ways([(u, (u + 1) % 7) for u in range(7)]), batch=[0] * 7 + [3, 1, 2, 3]),
]
BY_NAME = {case.name: case for case in CASES}
BATCHED = [case for case in CASES if case.batch is not None]
#: Row-normalised, these have P1 = (1 + β)1 exactly.
WITHOUT_ISOLATED = [case for case in CASES if not case.has_isolated]


def each(cases: list[GraphCase]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def some(*names: str) -> pytest.MarkDecorator:
    return each([BY_NAME[name] for name in names])
