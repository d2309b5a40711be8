"""Draw the picture of the landing page: one signal, three ways to spread it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import torch

import advdiff
from advdiff import viz
from advdiff.datasets.examples import karate_club

TIMES = (0.0, 0.5, 1.5, 4.0)


def main(path: Path = Path("book/images/first_picture.png")) -> None:
    graph = karate_club()
    V = advdiff.normalize_adjacency(graph.edge_index, graph.num_nodes, kind="row")
    # Members of a faction attend to each other: queries and keys point to the faction.
    faction = torch.nn.functional.one_hot(graph.label, 2) * 2.0 - 1.0
    C = advdiff.Attention(faction, faction)
    flows = {
        "local diffusion\n$e^{-(I-V)T}$": advdiff.Generator(velocity=V, beta=1.0),
        "non-local diffusion\n$e^{-(I-C)T}$": advdiff.Generator(coupling=C),
        "advective diffusion\n$e^{-(I-C-\\beta V)T}$": advdiff.Generator(C, V, beta=0.5),
    }
    start = torch.zeros(graph.num_nodes)
    start[0] = 1.0
    with viz.style():
        figure, grid = plt.subplots(len(flows), len(TIMES), figsize=(11.5, 5.0))
        for row, (name, L) in zip(grid, flows.items(), strict=True):
            row[0].text(-0.04, 0.5, name, transform=row[0].transAxes, ha="right", va="center", fontsize=11)
            for axes, time in zip(row, TIMES, strict=True):
                state = advdiff.exponential(L, start, time)
                # Shares of the largest value: the eye compares shapes, not the growth e^{βT}.
                viz.draw_graph(
                    axes, graph.positions, graph.edge_index, (state / state.max()).sqrt(), limits=(0, 1), size=48
                )
        for axes, time in zip(grid[0], TIMES, strict=True):
            axes.set_title(f"$T = {time:g}$")
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main()
