"""Figures that a reader moves in the published page, without a kernel: frames computed beforehand."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
