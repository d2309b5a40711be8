"""Differences between models when both the seeds and the molecules could have been others.

A test set of 150 molecules is itself a sample: a model that is better on it, seed by seed, need not be better on the
next 150. So molecules are drawn again with replacement, the same for all models, and seeds for each model by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import rankdata

from advdiff.experiments.packing import unpacked
from advdiff.experiments.records import Record

DRAWS = 1000


def areas(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """ROC-AUC of every seed: scores [S, n, tasks] against labels [n, tasks] of 0, 1 and NaN → [S], the mean over tasks.

    Example:
        >>> areas(np.array([[[0.1], [0.4], [0.35], [0.8]]]), np.array([[0.0], [0.0], [1.0], [1.0]]))
        array([0.75])
    """
    known = ~np.isnan(labels)
    positive = (labels > 0.5) & known
    positives, negatives = positive.sum(0), (known & ~positive).sum(0)
    # Unknown entries go below all others, where they raise every rank by the same number.
    ranks = rankdata(np.where(known, scores, -np.inf), axis=1) - (~known).sum(0)
    sums = (ranks * positive).sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        area = (sums - positives * (positives + 1) / 2) / (positives * negatives)
    defined = (positives > 0) & (negatives > 0)
    return area[:, defined].mean(1) if defined.any() else np.full(len(scores), np.nan)


def resampled_means(
    runs: Mapping[str, Sequence[Record]], environment: str = "test", draws: int = DRAWS
) -> dict[str, np.ndarray]:
    """Model → mean ROC-AUC over its seeds in every draw of molecules and seeds, from the predictions in the records."""
    rng = np.random.default_rng(0)
    kept = {name: [record.outcome.predictions[environment] for record in group] for name, group in runs.items()}
    labels = unpacked(next(iter(kept.values()))[0][1]).numpy()
    scores = {name: np.stack([unpacked(output).numpy() for output, _ in group]) for name, group in kept.items()}
    means: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(draws):
        rows = rng.integers(len(labels), size=len(labels))
        for name, each in scores.items():
            chosen = rng.integers(len(each), size=len(each))
            means[name].append(float(areas(each[:, rows], labels[rows])[chosen].mean()))
    return {name: np.asarray(values) for name, values in means.items()}


def interval(first: np.ndarray, second: np.ndarray, level: float = 0.95) -> tuple[float, float, float]:
    """Interval of the difference of two resampled means, and twice the share of draws on the rarer side of zero."""
    difference = (first - second)[np.isfinite(first - second)]
    low, high = np.quantile(difference, [(1 - level) / 2, (1 + level) / 2])
    rarer = min((difference <= 0).sum(), (difference >= 0).sum())
    return float(low), float(high), float(min(1.0, 2 * (rarer + 1) / (difference.size + 1)))
