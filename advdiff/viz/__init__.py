"""Everything that draws."""

from advdiff.viz.frames import frame_grid, png
from advdiff.viz.graphs import draw_graph
from advdiff.viz.style import NAMES, STYLES, style, use_style
from advdiff.viz.tables import table

__all__ = ["NAMES", "STYLES", "draw_graph", "frame_grid", "png", "style", "table", "use_style"]
