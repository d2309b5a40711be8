"""Records as pandas has them: which runs, and the numbers of a run in a row.

``collect(select(read("results/synthetic.jsonl"), shift="block"))`` has a row for each model and seed and a column for
each environment; means, medians and quotients over them are pandas's own.
"""

from __future__ import annotations

import itertools
import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from advdiff import nn
from advdiff.experiments import metrics, recipes
from advdiff.experiments.plan import resolve, unaliased
from advdiff.experiments.recipe import Recipe
from advdiff.experiments.records import Record


def frame(records: Iterable[Record], columns: Sequence[str] = ()) -> pd.DataFrame:
    """One row per run, in the order of the records.

    Its columns are what was planned (experiment, model, seed, data_seed, profile, then every option of the data,
    setting of the model and field of the budget), what came of it (status, metric, epochs_trained, chosen_epoch,
    converged, times, memory, number of parameters), where it was made, and ``columns``.

    Args:
        columns: environments, ``"train"``, ``"valid"``, ``"test mean"`` or ``"test worst"``; NaN where a run gave none.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import run
        >>> from advdiff.results.frame import frame
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = run("synthetic", ["mlp", "sgc"], settings={"epochs": 2}, num_nodes=30, shift="none",
        ...                   profile="quick", device="cpu", results=folder, progress=False)
        >>> frame(records, ["valid"])[["model", "seed", "num_nodes", "learning_rate", "status"]]
          model  seed  num_nodes  learning_rate    status
        0   mlp     0         30           0.01  finished
        1   sgc     0         30           0.01  finished
    """
    found = list(records)
    ended = []
    for record in found:
        outcome, provenance = record.outcome, record.provenance
        row = {
            "status": outcome.status,
            "metric": outcome.metric,
            "epochs_trained": outcome.epochs,
            "chosen_epoch": outcome.chosen_epoch,
            "converged": record.converged,
            "parameters": outcome.parameters,
            "seconds": outcome.seconds,
            "seconds_per_epoch": outcome.seconds_per_epoch,
            "cpu_seconds": outcome.cpu_seconds,
            "peak_memory_gb": outcome.peak_memory_gb,
            "device": provenance.device,
            "commit": provenance.commit,
            "time": provenance.time,
            "protocol": provenance.protocol,
        }
        ended.append({**row, **_numbers(record, columns)})
    return pd.concat([pd.DataFrame(map(_planned, found)), pd.DataFrame(ended)], axis=1)


def collect(
    records: Iterable[Record], by: str | Sequence[str] = ("model",), columns: Sequence[str] | None = None
) -> pd.DataFrame:
    """Metrics with a row for every combination of ``by`` and seed, NaN where there is no run or it gave no number.

    Two runs that differ in anything else are never mixed: that is an error, which says what they differ in.

    ``.loc["mlp"]`` is a part, ``.groupby(level="model").mean()`` a mean over seeds (of those that are there; see
    ``.isna()``), and ``frame / frame.xs("mlp", level="model")`` a quotient with the seeds paired.

    Args:
        by: names of what was planned: ``model``, ``profile``, options of the data (``shift``, ``labels``), or settings
            (``beta``, ``lr``). Models come in the order of the recipe, numbers in their own, others as they are met;
            pandas keeps to this order when it groups and sorts.
        columns: environments, ``"train"``, ``"valid"``, ``"test mean"`` or ``"test worst"``; by default every
            environment of the first record.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import run
        >>> from advdiff.results.frame import collect
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = run("synthetic", "mlp", seeds=2, settings={"epochs": 2}, num_nodes=30, shift="none",
        ...                   profile="quick", device="cpu", results=folder, progress=False)
        >>> found = collect(records, columns=["valid", "test mean"])
        >>> found.index.tolist(), found.columns.tolist()
        ([('mlp', 0), ('mlp', 1)], ['valid', 'test mean'])
    """
    found = list(records)
    if not found:
        raise ValueError("there are no records to collect; are the runs made, and the selection right?")
    names = (*unaliased({name: None for name in ([by] if isinstance(by, str) else by)}), "seed")
    chosen = list(columns) if columns is not None else list(found[0].outcome.metrics)
    places: dict[tuple[Any, ...], Record] = {}
    for record in found:
        planned = _planned(record)
        for name in names:
            if name not in planned:
                raise ValueError(f"a run of {record.plan.model} has no {name!r}; it has: {', '.join(planned)}.")
        place = tuple(planned[name] for name in names)
        other = places.setdefault(place, record)
        if other is not record:
            raise ValueError(f"two runs for {dict(zip(names, place, strict=True))}: {_how_they_differ(other, record)}.")
    values = [_in_order(name, found, along) for name, along in zip(names, zip(*places, strict=True), strict=True)]
    levels = [_level(each) for each in values]
    index = pd.MultiIndex.from_product(levels, names=names) if len(names) > 1 else levels[0].rename("seed")
    numbers = {place: _numbers(record, chosen) for place, record in places.items()}
    nothing = dict.fromkeys(chosen, math.nan)
    rows = [numbers.get(place, nothing) for place in itertools.product(*values)]
    return pd.DataFrame(rows, index, chosen, dtype=float)


def select(
    records: Iterable[Record],
    *,
    model: str | Iterable[str] | None = None,
    profile: str | None = None,
    settings: Mapping[str, Any] | None = None,
    variants: bool | Iterable[str] = True,
    **options: Any,
) -> list[Record]:
    """The records that match everything that is given; tuning runs never do.

    Args:
        model: a name or several.
        settings: of the model or the budget; a list or tuple means any of its values.
        variants: False leaves out runs whose settings are not the recipe's; names of settings (``["beta"]``) keep
            those that differ from it in nothing else.
        options: of the data; a list or tuple means any of its values.

    Example:
        >>> from advdiff.experiments import read
        >>> from advdiff.results.frame import select
        >>> select(read("no-such-file.jsonl"), model=["gcn", "advdifformer-s"], profile="full", shift="block")
        []
    """
    free = None if variants is True else set() if variants is False else set(unaliased(dict.fromkeys(variants)))
    models = None if model is None else {model} if isinstance(model, str) else set(model)
    wanted = unaliased(settings or {})
    found = []
    for record in records:
        plan = record.plan
        own = plan.all_settings
        if (
            not plan.only_valid
            and (models is None or plan.model in models)
            and (profile is None or plan.profile == profile)
            and all(name in own and _matches(own[name], value) for name, value in wanted.items())
            and all(name in plan.options and _matches(plan.options[name], value) for name, value in options.items())
            and (free is None or set(differences_from(recipes.find(plan.experiment), record)) <= free)
        ):
            found.append(record)
    return found


def value_of(record: Record, column: str) -> float | None:
    """A column of a record: an environment, or a summary of several."""
    outcome = record.outcome
    if column in outcome.metrics:
        return outcome.metrics[column]
    names = {"train": outcome.train, "valid": outcome.valid}.get(column, outcome.test)
    values = [outcome.metrics.get(name) for name in names]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    if column == "test worst":
        return min(known) if outcome.metric in metrics.HIGHER_IS_BETTER else max(known)
    if column in ("train", "valid", "test", "test mean"):
        return statistics.fmean(known)
    return None


def is_of_an_earlier_version(record: Record) -> bool:
    """Whether the model has other settings by now than when the run was made: it is not the same model."""
    try:
        return set(record.plan.settings) != {"hidden_channels", *nn.model_settings(record.plan.model)}
    except ValueError:  # it is gone altogether
        return True


def differences_from(recipe: Recipe, record: Record) -> dict[str, Any]:
    """The settings of a record that are not the recipe's; of an earlier version, those that the recipe itself gives."""
    try:
        settings, budget = resolve(recipe, record.plan.model, record.plan.profile)
    except ValueError:  # a model that this version does not have
        return {}
    usual = {**settings, **budget.as_dict()}
    own = record.plan.all_settings
    if is_of_an_earlier_version(record):
        given = {**recipe.common, **recipe.settings.get(record.plan.model, {}), **budget.as_dict()}
        own = {name: value for name, value in own.items() if name in given and name in usual}
    if recipe.seeded_data and record.plan.data_seed != record.plan.seed:
        own["data_seed"] = record.plan.data_seed
    return {name: value for name, value in own.items() if name not in usual or usual[name] != value}


def _matches(value: Any, wanted: Any) -> bool:
    return bool(value == wanted) or (isinstance(wanted, list | tuple) and value in wanted)


def _planned(record: Record) -> dict[str, Any]:
    """Every field of the plan, option of its data, and setting of its model or budget, by name."""
    plan = record.plan
    fields = {name: getattr(plan, name) for name in ("experiment", "model", "seed", "data_seed", "profile")}
    return {**fields, **plan.options, **plan.all_settings}


def _numbers(record: Record, columns: Iterable[str]) -> dict[str, float]:
    values = {column: value_of(record, column) for column in columns}
    return {column: math.nan if value is None else value for column, value in values.items()}


def _in_order(name: str, records: Sequence[Record], values: Iterable[Any]) -> list[Any]:
    met = list(dict.fromkeys(values))
    if name == "model":
        experiment = records[0].plan.experiment
        listed = recipes.RECIPES[experiment].models if experiment in recipes.RECIPES else ()
        return sorted(met, key=lambda model: listed.index(model) if model in listed else len(listed))
    return sorted(met) if _are_numbers(met) else met


def _level(values: Sequence[Any]) -> pd.Index:
    """One level of an index: pandas would sort names by the alphabet if they were not an ordered category."""
    if _are_numbers(values):
        return pd.Index(values)
    return pd.CategoricalIndex(values, categories=[value for value in values if value is not None], ordered=True)


def _are_numbers(values: Iterable[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _how_they_differ(first: Record, second: Record) -> str:
    one, two = _planned(first), _planned(second)
    names = [name for name in {**one, **two} if one.get(name) != two.get(name)]
    if not names:
        return "the same run is given twice" if first.key == second.key else f"keys {first.key} and {second.key}"
    return "they differ in " + ", ".join(
        f"{name} ({json.dumps(one.get(name))}, {json.dumps(two.get(name))})" for name in names
    )
