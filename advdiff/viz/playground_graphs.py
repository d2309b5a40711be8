"""The graphs and the presets of the playground, as its script wants them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
from torch import Tensor

from advdiff.datasets import examples

# A node in the picture: |x| ≤ 4/3 and |y| ≤ 1. An edge: from, to, 1 for an arrow or 0 for both directions, weight.
Point = list[float]
Edge = list[float]


def _fitted(places: np.ndarray) -> list[Point]:
    """Places moved and scaled, the same both ways, to fill the picture."""
    low, high = places.min(0), places.max(0)
    scale = 1.0 / max(*(high - low) / np.array([2.3, 1.7]), 1e-9)
    return np.round((places - (low + high) / 2) * scale, 3).tolist()


def _example(
    places: np.ndarray, edges: Sequence[tuple[int, int]], *, arrows: bool = False, drop: int = 0, signal: Any = None
) -> dict[str, Any]:
    """One unit of colour on the node ``drop``; the second signal is ±1, by default for right and left."""
    points = _fitted(places)
    start = [float(u == drop) for u in range(len(points))]
    side = [1.0 if x >= 0 else -1.0 for x, _ in points] if signal is None else [float(s) for s in signal]
    return {"points": points, "edges": [[u, v, int(arrows), 1] for u, v in edges], "start": start, "signal": side}


def _forward(edge_index: Tensor) -> list[tuple[int, int]]:
    """Each edge of an undirected graph once."""
    return [(int(u), int(v)) for u, v in edge_index.T.tolist() if u < v]


def _circle(size: int) -> np.ndarray:
    angle = np.pi / 2 - 2 * np.pi * np.arange(size) / size
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _two_blocks(size: int = 9, seed: int = 4) -> dict[str, Any]:
    """Two blocks of a stochastic block model, side by side."""
    graph = nx.stochastic_block_model([size, size], [[0.5, 0.05], [0.05, 0.5]], seed=seed)
    places = np.concatenate([_circle(size) * [0.8, 1.0] - [1.15, 0.0], _circle(size) * [0.8, 1.0] + [1.15, 0.0]])
    return _example(places, list(graph.edges()))


def _caffeine() -> dict[str, Any]:
    """The 14 heavy atoms of caffeine: a hexagon and a pentagon that share a side, and what hangs on them."""
    turn = np.deg2rad([-30.0, 30.0, 90.0, 150.0, 210.0, 270.0])  # C4 C5 C6 N1 C2 N3
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    apothem, radius = 0.5 / math.tan(math.pi / 5), 0.5 / math.sin(math.pi / 5)
    middle = np.array([math.cos(math.pi / 6) + apothem, 0.0])
    turn = np.deg2rad([72.0, 0.0, -72.0])  # N7 C8 N9
    small = middle + radius * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    hanging = [ring[2] * 1.95, ring[3] * 1.95, ring[4] * 1.95, ring[5] * 1.95]  # O, CH3, O, CH3
    methyl = middle + (small[0] - middle) * (1 + 1 / radius)
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 6), (6, 7), (7, 8), (8, 0)]
    edges += [(2, 9), (3, 10), (4, 11), (5, 12), (6, 13)]
    return _example(np.concatenate([ring, small, np.stack(hanging), methyl[None]]), edges, drop=9)


def example_graphs() -> dict[str, dict[str, Any]]:
    """The graphs to choose from, by name: places, edges, a drop of colour and a second signal.

    Example:
        >>> from advdiff.viz.playground_graphs import example_graphs
        >>> graphs = example_graphs()
        >>> len(graphs["karate club"]["points"]), len(graphs["karate club"]["edges"])
        (34, 78)
    """
    club = examples.karate_club()
    ring = [(u, (u + 1) % 12) for u in range(12)]
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 7), ordering="sorted")
    rows = np.array([[column, -row] for row in range(5) for column in range(7)], dtype=float)
    four = np.array([[-1.0, 0.6], [1.0, 0.6], [-1.0, -0.6], [1.0, -0.6]])
    return {
        "karate club": _example(club.positions, _forward(club.edge_index), signal=1.0 - 2.0 * club.label.numpy()),
        "ring": _example(_circle(12), ring),
        "directed ring": _example(_circle(12), ring, arrows=True),
        "star": _example(np.concatenate([np.zeros((1, 2)), _circle(9)]), _forward(examples.star(9))),
        "two blocks": _two_blocks(),
        "grid": _example(rows, list(grid.edges()), drop=17),
        "molecule (caffeine)": _caffeine(),
        "two couples": {
            **_example(four, [(0, 1), (2, 3)], signal=[1, 1, -1, -1]),
            "start": [1.0, 1.0, -1.0, -1.0],
        },
    }


def _cut(edges: list[Edge], u: int) -> list[Edge]:
    return [edge for edge in edges if u not in edge[:2]]


def _across(edges: list[Edge], half: int) -> list[Edge]:
    """Every third edge leads to the other block instead."""
    return [
        [u, (v + half) % (2 * half), *rest] if k % 3 == 0 else [u, v, *rest] for k, (u, v, *rest) in enumerate(edges)
    ]


def presets() -> dict[str, dict[str, Any]]:
    """What the playground starts with, by name: the traits of the widget that are not the default.

    All but the first stand in a chapter: they show few controls, a number or two, and say what to try.

    Example:
        >>> from advdiff.viz.playground_graphs import presets
        >>> presets()["swap of partners"]["second"]
        [[0, 2, 0, 1], [1, 3, 0, 1]]
    """
    graphs = example_graphs()
    club, blocks = graphs["karate club"], graphs["two blocks"]["edges"]
    local = {"attention": "off", "beta": 1.0, "divided": False}
    chapters = {
        "layers": local
        | {
            "name": "grid",
            "normalization": "row",
            "time": 10.0,
            "layers": 10,
            "panels": ["layers"],
            "told": ["steps"],
            "caption": "Layers of Euler's scheme and the flow that they stand for. At τ = 1 every second square is "
            "empty, however many layers there are. Try n = 20, where τ = 1/2: the picture is that of the flow. Then "
            "n = 9: above τ* the layers blow up.",
        },
        "growth": {
            "normalization": "row",
            "beta": 0.5,
            "divided": False,
            "panels": ["spectrum", "curves"],
            "told": ["leftmost"],
            "caption": "With V = D⁻¹A the leftmost eigenvalue of L is −β exactly, and z(T) grows like e^{βT}. Move β; "
            "then take V symmetric, and see the dot leave the dashed line to its right.",
        },
        "factions": {
            "normalization": "row",
            "attention": "signal",
            "beta": 0.0,
            "time": 4.0,
            "panels": ["curves"],
            "told": ["smallest"],
            "caption": "Members attend to their own faction, and the colour starts with the instructor. At β = 0 the "
            "other faction stays at 0 for ever. Try a small β: friendships carry colour across, and a large T makes "
            "all agree.",
        },
        "three solvers": {
            "normalization": "row",
            "beta": 0.5,
            "time": 1.0,
            "theta": 1.0,
            "order": 4,
            "panels": ["spectrum", "solvers"],
            "told": ["critical"],
            "caption": "The exponential multiplies an eigenvector with eigenvalue x by e^{−xT}, the inverse by "
            "θ/(θ + x): for θ > β the mean of the flow over exponentially distributed times with mean 1/θ. Lower θ "
            "from 1 to θ* = β: the pole × meets the leftmost eigenvalue −β, and the inverse turns singular. Below it "
            "the factor is negative, and the colours are wrong.",
        },
        "cut an edge": {
            "second": [edge for edge in club["edges"] if edge[:2] != [0, 31]],
            "beta": 1.0,
            "time": 1.0,
            "panels": ["second"],
            "told": ["shift"],
            "caption": "On the second graph the friendship between 0 and 31 is cut. Drag from 0 to 31 to join them "
            "again, then cut one between members with few friends, such as 24 and 27: x is larger.",
        },
        "swap of partners": local
        | {
            "name": "two couples",
            "second": [[0, 2, 0, 1], [1, 3, 0, 1]],
            "time": 1.0,
            "panels": ["second"],
            "told": ["shift", "variation"],
            "caption": "Two couples swap partners: x = 2, and the variation is 1 − e^{−2T}, the most that is possible. "
            "Move T, and compare with the paper's bound. Then give one couple its old edge back.",
        },
        "homophily": {
            "name": "two blocks",
            "second": _across(blocks, 9),
            "beta": 0.5,
            "time": 1.0,
            "divided": False,
            "panels": ["second"],
            "told": ["shift", "variation"],
            "caption": "On the second graph every third edge leads to the other block. Halve β: the variation halves, "
            "too. Then raise T: the bound of this chapter loosens, and the paper's leaves the picture.",
        },
        "cut node 3 off": local
        | {
            "start": club["signal"],
            "second": _cut(club["edges"], 3),
            "time": 2.0,
            "panels": ["second"],
            "told": ["movement"],
            "caption": "On the second graph member 3 has lost all six friends. The colour is the faction, ±1, and "
            "the number says how far a model that diffuses it moves. Join 3 to one friend again, then try β = 0 with "
            "uniform attention: a deaf model does not move.",
        },
    }
    full = {
        "panels": ["curves", "spectrum"],
        "caption": "Zachary's karate club, colour on the instructor. Move T with β = 0: attention alone averages. "
        "Then raise β and see the edges carry more than the average does.",
    }
    return {"karate club": full} | {name: {"compact": True} | traits for name, traits in chapters.items()}
