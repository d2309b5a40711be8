"""Draw the four discs of the landing page: a drop of colour on a graph, mixed, carried, and both."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.collections import LineCollection
from scipy.spatial import Delaunay

import advdiff
from advdiff import viz

NODES, BETA, TIME = 1600, 18.0, 1.25
BACKGROUND = "#13111f"  # the same card on light and dark pages


def disc_with_current(seed: int = 3) -> tuple[np.ndarray, torch.Tensor, torch.Tensor]:
    """Nodes on a disc joined to their neighbours; an edge weighs what a current around the centre carries along it."""
    rng = np.random.default_rng(seed)
    # A sunflower's seeds, slightly shaken: even, without a grid to see.
    k = np.arange(NODES) + 0.5
    radius, angle = np.sqrt(k / NODES), k * np.pi * (1 + 5**0.5)
    places = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1) + rng.normal(0, 0.006, (NODES, 2))
    corners = Delaunay(places).simplices
    sides = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    ends = np.unique(np.sort(sides, axis=1), axis=0)
    ends = ends[np.linalg.norm(places[ends[:, 0]] - places[ends[:, 1]], axis=1) < 0.09]
    both = np.concatenate([ends, ends[:, ::-1]])
    step, middle = places[both[:, 1]] - places[both[:, 0]], places[both].mean(1)
    current = np.stack([-middle[:, 1], middle[:, 0]], axis=1)
    along = (step * current).sum(1) / (np.linalg.norm(step, axis=1) * np.linalg.norm(current, axis=1).clip(1e-9))
    weight = np.exp(3.5 * along)
    return places, torch.from_numpy(both.T.copy()), torch.from_numpy(weight)


def main(folder: Path = Path("book/images")) -> None:
    places, edge_index, weight = disc_with_current()
    V = advdiff.normalize_adjacency(edge_index, NODES, weight, kind="row")
    points = torch.from_numpy(places)
    C = advdiff.Attention(points, points)
    start = torch.from_numpy(np.exp(-((places - [0.55, 0.0]) ** 2).sum(1) / 0.012))
    flows = {
        "drop": None,
        "attention": advdiff.Generator(coupling=C),
        "edges": advdiff.Generator(velocity=V, beta=BETA),
        "both": advdiff.Generator(C, V, beta=BETA),
    }
    folder.mkdir(parents=True, exist_ok=True)
    lines = list(places[edge_index.numpy().T[: edge_index.shape[1] // 2]])
    for name, L in flows.items():
        state = start if L is None else advdiff.exponential(L, start, TIME)
        # Shares of the largest value: the eye compares shapes, not the growth e^{βT}.
        shade = (state / state.max()).clamp(min=0.0).pow(0.6)
        figure = plt.figure(figsize=(3, 3), facecolor=BACKGROUND)
        axes = figure.add_axes((0.02, 0.02, 0.96, 0.96))
        axes.add_collection(LineCollection(lines, colors="#4a4668", linewidths=0.3, zorder=1))
        axes.scatter(
            places[:, 0], places[:, 1], c=shade, s=11, cmap="inferno", vmin=-0.12, vmax=1, linewidths=0, zorder=2
        )
        axes.set_aspect("equal")
        axes.axis("off")
        (folder / f"first_{name}.png").write_bytes(viz.png(figure, dpi=140, colours=256))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
