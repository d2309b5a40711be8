"""Is one model better than another by more than the noise over seeds?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from advdiff.experiments import metrics
from advdiff.experiments.curves import collect
from advdiff.experiments.records import Record


@dataclass(frozen=True)
class Contrast:
    """How much better one model is than another, with Welch's interval for the difference of the two means.

    The seeds of the two models are not paired: on given data a seed only draws weights and the order of batches.

    Attributes:
        model, other: their names.
        gain: difference of the means, positive where ``model`` is better, whichever way the metric goes. Accuracy and
            ROC-AUC are in per cent.
        low, high: 95 % interval; infinite with a single seed.
        seeds: of either.
    """

    model: str
    other: str
    gain: float
    low: float
    high: float
    seeds: tuple[int, int]

    @property
    def verdict(self) -> str:
        """``"better"``, ``"worse"``, or ``"within the noise"`` where the interval holds zero."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "within the noise"

    def __str__(self) -> str:
        return (
            f"{self.model} against {self.other}: {self.gain:+.3g} [{self.low:+.3g}, {self.high:+.3g}], {self.verdict}"
        )


def welch(first: Sequence[float], second: Sequence[float], level: float = 0.95) -> tuple[float, float, float]:
    """Difference of two means (first − second) with its interval, variances not assumed equal.

    Example:
        >>> [round(value, 2) for value in welch([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])]
        [2.0, -0.27, 4.27]
    """
    a, b = np.asarray(first, float), np.asarray(second, float)
    gain = float(a.mean() - b.mean())
    if min(a.size, b.size) < 2:
        return gain, -math.inf, math.inf
    parts = np.array([a.var(ddof=1) / a.size, b.var(ddof=1) / b.size])
    error = math.sqrt(parts.sum())
    if error == 0.0:
        return gain, gain, gain
    freedom = parts.sum() ** 2 / (parts[0] ** 2 / (a.size - 1) + parts[1] ** 2 / (b.size - 1))
    half = float(stats.t.ppf((1 + level) / 2, freedom)) * error
    return gain, gain - half, gain + half


def contrasts(
    records: Iterable[Record], model: str, column: str = "test mean", others: Sequence[str] | None = None
) -> list[Contrast]:
    """``model`` against each of the other models that have records, in the order of the recipe.

    The records must hold one run per model and seed (see :func:`advdiff.experiments.selection.select`); runs without
    a number are left out.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import run
        >>> from advdiff.experiments.contrast import contrasts
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = run("synthetic", ["mlp", "sgc"], seeds=2, settings={"epochs": 2}, num_nodes=30, shift="none",
        ...                   profile="quick", device="cpu", results=folder, progress=False)
        >>> [(each.model, each.other, each.seeds) for each in contrasts(records, "sgc")]
        [('sgc', 'mlp', (2, 2))]
    """
    found = list(records)
    curves = collect(found, columns=[column])
    if model not in curves.axes["model"]:
        raise ValueError(f"there are no runs of {model}; there are: {', '.join(curves.axes['model'])}.")
    metric = found[0].metric
    sign = (1.0 if metric in metrics.HIGHER_IS_BETTER else -1.0) * (100.0 if metric in metrics.PERCENT else 1.0)
    values = {name: _known(sign * curves.at(model=name, column=column).values) for name in curves.axes["model"]}
    names = [name for name in (others or values) if name != model and values[name].size]
    result = []
    for name in names:
        gain, low, high = welch(values[model], values[name])  # type: ignore[arg-type]
        result.append(Contrast(model, name, gain, low, high, (values[model].size, values[name].size)))
    return result


def _known(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]
