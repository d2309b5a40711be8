"""A data frame as a table in the page."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import pandas as pd

from advdiff.checks import check_choice
from advdiff.experiments import metrics
from advdiff.results import names as called
from advdiff.results.layout import MISSING, Entry, Layout


def table(
    frame: pd.DataFrame,
    caption: str = "",
    *,
    label: str | None = None,
    best: str | Mapping[str, str] | None = None,
    digits: int | Mapping[str, int] = 2,
    names: bool = True,
) -> Layout:
    """A data frame as a table: numbers on their decimal points, the best of each column marked, a caption.

    Columns in pairs ``mean`` and ``std``, as ``frame.groupby(level="model").agg(["mean", "std"])`` has them, become one
    column of cells ``mean ± std``. NaN and None are a dash.

    Args:
        caption: above it; says what the numbers are.
        label: id of the table in the page.
        best: which number of a column is the best: ``"max"``, ``"min"``, or a metric, which says it; for all columns,
            or column → which for those that have a best. The others, and all by default, are not marked.
        digits: behind the decimal point; for all columns, or column → digits (2 for those not named).
        names: models and metrics as they are called in prose; a column that is named for accuracy or ROC-AUC, which
            runs have as fractions, is then in per cent. False leaves names and numbers as they are.

    Returns:
        What a notebook shows as a table, and prints as aligned text, with * for the best.

    Example:
        >>> import pandas as pd
        >>> from advdiff import viz
        >>> found = pd.DataFrame({"rmse": [0.51, 0.49, 0.21, 0.20], "epoch": [9, 12, 3, 104]},
        ...                      index=pd.Index(["mlp", "mlp", "gcn", "gcn"], name="model"))
        >>> viz.table(found.groupby("model").agg({"rmse": ["mean", "std"], "epoch": ["max"]}),
        ...           "Two seeds each.", best={"rmse": "rmse"}, digits=3)
        Two seeds each.
        model  RMSE            epoch, max
        ─────  ──────────────  ──────────
        GCN    0.205 ± 0.007*  104
        MLP    0.500 ± 0.014    12
        * best of its column
    """
    columns = _columns(frame)
    heads = {column: _head(column) for column in columns}
    for what, given in (("best", best), ("digits", digits)):
        for name in given if isinstance(given, Mapping) else ():
            if name not in heads.values():
                raise ValueError(f"{what} names the column {name!r}; the table has: {', '.join(heads.values())}.")
    made = []
    for column, (values, spreads) in columns.items():
        head = heads[column]
        which = best.get(head) if isinstance(best, Mapping) else best
        places = digits.get(head, 2) if isinstance(digits, Mapping) else digits
        scale = 100.0 if names and head in metrics.PERCENT else 1.0
        made.append(_entries(values, spreads, _sign(which), places, scale))
    index = frame.index
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    labels = [[_named(value, names) for value in level] for level in levels]
    titles = [*("" if name is None else str(name) for name in index.names), *(_named(h, names) for h in heads.values())]
    return Layout(titles, list(zip(*labels, *made, strict=True)), caption, index.nlevels, label)


def _columns(frame: pd.DataFrame) -> dict[Any, tuple[pd.Series, pd.Series | None]]:
    """Column → its numbers and, where it is a pair of mean and std, their deviations."""
    found: dict[Any, tuple[pd.Series, pd.Series | None]] = {}
    series: dict[Any, pd.Series] = {column: frame.iloc[:, place] for place, column in enumerate(frame.columns)}
    for column, values in series.items():
        outer, last = (column[:-1], column[-1]) if isinstance(column, tuple) else ((), None)
        mean, std = (*outer, "mean"), (*outer, "std")
        if last == "mean" and std in series:
            found[outer] = values, series[std]
        elif not (last == "std" and mean in series):
            found[column] = values, None
    return found


def _head(column: Any) -> str:
    return ", ".join(map(str, column)) if isinstance(column, tuple) else str(column)


def _named(value: Any, names: bool) -> str:
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return called.MODELS.get(text, called.METRICS.get(text, text)) if names else text


def _sign(which: str | None) -> float:
    """Of the direction in which a number is better, or 0 where none is."""
    if which is None:
        return 0.0
    check_choice("best", which, ("max", "min", *called.METRICS))
    return 1.0 if which == "max" or which in metrics.HIGHER_IS_BETTER else -1.0


def _entries(values: pd.Series, spreads: pd.Series | None, sign: float, digits: int, scale: float) -> list[Entry | str]:
    """Numbers as they are printed; those that print like the best are as good."""
    shown = [_text(value, digits, scale) for value in values]
    known = [sign * value for value in values if _is_number(value) and math.isfinite(value)]
    top = _text(sign * max(known), digits, scale) if sign and known else None
    around = [None] * len(shown) if spreads is None else list(spreads)
    return [
        Entry(text, "" if _is_missing(spread) else _text(spread, digits, scale), best=text == top)
        if _is_number(value) or _is_missing(value)
        else text
        for value, spread, text in zip(values, around, shown, strict=True)
    ]


def _text(value: Any, digits: int, scale: float) -> str:
    if _is_missing(value):
        return MISSING
    if _is_number(value) and isinstance(value, numbers.Integral):
        return f"{value * int(scale):,d}"
    return f"{scale * value:.{digits}f}" if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))
