"""Figures with many lines: hover over a name, tap it or tab to it, and its line comes forward."""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
from matplotlib import colors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FADED = 0.1


def _colour(artist: Any) -> str | None:
    """The colour of a line or of a set of marks or areas, if it has one."""
    found = artist.get_color() if hasattr(artist, "get_color") else None
    if found is None and hasattr(artist, "get_facecolor") and len(artist.get_facecolor()):
        found = artist.get_facecolor()[0]
    try:
        return None if found is None else colors.to_hex(found)
    except ValueError:
        return None


def _mark_lines(axes: Axes, number: int, names: dict[str, int]) -> None:
    """Give every line, mark and band the id of its name: its own label, or else its colour, if only one name has it."""
    artists = [*axes.lines, *axes.collections]
    labelled = {artist: str(artist.get_label()) for artist in artists if artist.get_label() in names}
    counts = Counter(_colour(artist) for artist in labelled)
    by_colour = {_colour(artist): label for artist, label in labelled.items() if counts[_colour(artist)] == 1}
    for place, artist in enumerate(artists):
        label = labelled.get(artist) or by_colour.get(_colour(artist))
        if label is not None:
            artist.set_gid(f"line-{names[label]}-{number}-{place}")


def hover_lines(figure: Figure, *, alt: str) -> Any:
    """The figure as SVG in which a name of the legend brings its line forward; without a kernel, and closed after.

    The legend may stand in one of the axes or in the figure. What has the label of a name belongs to it, and what has
    its colour where no other name has it, such as a band around the line.

    Args:
        alt: what the figure shows, in words.

    Example:
        >>> import matplotlib.pyplot as plt
        >>> from advdiff import viz
        >>> figure, axes = plt.subplots()
        >>> for slope, name in ((1, "slow"), (2, "fast")):
        ...     _ = axes.plot([0, slope], label=name)
        >>> legend = axes.legend()
        >>> picture = viz.hover_lines(figure, alt="Two lines from 0, one of them steeper.")
        >>> picture.data.count('role="button"')
        2
    """
    legends = [legend for legend in [*(axes.get_legend() for axes in figure.axes), *figure.legends] if legend]
    texts = [text for legend in legends for text in legend.get_texts()]
    if not texts:
        plt.close(figure)
        raise ValueError("the figure has no legend, whose names would bring lines forward; call legend() first.")
    names = {text.get_text(): k for k, text in enumerate(texts)}
    for text in texts:
        text.set_gid(f"name-{names[text.get_text()]}")
    for number, axes in enumerate(figure.axes):
        _mark_lines(axes, number, names)
    stream = io.StringIO()
    with plt.rc_context({"svg.hashsalt": "advdiff", "svg.fonttype": "path"}):
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    return _page(stream.getvalue(), names, alt)


def _page(drawn: str, names: dict[str, int], alt: str) -> Any:
    from IPython.display import HTML

    own = "hover-" + hashlib.sha256(drawn.encode()).hexdigest()[:10]  # ids of two figures on a page must differ
    svg = drawn[drawn.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id="|xlink:href="#|href="#|url\(#)', rf"\1{own}-", svg)
    rules = []
    for name, k in names.items():
        button = f'id="{own}-name-{k}" tabindex="0" role="button" aria-label="{html.escape(name, quote=True)}"'
        svg = svg.replace(f'id="{own}-name-{k}"', button, 1)
        chosen, others = f"#{own}-name-{k}:is(:hover,:focus)", f"[id^={own}-line-]:not([id^={own}-line-{k}-])"
        rules.append(f"#{own}:has({chosen}) {others}{{opacity:{_FADED}}}")
    style = (
        f"#{own} svg{{background:#fff;border-radius:.35rem;height:auto;max-width:100%}}"
        f"#{own} [role=button]{{cursor:pointer;pointer-events:bounding-box}}"
        f"#{own} [id^={own}-line-]{{transition:opacity .15s}}" + "".join(rules)
    )
    label = html.escape(alt, quote=True)
    return HTML(
        f'<div class="hover-lines" id="{own}" role="group" aria-label="{label}"><style>{style}</style>{svg}</div>'
    )
