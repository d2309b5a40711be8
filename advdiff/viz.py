"""The figures' one style and the recurring plots."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib.pyplot as plt

if TYPE_CHECKING:
    pass

_STYLE = str(Path(__file__).with_name("advdiff.mplstyle"))


def style() -> AbstractContextManager[None]:
    """The book's look for the figures drawn inside a ``with`` block."""
    context: AbstractContextManager[None] = plt.style.context(_STYLE)
    return context


def use_style() -> None:
    """The book's look for all figures that follow."""
    plt.style.use(_STYLE)
