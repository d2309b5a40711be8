"""Everything that draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advdiff.lazy import attach
from advdiff.viz.frames import frame_grid, small_picture
from advdiff.viz.graphs import draw_graph
from advdiff.viz.hover import hover_lines
from advdiff.viz.style import NAMES, STYLES, style, use_style
from advdiff.viz.tables import table

if TYPE_CHECKING:
    from advdiff.viz.playground_widget import Playground, playground

__all__ = [
    "NAMES",
    "STYLES",
    "Playground",
    "draw_graph",
    "frame_grid",
    "hover_lines",
    "playground",
    "small_picture",
    "style",
    "table",
    "use_style",
]
# A figure on paper need not wait for the widgets.
__getattr__ = attach(__name__, dict.fromkeys(("Playground", "playground"), "advdiff.viz.playground_widget"))
