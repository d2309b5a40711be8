"""The figures of the chapters with real data: models in rows, each seed a dot, the paper's number beside them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from advdiff.experiments import metrics, paper
from advdiff.experiments.contrast import Contrast
from advdiff.experiments.curves import STYLES, collect
from advdiff.experiments.records import Record

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
    curves = collect(found, columns=[column]).at(column=column)
    metric = found[0].metric
    scale = 100.0 if metric in metrics.PERCENT else 1.0
    means = scale * np.nanmean(curves.values, axis=1)
    order = np.argsort(means if metric in metrics.HIGHER_IS_BETTER else -means)
    theirs = paper.reported(found[0].experiment, found[0].options) if reported else {}
    labels, drawn = [], False
    for row, place in enumerate(order):
        model = curves.axes["model"][place]
        style = STYLES.get(model, {"color": "0.3", "label": model})
        axes.plot(scale * curves.values[place], np.full(curves.values.shape[1], row), "o", color=style["color"], ms=5)
        axes.plot([means[place]] * 2, [row - 0.3, row + 0.3], color=style["color"], lw=2.5)
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
    axes.set_xlabel(f"{metric.replace('_', '-').upper() if metric != 'accuracy' else metric}, {column}" + _unit(metric))
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


def _unit(metric: str) -> str:
    return " (%)" if metric in metrics.PERCENT else ""
