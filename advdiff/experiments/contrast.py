"""Is one model better than another by more than the noise over seeds?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile

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
        p: p-value of Welch's test: how probable a difference of this size is if there is none; 1 with a single seed.
    """

    model: str
    other: str
    gain: float
    low: float
    high: float
    seeds: tuple[int, int]
    p: float = 1.0

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
    gain, error, freedom = _difference(first, second)
    half = error * float(stats.t.ppf((1 + level) / 2, freedom))
    return gain, gain - half, gain + half


def p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p-value of Welch's test for equal means; 1 where a group has fewer than two numbers.

    Example:
        >>> round(p_value([3.0, 4.0, 5.0], [1.0, 2.0, 3.0]), 3)
        0.07
    """
    gain, error, freedom = _difference(first, second)
    return float(2 * stats.t.sf(abs(gain) / error, freedom)) if error > 0.0 else float(gain == 0.0)


def _difference(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    """Difference of two means, its standard error (infinite with a single number) and Welch's degrees of freedom."""
    a, b = np.asarray(first, float), np.asarray(second, float)
    gain = float(a.mean() - b.mean())
    if min(a.size, b.size) < 2:
        return gain, math.inf, 1.0
    parts = np.array([a.var(ddof=1) / a.size, b.var(ddof=1) / b.size])
    total = float(parts.sum())
    freedom = total**2 / (parts[0] ** 2 / (a.size - 1) + parts[1] ** 2 / (b.size - 1)) if total > 0.0 else 1.0
    return gain, math.sqrt(total), float(freedom)


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
        p = p_value(values[model], values[name])  # type: ignore[arg-type]
        result.append(Contrast(model, name, gain, low, high, (values[model].size, values[name].size), p))
    return result


def holm(found: Iterable[Contrast], level: float = 0.05) -> list[Contrast]:
    """Those contrasts that are clear even if the chance of *any* false one shall stay below ``level``.

    Holm's correction: go from the smallest p-value to the largest, ask the k-th of m to be at most level/(m − k + 1),
    and stop at the first that is not.

    Example:
        >>> clear = Contrast("a", "b", 2.0, 1.0, 3.0, (3, 3), p=0.01)
        >>> unclear = Contrast("a", "c", 1.0, 0.1, 1.9, (3, 3), p=0.04)
        >>> [each.other for each in holm([unclear, clear, Contrast("a", "d", 1.0, 0.1, 1.9, (3, 3), p=0.03)])]
        ['b']
    """
    ordered = sorted(found, key=lambda each: each.p)
    limits = (level / (len(ordered) - k) for k in range(len(ordered)))
    return [each for each, _ in takewhile(lambda pair: pair[0].p <= pair[1], zip(ordered, limits, strict=True))]


def _known(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]
