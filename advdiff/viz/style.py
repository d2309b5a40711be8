"""The figures' one style, and one look and one name for each model."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

from advdiff.results import names

_STYLE = str(Path(__file__).with_name("advdiff.mplstyle"))

# The paper's two and our third in blues, local models in warm colours, attention in greens and violet.
_LOOKS: dict[str, dict[str, Any]] = {
    "advdifformer-s": {"color": "#0072B2", "marker": "o"},
    "advdifformer-i": {"color": "#56B4E9", "marker": "s"},
    "advdifformer-e": {"color": "#003B5C", "marker": "D"},
    "diff-linear": {"color": "#D55E00", "marker": "^"},
    "diff-multilayer": {"color": "#E69F00", "marker": "v"},
    "diff-time": {"color": "#CC79A7", "marker": "<"},
    "diff-nonlocal": {"color": "#009E73", "marker": "P"},
    "mlp": {"color": "#555555", "marker": "x"},
    "gcn": {"color": "#D55E00", "marker": ">"},
    "gat": {"color": "#E69F00", "marker": "d"},
    "sgc": {"color": "#CC79A7", "marker": "p"},
    "gdc": {"color": "#A6761D", "marker": "h"},
    "grand": {"color": "#B2182B", "marker": "*"},
    "a-dgn": {"color": "#F0A3A3", "marker": "8"},
    "cde": {"color": "#8C510A", "marker": "X"},
    "graphtrans": {"color": "#009E73", "marker": "H"},
    "graphgps": {"color": "#66C2A5", "marker": "1"},
    "difformer": {"color": "#6A3D9A", "marker": "P"},
    "sgformer": {"color": "#1B9E77", "marker": "2"},
    "polynormer": {"color": "#B39DDB", "marker": "3"},
}
#: What a model is called in prose, tables and figures.
NAMES: dict[str, str] = names.MODELS
#: One look per model in all figures, with its name.
STYLES: dict[str, dict[str, Any]] = {model: {**look, "label": NAMES[model]} for model, look in _LOOKS.items()}


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
