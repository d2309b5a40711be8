"""``tune``: the paper's search grid, judged on validation data only."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advdiff import nn
from advdiff.experiments import metrics, recipes
from advdiff.experiments.machine import choose_device
from advdiff.experiments.plan import Plan, applicable, choose_models, plans, unaliased
from advdiff.experiments.recipe import BUDGET_FIELDS, Recipe
from advdiff.experiments.records import Record
from advdiff.experiments.sweep import results_file, sweep

Point = tuple[dict[str, Any], float]


@dataclass(frozen=True)
class Tuned:
    """The settings with the best validation metric, for one model on one data set.

    Attributes:
        settings: the point of the grid; pass it as ``settings`` of :func:`advdiff.experiments.run`.
        value: its validation metric, mean over seeds.
        tried: all points, the best first; NaN where a run did not end well.

    Example:
        >>> from advdiff.experiments import Tuned
        >>> best = Tuned("synthetic", {}, "sgc", "mse", {"hops": 2}, 0.3, [({"hops": 2}, 0.3), ({"hops": 1}, 0.4)])
        >>> best.settings, best.value
        ({'hops': 2}, 0.3)
    """

    experiment: str
    options: dict[str, Any]
    model: str
    metric: str
    settings: dict[str, Any]
    value: float
    tried: list[Point]

    def __str__(self) -> str:
        where = " ".join(f"{name}={value}" for name, value in self.options.items())
        point = " ".join(f"{name}={value}" for name, value in self.settings.items()) or "nothing to choose"
        bad = sum(math.isnan(value) for _, value in self.tried)
        failed = f", {bad} without a value" if bad else ""
        head = f"{self.model} on {self.experiment}{' ' + where if where else ''}"
        return f"{head}: best of {len(self.tried)}{failed}: {point} (validation {self.metric} {self.value:.4g})"


def tune(
    experiment: str,
    model: str | Iterable[str] = "all",
    seeds: int | Iterable[int] = (0,),
    profile: str | None = None,
    device: str = "auto",
    jobs: int = 1,
    dask: str | None = None,
    results: str | os.PathLike[str] = "results",
    settings: Mapping[str, Any] | None = None,
    grid: Mapping[str, Iterable[Any]] | None = None,
    points: int | None = None,
    threads: int | None = None,
    progress: bool = True,
    **options: Any,
) -> list[Tuned]:
    """Try the grid and say which settings are best on the validation data; the tests are not looked at.

    Runs are recorded in ``results/<experiment>-tuning.jsonl`` and found there again.

    Args:
        grid: replaces axes of the paper's grid, ``{"beta": [0.2, 0.5]}``; an axis with one value is fixed.
        points: try only so many points of the grid, drawn at random, the same every time.
        settings: replace settings that the grid does not vary.

    The other arguments are those of :func:`advdiff.experiments.run`.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import tune
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     (best,) = tune("synthetic", "sgc", grid={"hops": [1, 2]}, points=2, settings={"epochs": 2},
        ...                    shift="none", num_nodes=30, profile="quick", device="cpu", results=folder,
        ...                    progress=False)
        >>> len(best.tried), best.settings["hops"] in (1, 2)
        (2, True)
    """
    recipe = recipes.find(experiment)
    choose_device(device)
    models = choose_models(recipe, model)
    applicable(models, dict(grid or {}))
    planned: list[tuple[Plan, dict[str, Any]]] = []
    for name in models:
        for point in grid_points(recipe, name, grid, points):
            overrides = {**unaliased(settings or {}), **point}
            of_point = plans(recipe, name, seeds, profile, overrides, None, options, only_valid=True)
            planned += [(plan, point) for plan in of_point]
    done = sweep(
        [plan for plan, _ in planned],
        results_file(results, f"{recipe.name}-tuning"),
        device=device,
        processes=jobs,
        dask=dask,
        threads=threads,
        progress=progress,
    )
    return _best(recipe, [point for _, point in planned], done)


def grid_points(
    recipe: Recipe, model: str, grid: Mapping[str, Iterable[Any]] | None = None, points: int | None = None
) -> list[dict[str, Any]]:
    """The points of the grid for a model: only axes that the model or the budget has."""
    given = {name: tuple(values) for name, values in unaliased(grid or {}).items()}
    known = {"hidden_channels", *nn.model_settings(model), *BUDGET_FIELDS}
    axes = {name: values for name, values in {**recipe.grid, **given}.items() if name in known}
    product = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    if points is not None and points < len(product):
        if points < 1:
            raise ValueError(f"points is {points}; it must be at least 1.")
        product = [product[index] for index in sorted(random.Random(0).sample(range(len(product)), points))]
    return product


def _best(recipe: Recipe, points: Sequence[dict[str, Any]], done: Sequence[Record]) -> list[Tuned]:
    """Group the runs by data and model, average over seeds, and sort."""
    groups: dict[str, dict[str, list[tuple[Record, dict[str, Any]]]]] = {}
    for record, point in zip(done, points, strict=True):
        group = groups.setdefault(json.dumps([record.plan.options, record.plan.model]), {})
        group.setdefault(json.dumps(point), []).append((record, point))
    found = []
    for group in groups.values():
        tried: list[Point] = []
        for members in group.values():
            values = [record.outcome.valid_metric for record, _ in members]
            complete = [value for value in values if value is not None]
            mean = statistics.fmean(complete) if len(complete) == len(values) else math.nan
            tried.append((members[0][1], mean))
        first = next(iter(group.values()))[0][0]
        sign = -1 if first.outcome.metric in metrics.HIGHER_IS_BETTER else 1
        tried.sort(key=lambda each: math.inf if math.isnan(each[1]) else sign * each[1])
        settings, value = tried[0]
        if math.isnan(value):
            settings = {}
        found.append(
            Tuned(recipe.name, dict(first.plan.options), first.plan.model, first.outcome.metric, settings, value, tried)
        )
    return found
