"""Does an error grow faster than linearly with the shift? The bulge of a parabola below its chord, seed by seed.

For a run with errors y_i on test graphs at shifts x_i = ‖A_i − A_1‖₂, the least-squares parabola y ≈ a + bx + cx² lies
c (x_max − x_min)²/4 below the chord of its ends, half-way between them. Relative to the mean error this is the bulge:
positive where the error grows super-linearly, zero on a straight line.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import numpy as np
from scipy import stats

from advdiff import datasets
from advdiff.experiments.records import Record
from advdiff.results.compare import Contrast, interval
from advdiff.theory.shifts import adjacency_shift


def bulge(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> float:
    """The bulge of one run.

    Example:
        >>> bulge([0, 1, 2, 3], [1, 2, 3, 4])  # a straight line
        0.0
        >>> bulge([0, 1, 2], [1, 0, 1])  # 1 below the chord, the mean error is 2/3
        1.5
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    t = (x - x.min()) / (x.max() - x.min())
    c = np.linalg.lstsq(np.stack([np.ones_like(t), t, t**2], 1), y, rcond=None)[0][2]
    return round(float(c / 4 / y.mean()), 12)


def curvature(runs: Sequence[Record], level: float = 0.95) -> Contrast:
    """The mean bulge over seeds, as a contrast of the run's error with a straight line; positive where it bulges."""
    found = []
    for record in runs:
        shifts = shifts_of(json.dumps({**record.plan.options, "seed": record.plan.data_seed}, sort_keys=True))
        errors = [record.outcome.metrics[name] for name in record.outcome.test]
        if any(error is None for error in errors):
            raise ValueError(f"a run of {record.plan.model} has no error on some test graph.")
        found.append(bulge([shifts[name] for name in record.outcome.test], np.array(errors, dtype=float)))
    low, high = interval(found, level)
    p = float(stats.ttest_1samp(found, 0.0).pvalue) if len(set(found)) > 1 else float(not any(found))
    name = runs[0].plan.model
    return Contrast(f"{name}, bulge", "a straight line", float(np.mean(found)), low, high, (len(found), 0), p)


@functools.lru_cache(maxsize=64)
def shifts_of(options: str) -> dict[str, float]:
    """Environment → ‖A − A_1‖₂ of synthetic data with these options."""
    data = datasets.load("synthetic", **json.loads(options))
    first = data.graphs(*data.train)[0]
    return {
        name: adjacency_shift(first.edge_index, data.graphs(name)[0].edge_index, first.num_nodes) for name in data.test
    }
