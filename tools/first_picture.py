"""Draw the four discs of the landing page: a drop of colour on a graph, mixed, carried, and both."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.collections import LineCollection

import advdiff
from advdiff import viz
from advdiff.datasets.examples import disc_with_current

NODES, BETA, TIME = 1600, 18.0, 1.25
LIMIT = 1.045  # and in book/discs.js, which moves the same discs
BACKGROUND = "#13111f"  # the same card on light and dark pages


def main(folder: Path = Path("book/images")) -> None:
    places, edge_index, weight = disc_with_current(NODES)
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
        axes = figure.add_axes((0, 0, 1, 1), xlim=(-LIMIT, LIMIT), ylim=(-LIMIT, LIMIT))
        axes.add_collection(LineCollection(lines, colors="#4a4668", linewidths=0.3, zorder=1))
        axes.scatter(
            places[:, 0], places[:, 1], c=shade, s=11, cmap="inferno", vmin=-0.12, vmax=1, linewidths=0, zorder=2
        )
        axes.axis("off")
        (folder / f"first_{name}.png").write_bytes(viz.small_picture(figure, dpi=140, colours=256))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
