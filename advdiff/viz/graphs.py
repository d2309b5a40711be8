"""Graphs with a value on every node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.collections import LineCollection
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_graph(
    axes: Axes,
    positions: np.ndarray,
    edge_index: Tensor,
    values: Tensor | Sequence[float],
    *,
    limits: tuple[float, float] | None = None,
    size: float = 60.0,
    cmap: str = "viridis",
) -> Any:
    """Nodes coloured by a value on them; returns the scatter, to hang a colour bar on.

    Example:
        >>> import matplotlib.pyplot as plt
        >>> from advdiff import viz
        >>> from advdiff.datasets.examples import karate_club
        >>> graph = karate_club()
        >>> figure, axes = plt.subplots()
        >>> dots = viz.draw_graph(axes, graph.positions, graph.edge_index, graph.label.float())
        >>> len(dots.get_offsets())
        34
        >>> plt.close(figure)
    """
    numbers = np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values, dtype=float)
    ends = positions[edge_index.cpu().numpy().T]
    axes.add_collection(LineCollection(list(ends), colors="0.72", linewidths=0.7, zorder=1))
    low, high = limits or (float(numbers.min()), float(numbers.max()))
    nodes = axes.scatter(
        positions[:, 0],
        positions[:, 1],
        c=numbers,
        s=size,
        cmap=cmap,
        vmin=low,
        vmax=high,
        edgecolors="0.25",
        linewidths=0.5,
        zorder=2,
    )
    axes.set_aspect("equal")
    axes.axis("off")
    return nodes
