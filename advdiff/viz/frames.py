"""Figures that a reader moves in the published page, without a kernel: frames computed beforehand."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import matplotlib.pyplot as plt
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ON_PAGE = 80  # pixels of the page for an inch of the figure


def small_picture(figure: Figure, dpi: int = 90, colours: int = 64, kind: Literal["png", "webp"] = "png") -> bytes:
    """The figure as the bytes of a small file with at most 256 colours, without loss beyond that; the figure is closed.

    Example:
        >>> from matplotlib.figure import Figure
        >>> from advdiff import viz
        >>> viz.small_picture(Figure(figsize=(1, 1)))[1:4]
        b'PNG'
    """
    drawn, reduced = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=dpi)
    plt.close(figure)
    # This method keeps the colour of a small spot, such as one marked node, which the usual one mixes with others; the
    # means then move it to the shades that are there, so that equal numbers have equal colours in all frames.
    palette = Image.open(drawn).convert("RGB").quantize(colours, method=Image.Quantize.MAXCOVERAGE, kmeans=2)
    if kind == "png":
        palette.save(reduced, format=kind, optimize=True)
    else:
        palette.convert("RGB").save(reduced, format=kind, lossless=True, quality=100, method=6)
    return reduced.getvalue()


def frame_grid(
    draw: Callable[[float, float], Figure],
    first: tuple[str, Sequence[float]],
    second: tuple[str, Sequence[float]],
    *,
    alt: str,
    dpi: int = 2 * _ON_PAGE,
) -> Any:
    """Two sliders over precomputed frames, for what no browser can compute; in the published page, without a kernel.

    Args:
        draw: makes the figure of a pair of values.
        first, second: label (HTML or ``\\(…\\)`` maths) and values of the two sliders.
        alt: what the figure shows, in words. The published page reads it from the code of the cell, since the script of
            the widgets can neither give an image an alt text nor draw one that has a tooltip.
        dpi: pixels of the picture for an inch; twice those of the page are sharp on a fine screen and in print.

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

    def frame(a: float, b: float) -> Any:
        figure = draw(a, b)
        width = f"{figure.get_figwidth() * _ON_PAGE:.0f}px"
        # As WebP a frame takes about half of what it takes as PNG, and a page has dozens.
        value = small_picture(figure, dpi, colours=32, kind="webp")
        return widgets.Image(value=value, format="webp", layout={"width": width, "max_width": "100%"})

    rows = []
    for a in first[1]:
        frames = [frame(a, b) for b in second[1]]
        row = widgets.Stack(frames, selected_index=sliders[1].index)
        widgets.jslink((sliders[1], "index"), (row, "selected_index"))
        rows.append(row)
    stack = widgets.Stack(rows, selected_index=sliders[0].index)
    widgets.jslink((sliders[0], "index"), (stack, "selected_index"))
    return widgets.VBox([widgets.HBox(sliders), stack], layout={"align_items": "center"})
