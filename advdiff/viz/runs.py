"""The figures of the chapters with real data: models in rows, each seed a dot, the paper's number beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from advdiff.experiments import metrics
from advdiff.experiments.records import Record
from advdiff.results import names, paper
from advdiff.results.compare import Contrast
from advdiff.results.frame import collect
from advdiff.viz.style import STYLES

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def rank(axes: Axes, records: Iterable[Record], column: str = "test mean", *, reported: bool = True) -> None:
    """One row per model, best at the top: every seed as a dot, their mean as a bar, the paper's as a hollow diamond.

    Args:
        records: one run per model and seed.
        column: an environment, ``"valid"``, ``"test mean"`` or ``"test worst"``.
        reported: draw the paper's number, where it has one.
    """
    found = list(records)
    metric = found[0].outcome.metric
    scale = 100.0 if metric in metrics.PERCENT else 1.0
    numbers = scale * collect(found, columns=[column])[column]
    means = numbers.groupby(level="model", observed=True).mean()
    theirs = paper.reported(found[0].plan.experiment, found[0].plan.options) if reported else {}
    labels, drawn = [], False
    ordered = means.sort_values(ascending=metric in metrics.HIGHER_IS_BETTER)
    for row, (model, mean) in enumerate(zip(map(str, ordered.index), ordered, strict=True)):
        style = STYLES.get(model, {"color": "0.3", "label": model})
        seeds = numbers.loc[model]
        axes.plot(seeds, np.full(len(seeds), row), "o", color=style["color"], ms=5)
        axes.plot([mean, mean], [row - 0.3, row + 0.3], color=style["color"], lw=2.5)
        cell = theirs.get(model, {}).get(column)
        if cell is not None and cell.mean is not None:
            label = None if drawn else "the paper"
            drawn = True
            axes.errorbar(
                cell.mean, row, xerr=cell.std, fmt="D", mfc="none", mec="0.35", ecolor="0.6", ms=6, lw=1, label=label
            )
        labels.append(style["label"])
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    name, _, unit = names.METRICS.get(metric, metric).partition(" ")
    axes.set_xlabel(f"{name}, {column} {unit}".rstrip())
    if drawn:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)  # among the rows it looks like data


def gains(axes: Axes, found: Sequence[Contrast], *, unit: str = "") -> None:
    """The gain of a model over each of the others with its interval, coloured where the interval leaves out zero."""
    colours = {"better": "#0072B2", "worse": "#D55E00", "within the noise": "0.55"}
    ordered = sorted(found, key=lambda each: each.gain)
    for row, each in enumerate(ordered):
        axes.plot([each.low, each.high], [row, row], color=colours[each.verdict], lw=2)
        axes.plot([each.gain], [row], "o", color=colours[each.verdict])
    axes.axvline(0.0, color="0.3", lw=0.8)
    axes.set_yticks(
        range(len(ordered)), [str(STYLES.get(each.other, {"label": each.other})["label"]) for each in ordered]
    )
    model = STYLES.get(found[0].model, {"label": found[0].model})["label"] if found else ""
    axes.set_xlabel(f"gain of {model} over the model named{f' ({unit})' if unit else ''}")


def draw(
    axes: Axes,
    x: Sequence[float] | np.ndarray,
    values: np.ndarray,
    *,
    model: str | None = None,
    centre: str = "median",
    band: bool = True,
    seeds: bool = False,
    **style: Any,
) -> Any:
    """One line of a figure: the centre of the seeds, the range from the lowest to the highest, and each of them.

    Args:
        x: [points], or [seeds, points] where the position is measured for every seed; then its centre is used.
        values: [seeds, points], or [points] for a line alone.
        model: takes the look of ``viz.STYLES``; ``style`` goes before it.
        centre: ``"median"`` or ``"mean"``.
        band: shade the range of the seeds.
        seeds: draw every seed as a thin line.

    Returns:
        The line, for a legend.
    """
    if centre not in ("median", "mean"):
        raise ValueError(f"unknown centre {centre!r}; choose one of: median, mean.")
    rows = np.atleast_2d(np.asarray(values, float))
    middle = np.nanmedian if centre == "median" else np.nanmean
    positions = np.asarray(x, float)
    each = positions if positions.ndim == 2 else np.broadcast_to(positions, rows.shape)
    along = middle(positions, axis=0) if positions.ndim == 2 else positions
    (line,) = axes.plot(along, middle(rows, axis=0), **{**STYLES.get(model or "", {"label": model}), **style})
    if len(rows) > 1 and band:
        axes.fill_between(
            along, np.nanmin(rows, axis=0), np.nanmax(rows, axis=0), color=line.get_color(), alpha=0.12, linewidth=0
        )
    if seeds:
        for place, row in zip(each, rows, strict=True):
            axes.plot(place, row, color=line.get_color(), linewidth=0.6, alpha=0.45, zorder=line.get_zorder() - 0.5)
    return line
