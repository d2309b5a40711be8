"""Records as arrays with named axes, what five seeds can tell, and the figure of a metric against anything.

``curves = collect(select(read("results/synthetic.jsonl"), shift="block"))`` is an array with the axes model, seed and
column; ``curves.at(model="mlp")`` is a part of it, and ``draw(axes, x, part.values)`` one line of a figure.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from advdiff.experiments import recipes
from advdiff.experiments.jobs import unaliased
from advdiff.experiments.records import Record
from advdiff.experiments.selection import value_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: One look per model in all figures, the paper's two and our third in blues, local models in warm colours, attention
#: in greens and violet.
STYLES: dict[str, dict[str, Any]] = {
    "advdifformer-s": {"color": "#0072B2", "marker": "o", "label": "AdvDIFFormer-s"},
    "advdifformer-i": {"color": "#56B4E9", "marker": "s", "label": "AdvDIFFormer-i"},
    "advdifformer-e": {"color": "#003B5C", "marker": "D", "label": "AdvDIFFormer-e"},
    "diff-linear": {"color": "#D55E00", "marker": "^", "label": "Diff-Linear"},
    "diff-multilayer": {"color": "#E69F00", "marker": "v", "label": "Diff-MultiLayer"},
    "diff-time": {"color": "#CC79A7", "marker": "<", "label": "Diff-Time"},
    "diff-nonlocal": {"color": "#009E73", "marker": "P", "label": "Diff-NonLocal"},
    "mlp": {"color": "#555555", "marker": "x", "label": "MLP"},
    "gcn": {"color": "#D55E00", "marker": ">", "label": "GCN"},
    "gat": {"color": "#E69F00", "marker": "d", "label": "GAT"},
    "sgc": {"color": "#CC79A7", "marker": "p", "label": "SGC"},
    "gdc": {"color": "#A6761D", "marker": "h", "label": "GDC"},
    "grand": {"color": "#B2182B", "marker": "*", "label": "GRAND"},
    "a-dgn": {"color": "#F0A3A3", "marker": "8", "label": "A-DGN"},
    "cde": {"color": "#8C510A", "marker": "X", "label": "CDE"},
    "graphtrans": {"color": "#009E73", "marker": "H", "label": "GraphTrans"},
    "graphgps": {"color": "#66C2A5", "marker": "1", "label": "GraphGPS"},
    "difformer": {"color": "#6A3D9A", "marker": "P", "label": "DIFFormer"},
}
#: What a model is called in prose and figures.
NAMES: dict[str, str] = {model: style["label"] for model, style in STYLES.items()}


@dataclass(frozen=True, eq=False)
class Curves:
    """Numbers with named axes; NaN where a run gave none.

    Attributes:
        axes: name → its values in order, in the order of the dimensions of ``values``.
        values: float64.
    """

    axes: dict[str, tuple[Any, ...]]
    values: np.ndarray

    def __post_init__(self) -> None:
        if self.values.shape != tuple(len(along) for along in self.axes.values()):
            raise ValueError(f"values have the shape {self.values.shape}, which does not fit the axes {self._sizes()}.")

    def at(self, **chosen: Any) -> Curves:
        """The part at these values. One value removes the axis; a list or tuple keeps it, with these values only."""
        part, axes = self.values, dict(self.axes)
        for name, wanted in chosen.items():
            along = self._axis(name, axes)
            several = isinstance(wanted, list | tuple) and wanted not in axes[name]
            indices = []
            for value in wanted if several else [wanted]:
                if value not in axes[name]:
                    raise ValueError(f"no {name} {value!r}; there are: {', '.join(map(str, axes[name]))}.")
                indices.append(axes[name].index(value))
            if several:
                part = np.take(part, indices, axis=along)
                axes[name] = tuple(wanted)
            else:
                part = np.take(part, indices[0], axis=along)
                del axes[name]
        return Curves(axes, part)

    def mean(self, name: str) -> Curves:
        """The mean along an axis; NaN where a value is missing, since a mean over fewer would not compare."""
        return self._reduced(name, np.mean)

    def median(self, name: str) -> Curves:
        """The median along an axis; NaN where a value is missing."""
        return self._reduced(name, np.median)

    def relative_to(self, **chosen: Any) -> Curves:
        """Everything divided by the part at these values: ``relative_to(model="mlp")`` pairs the seeds."""
        along = {name: self._axis(name, self.axes) for name in chosen}
        part = self.at(**chosen).values
        return Curves(self.axes, self.values / np.expand_dims(part, tuple(sorted(along.values()))))

    def complete(self) -> bool:
        """Whether every run is there and gave a number."""
        return bool(self.values.size) and bool(np.isfinite(self.values).all())

    def __repr__(self) -> str:
        missing = int(np.isnan(self.values).sum())
        return f"Curves({self._sizes()}{f'; {missing} missing' if missing else ''})"

    def _reduced(self, name: str, how: Any) -> Curves:
        along = self._axis(name, self.axes)
        axes = {key: value for key, value in self.axes.items() if key != name}
        return Curves(axes, np.asarray(how(self.values, axis=along)))

    def _sizes(self) -> str:
        return ", ".join(f"{name}: {len(along)}" for name, along in self.axes.items())

    @staticmethod
    def _axis(name: str, axes: Mapping[str, Any]) -> int:
        if name not in axes:
            raise ValueError(f"no axis {name!r}; there are: {', '.join(axes)}.")
        return list(axes).index(name)


def collect(
    records: Iterable[Record], by: str | Sequence[str] = ("model",), columns: Sequence[str] | None = None
) -> Curves:
    """Metrics as an array with the axes ``by``, ``seed`` and ``column``.

    Two runs that differ in anything else are never mixed: that is an error, which says what they differ in.

    Args:
        by: fields of a record (``model``, ``profile``), options of the data (``shift``, ``labels``), or settings
            (``beta``, ``lr``). Models come in the order of the recipe, numbers in their own, others as they are met.
        columns: environments, ``"train"``, ``"valid"``, ``"test mean"`` or ``"test worst"``; by default every
            environment of the first record.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import run
        >>> from advdiff.experiments.curves import collect
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = run("synthetic", "mlp", seeds=2, settings={"epochs": 2}, num_nodes=30, shift="none",
        ...                   profile="quick", device="cpu", results=folder, progress=False)
        >>> curves = collect(records, columns=["valid", "test mean"])
        >>> curves.axes
        {'model': ('mlp',), 'seed': (0, 1), 'column': ('valid', 'test mean')}
        >>> curves.at(model="mlp").values.shape
        (2, 2)
    """
    found = list(records)
    names = tuple(unaliased({name: None for name in ([by] if isinstance(by, str) else by)}))
    if not found:
        raise ValueError("there are no records to collect; are the runs made, and the selection right?")
    chosen = tuple(columns) if columns is not None else tuple(found[0].metrics)
    places: dict[tuple[Any, ...], Record] = {}
    for record in found:
        place = (*(look_up(record, name) for name in names), record.seed)
        other = places.setdefault(place, record)
        if other is not record:
            raise ValueError(
                f"two runs for {dict(zip((*names, 'seed'), place, strict=True))}: {_contrast(other, record)}."
            )
    axes: dict[str, tuple[Any, ...]] = {}
    for position, name in enumerate((*names, "seed")):
        axes[name] = _in_order(name, list(dict.fromkeys(place[position] for place in places)), found)
    axes["column"] = chosen
    values = np.full([len(along) for along in axes.values()], np.nan)
    for place, record in places.items():
        index = tuple(axes[name].index(value) for name, value in zip(axes, place, strict=False))
        numbers = [value_of(record, column) for column in chosen]
        values[index] = [math.nan if number is None else number for number in numbers]
    return Curves(axes, values)


def look_up(record: Record, name: str) -> Any:
    """A field of a record, an option of its data, or a setting of its model or budget."""
    if name in ("model", "profile", "experiment", "status", "device"):
        return getattr(record, name)
    for part in (record.options, record.settings, record.budget):
        if name in part:
            return part[name]
    known = ", ".join(["model", "profile", *record.options, *record.settings, *record.budget])
    raise ValueError(f"a run of {record.model} has no {name!r}; it has: {known}.")


def _in_order(name: str, values: list[Any], found: Sequence[Record]) -> tuple[Any, ...]:
    if name == "model":
        listed = recipes.RECIPES[found[0].experiment].models if found[0].experiment in recipes.RECIPES else ()
        return tuple(sorted(values, key=lambda model: listed.index(model) if model in listed else len(listed)))
    if all(isinstance(value, int | float) for value in values):
        return tuple(sorted(values))
    return tuple(values)


def _contrast(first: Record, second: Record) -> str:
    sides = [
        {**each.options, **each.settings, **each.budget, "profile": each.profile, "data_seed": each.data_seed}
        for each in (first, second)
    ]
    names = [name for name in {**sides[0], **sides[1]} if sides[0].get(name) != sides[1].get(name)]
    if not names:
        return "the same run is given twice" if first.key == second.key else f"keys {first.key} and {second.key}"
    return "they differ in " + ", ".join(
        f"{name} ({json.dumps(sides[0].get(name))}, {json.dumps(sides[1].get(name))})" for name in names
    )


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


def sign_test(first: Sequence[float] | np.ndarray, second: Sequence[float] | np.ndarray | float = 0.0) -> SignTest:
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


def interval(values: Sequence[float] | np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """Student's interval for the mean of a few numbers (of differences or log-ratios, where seeds are paired).

    Example:
        >>> low, high = interval([1.0, 2.0, 3.0, 4.0, 5.0])
        >>> round(low, 2), round(high, 2)
        (1.04, 4.96)
    """
    numbers = np.asarray(values, float)
    if numbers.ndim != 1 or numbers.size < 2 or not np.isfinite(numbers).all():
        raise ValueError("an interval needs at least two numbers, all finite.")
    half = float(stats.t.ppf((1 + level) / 2, numbers.size - 1)) * float(numbers.std(ddof=1)) / math.sqrt(numbers.size)
    return float(numbers.mean()) - half, float(numbers.mean()) + half


def log_slope(x: Sequence[float] | np.ndarray, y: Sequence[float] | np.ndarray) -> float:
    """p of the power law y ∝ x^p, fitted by least squares on logarithms; above 1 is growth faster than linear.

    Example:
        >>> round(log_slope([1, 2, 4], [3, 12, 48]), 6)
        2.0
    """
    return float(np.polyfit(np.log(np.asarray(x, float)), np.log(np.asarray(y, float)), 1)[0])


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
        model: takes the look of :data:`STYLES`; ``style`` goes before it.
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
