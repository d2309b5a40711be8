"""Figures with many lines: hover over a name, tap it or tab to it, and its line comes forward."""

from __future__ import annotations

import hashlib
import html
import io
import re
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import colors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FADED = 0.1


def _colour(artist: Any) -> str | None:
    """The colour of a line, a bar or a set of marks or areas, if it has one."""
    found = artist.get_color() if hasattr(artist, "get_color") else np.atleast_2d(artist.get_facecolor())
    if isinstance(found, np.ndarray):
        found = found[0] if found.size else None
    try:
        return None if found is None else colors.to_hex(found)
    except ValueError:
        return None


def _mark_lines(figure: Figure, names: dict[str, int]) -> None:
    """Give lines, marks, bars and bands the id of their name: their label, or else, without one, their colour."""
    artists = [artist for axes in figure.axes for artist in (*axes.lines, *axes.collections, *axes.patches)]
    labelled = {artist: str(artist.get_label()) for artist in artists if artist.get_label() in names}
    owners: dict[str | None, set[str]] = {}
    for artist, label in labelled.items():
        owners.setdefault(_colour(artist), set()).add(label)
    for place, artist in enumerate(artists):
        label = str(artist.get_label())
        # Without a label of its own (matplotlib gives one that begins with _) the colour tells, if one name has it.
        owner = owners.get(_colour(artist), set()) if label.startswith("_") else {label} & names.keys()
        if len(owner) == 1:
            (name,) = owner
            artist.set_gid(f"line-{names[name]}-{place}")


def hover_lines(figure: Figure, *, alt: str) -> Any:
    """The figure as SVG in which a name of the legend brings its line forward; without a kernel, and closed after.

    The legend may stand in one of the axes or in the figure. What has the label of a name belongs to it, and what has
    its colour where no other name has it, such as a band around the line, or the same line in another panel.

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
    _mark_lines(figure, names)
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
    svg = re.sub(r"\s*\n\s*", " ", svg)  # a notebook keeps each line by itself
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
