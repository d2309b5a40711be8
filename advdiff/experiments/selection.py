"""Which records, and which number of a record: what tables and figures both ask for."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from advdiff.experiments import metrics, recipes
from advdiff.experiments.jobs import resolve, unaliased
from advdiff.experiments.recipe import Recipe
from advdiff.experiments.records import Record


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
        >>> from advdiff.experiments.selection import select
        >>> select(read("no-such-file.jsonl"), model=["gcn", "advdifformer-s"], profile="full", shift="block")
        []
    """
    free = None if variants is True else set() if variants is False else set(unaliased(dict.fromkeys(variants)))
    models = None if model is None else {model} if isinstance(model, str) else set(model)
    wanted = unaliased(settings or {})
    found = []
    for record in records:
        own = {**record.settings, **record.budget}
        if (
            not record.only_valid
            and (models is None or record.model in models)
            and (profile is None or record.profile == profile)
            and all(name in own and _matches(own[name], value) for name, value in wanted.items())
            and all(name in record.options and _matches(record.options[name], value) for name, value in options.items())
            and (free is None or set(differences_from(recipes.find(record.experiment), record)) <= free)
        ):
            found.append(record)
    return found


def value_of(record: Record, column: str) -> float | None:
    """A column of a record: an environment, or a summary of several."""
    if column in record.metrics:
        return record.metrics[column]
    names = {"train": record.train, "valid": record.valid}.get(column, record.test)
    values = [record.metrics.get(name) for name in names]
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    if column == "test worst":
        return min(known) if record.metric in metrics.HIGHER_IS_BETTER else max(known)
    if column in ("train", "valid", "test", "test mean"):
        return statistics.fmean(known)
    return None


def differences_from(recipe: Recipe, record: Record) -> dict[str, Any]:
    """The settings of a record that are not the recipe's."""
    try:
        settings, budget = resolve(recipe, record.model, record.profile)
    except ValueError:  # a model that this version does not have
        return {}
    usual = {**settings, **budget.as_dict()}
    own = {**record.settings, **record.budget}
    if recipe.seeded_data and record.data_seed != record.seed:
        own["data_seed"] = record.data_seed
    return {name: value for name, value in own.items() if name not in usual or usual[name] != value}


def _matches(value: Any, wanted: Any) -> bool:
    return bool(value == wanted) or (isinstance(wanted, list | tuple) and value in wanted)
