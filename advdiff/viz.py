"""The figures' one style and the recurring plots."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from PIL import Image
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE = str(Path(__file__).with_name("advdiff.mplstyle"))


def style() -> AbstractContextManager[None]:
    """The book's look for the figures drawn inside a ``with`` block.

    Example:
        >>> import matplotlib.pyplot as plt
        >>> from advdiff import viz
        >>> with viz.style():
        ...     size = plt.rcParams["font.size"]
        >>> size
        10.0
    """
    context: AbstractContextManager[None] = plt.style.context(_STYLE)
    return context


def use_style() -> None:
    """The book's look for all figures that follow.

    Example:
        >>> import matplotlib.pyplot as plt
        >>> from advdiff import viz
        >>> with plt.rc_context():  # only here, so that nothing else is changed
        ...     viz.use_style()
    """
    plt.style.use(_STYLE)


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


def png(figure: Figure, dpi: int = 90, colours: int = 64) -> bytes:
    """The figure as small PNG bytes with a palette of at most 256 colours; the figure is closed.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from advdiff import viz
        >>> viz.png(Figure(figsize=(1, 1)))[1:4]
        b'PNG'
    """
    drawn, reduced = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    plt.close(figure)
    # This method keeps the colour of a small spot, such as one marked node, which the usual one mixes with others.
    palette = Image.open(drawn).convert("RGB").quantize(colours, method=Image.Quantize.MAXCOVERAGE)
    palette.save(reduced, format="png", optimize=True)
    return reduced.getvalue()


def frame_grid(
    draw: Callable[[float, float], Figure],
    first: tuple[str, Sequence[float]],
    second: tuple[str, Sequence[float]],
    *,
    alt: str,
    dpi: int = 80,
) -> Any:
    """Two sliders over precomputed frames: a control that works in the published page, without a kernel.

    Args:
        draw: makes the figure of a pair of values.
        first, second: label (HTML or ``\\(…\\)`` maths) and values of the two sliders.
        alt: what the figure shows, in words. The published page reads it from the code of the cell, since the script of
            the widgets can neither give an image an alt text nor draw one that has a tooltip.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from advdiff import viz
        >>> widget = viz.frame_grid(lambda a, b: Figure(figsize=(1, 1)), ("a", [0.0, 1.0]), ("b", [0.0, 1.0]), alt="")
        >>> type(widget).__name__
        'VBox'
    """
    import ipywidgets as widgets

    sliders = [
        widgets.SelectionSlider(
            options=[(f"{value:g}", value) for value in values],
            index=len(values) // 2,
            description=label,
            continuous_update=True,
        )
        for label, values in (first, second)
    ]
    rows = []
    for a in first[1]:
        frames = [
            widgets.Image(value=png(draw(a, b), dpi), format="png", layout={"max_width": "100%"}) for b in second[1]
        ]
        row = widgets.Stack(frames, selected_index=sliders[1].index)
        widgets.jslink((sliders[1], "index"), (row, "selected_index"))
        rows.append(row)
    stack = widgets.Stack(rows, selected_index=sliders[0].index)
    widgets.jslink((sliders[0], "index"), (stack, "selected_index"))
    return widgets.VBox([widgets.HBox(sliders), stack])
