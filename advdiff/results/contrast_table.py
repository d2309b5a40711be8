"""Differences of models with their intervals, as a table."""

from __future__ import annotations

from collections.abc import Iterable

from advdiff.results import names
from advdiff.results.compare import Contrast
from advdiff.results.layout import Entry, Layout


def contrast_table(found: Iterable[Contrast], caption: str = "", *, form: str = "+.3g", with_p: bool = False) -> Layout:
    """Contrasts of one model with others: its gain over each, the interval below it, and the verdict.

    Args:
        found: as :func:`~advdiff.results.compare.contrasts` and :func:`~advdiff.results.compare.pooled` give them.
        form: of the gain and of the ends of the interval, as in an f-string.
        with_p: with the p-value below the verdict.

    Example:
        >>> from advdiff.results.compare import pooled
        >>> runs = {"gcn": [3.0, 4.0, 5.0], "mlp": [1.0, 2.0, 3.0], "gat": [2.0, 3.0, 4.0]}
        >>> contrast_table(pooled(runs, "gcn"), "Gain of GCN.", form="+.2f")
        Gain of GCN.
        over  gain                  verdict
        ────  ────────────────────  ────────────────
        MLP   +2.00 [+0.00, +4.00]  better
        GAT   +1.00 [-1.00, +3.00]  within the noise
    """
    rows: list[tuple[str | Entry, ...]] = []
    for each in found:
        gain = Entry(f"{each.gain:{form}}", note=f"[{each.low:{form}}, {each.high:{form}}]")
        verdict = Entry(each.verdict, note=f"p = {each.p:.2g}") if with_p else each.verdict
        rows.append((names.MODELS.get(each.other, each.other), gain, verdict))
    return Layout(("over", "gain", "verdict"), rows, caption)
