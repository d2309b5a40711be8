"""Is one model better than another by more than the noise over seeds?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from scipy import stats

from advdiff.experiments import metrics
from advdiff.experiments.records import Record
from advdiff.results.frame import collect

Numbers = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Contrast:
    """How much better one model is than another, with an interval for the difference of the two means.

    The interval and the p-value are Welch's (:func:`contrasts`) or those of a common variance (:func:`pooled`).
    The seeds of the two models are not paired: on given data a seed only draws weights and the order of batches.

    Attributes:
        model, other: their names.
        gain: difference of the means, positive where ``model`` is better, whichever way the metric goes. Accuracy and
            ROC-AUC are in per cent.
        low, high: 95 % interval; infinite with a single seed.
        seeds: of either.
        p: p-value: how probable a difference of this size is if there is none; 1 with a single seed.
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


def welch(first: Numbers, second: Numbers, level: float = 0.95) -> tuple[float, float, float]:
    """Difference of two means (first − second) with its interval, variances not assumed equal.

    Example:
        >>> [round(value, 2) for value in welch([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])]
        [2.0, -0.27, 4.27]
    """
    a, b = _finite(first), _finite(second)
    gain = float(a.mean() - b.mean())
    if min(a.size, b.size) < 2:
        return gain, -math.inf, math.inf
    if np.ptp(a) == np.ptp(b) == 0.0:  # scipy would divide by a variance of zero
        return gain, gain, gain
    both = stats.ttest_ind(a, b, equal_var=False).confidence_interval(level)
    return gain, float(both.low), float(both.high)


def p_value(first: Numbers, second: Numbers) -> float:
    """Two-sided p-value of Welch's test for equal means; 1 where a group has fewer than two numbers.

    Example:
        >>> round(p_value([3.0, 4.0, 5.0], [1.0, 2.0, 3.0]), 3)
        0.07
    """
    a, b = _finite(first), _finite(second)
    if min(a.size, b.size) < 2:
        return 1.0
    if np.ptp(a) == np.ptp(b) == 0.0:
        return float(a[0] == b[0])
    return float(stats.ttest_ind(a, b, equal_var=False).pvalue)


def pooled(
    groups: Mapping[str, Numbers],
    model: str,
    others: Iterable[str] | None = None,
    level: float = 0.95,
    *,
    paired: bool = False,
) -> list[Contrast]:
    """``model`` against each of the others, with one variance for all groups of a table.

    With few seeds each, the variance of a single model is hardly known. If it may be taken as the same for all, the
    mean square within the groups estimates it from every run,

        s² = Σ_g Σ_i (x_gi − x̄_g)² / ν,   ν = Σ_g (n_g − 1),

    and x̄_a − x̄_b has the standard error s·√(1/n_a + 1/n_b) and Student's distribution with ν degrees of freedom.

    Args:
        groups: name → numbers of which the larger is the better, as :func:`scores` gives them.
        others: all by default. Groups that are not compared count for the variance, too.
        paired: the numbers at the same place of all groups belong together (a seed that draws the data): what is common
            to a place is taken out, as in a randomised block design.

    Example:
        >>> runs = {"a": [3.0, 4.0, 5.0], "b": [1.0, 2.0, 3.0], "c": [2.0, 3.0, 4.0]}
        >>> for each in pooled(runs, "a"):
        ...     print(each, f"p = {each.p:.3f}")
        a against b: +2 [+0.0021, +4], better p = 0.050
        a against c: +1 [-0.998, +3], within the noise p = 0.267
    """
    known = {name: _finite(values) for name, values in groups.items()}
    compared = [name for name in (known if others is None else others) if name != model]
    for name in (model, *compared):
        if name not in known:
            raise ValueError(f"there are no numbers of {name}; there are: {', '.join(known)}.")
    if paired:
        table = np.stack(list(known.values()))  # [groups, places]
        rest = table - table.mean(0) - table.mean(1, keepdims=True) + table.mean()
        freedom, squares = (table.shape[0] - 1) * (table.shape[1] - 1), float(np.square(rest).sum())
    else:
        freedom = sum(values.size - 1 for values in known.values())
        squares = sum(float(np.square(values - values.mean()).sum()) for values in known.values())
    made = []
    for name in compared:
        a, b = known[model], known[name]
        gain = float(a.mean() - b.mean())
        error = math.sqrt(squares / freedom * (1 / a.size + 1 / b.size)) if freedom else math.inf
        half = error * float(stats.t.ppf((1 + level) / 2, freedom)) if freedom else math.inf
        p = float(2 * stats.t.sf(abs(gain) / error, freedom or 1)) if error > 0.0 else float(gain == 0.0)
        made.append(Contrast(model, name, gain, gain - half, gain + half, (a.size, b.size), p))
    return made


def scores(records: Iterable[Record], column: str = "test mean") -> dict[str, np.ndarray]:
    """Model → its numbers over seeds, the larger the better, whichever way the metric goes; per cent where it has it.

    The records must hold one run per model and seed (see :func:`advdiff.results.frame.select`); runs without a number
    are left out, and so are models without any.
    """
    found = list(records)
    numbers = collect(found, columns=[column])[column].dropna()
    metric = found[0].outcome.metric
    sign = (1.0 if metric in metrics.HIGHER_IS_BETTER else -1.0) * (100.0 if metric in metrics.PERCENT else 1.0)
    return {str(name): sign * group.to_numpy() for name, group in numbers.groupby(level="model", observed=True)}


def contrasts(
    records: Iterable[Record], model: str, column: str = "test mean", others: Sequence[str] | None = None
) -> list[Contrast]:
    """``model`` against each of the other models that have numbers (:func:`scores`), in the order of the recipe.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import run
        >>> from advdiff.results.compare import contrasts
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = run("synthetic", ["mlp", "sgc"], seeds=2, settings={"epochs": 2}, num_nodes=30, shift="none",
        ...                   profile="quick", device="cpu", results=folder, progress=False)
        >>> [(each.model, each.other, each.seeds) for each in contrasts(records, "sgc")]
        [('sgc', 'mlp', (2, 2))]
    """
    found = list(records)
    values, made = scores(found, column), {record.plan.model for record in found}
    for name in (model, *(others or ())):
        if name not in (values if name == model else made):
            raise ValueError(f"there are no runs of {name}; there are: {', '.join(values)}.")
    own = values[model]
    return [
        Contrast(model, name, *welch(own, values[name]), (own.size, values[name].size), p_value(own, values[name]))
        for name in (others or values)
        if name != model and name in values
    ]


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


@dataclass(frozen=True)
class SignTest:
    """How often one number of a pair is below the other, and the chance of a count as uneven if both were alike.

    Attributes:
        below, pairs: the count, and out of how many (ties are left out).
        p: two-sided, exact; with five pairs at least 1/16.
    """

    below: int
    pairs: int
    p: float

    def __str__(self) -> str:
        return f"{self.below}/{self.pairs}"


def sign_test(first: Numbers, second: Numbers | float = 0.0) -> SignTest:
    """Compare paired numbers, seed by seed, with nothing assumed about their distribution.

    Example:
        >>> sign_test([1, 2, 3, 4, 9], [2, 3, 4, 5, 6])
        SignTest(below=4, pairs=5, p=0.375)
    """
    difference = np.asarray(first, float) - np.asarray(second, float)
    if np.isnan(difference).any():
        raise ValueError("a number is missing (NaN): a count over the rest would not be of pairs.")
    below, pairs = int((difference < 0).sum()), int((difference != 0).sum())
    return SignTest(below, pairs, float(stats.binomtest(below, pairs).pvalue) if pairs else 1.0)


def interval(values: Numbers, level: float = 0.95) -> tuple[float, float]:
    """Student's interval for the mean of a few numbers (of differences or log-ratios, where seeds are paired).

    Example:
        >>> low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
        >>> round(low, 2), round(high, 2)
        (1.04, 4.96)
    """
    numbers = _finite(values)
    if numbers.size < 2:
        raise ValueError("an interval needs at least two numbers.")
    half = float(stats.t.ppf((1 + level) / 2, numbers.size - 1) * stats.sem(numbers))
    return float(numbers.mean()) - half, float(numbers.mean()) + half


def log_slope(x: Numbers, y: Numbers) -> float:
    """p of the power law y ∝ x^p, fitted by least squares on logarithms; above 1 is growth faster than linear.

    Example:
        >>> round(log_slope([1, 2, 4], [3, 12, 48]), 6)
        2.0
    """
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0])


def _finite(values: Numbers) -> np.ndarray:
    numbers = np.asarray(values, float)
    if numbers.ndim != 1 or not numbers.size or not np.isfinite(numbers).all():
        raise ValueError(f"{values} cannot be compared; give a list of at least one number, all finite.")
    return numbers
