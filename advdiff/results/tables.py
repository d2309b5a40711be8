"""Measured numbers beside the paper's."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from advdiff.experiments import metrics, recipes, records
from advdiff.experiments.plan import choose_models
from advdiff.experiments.recipe import BUDGET_FIELDS, Recipe
from advdiff.experiments.records import Record
from advdiff.experiments.sweep import results_file
from advdiff.results import paper
from advdiff.results.frame import differences_from, is_of_an_earlier_version, select, value_of
from advdiff.results.measured import Cell, Line, Section, Table


def table(
    experiment: str,
    results: str | os.PathLike[str] = "results",
    *,
    model: str | Iterable[str] | None = None,
    profile: str | None = None,
    settings: Mapping[str, Any] | None = None,
    variants: bool = True,
    columns: Sequence[str] | None = None,
    count_seeds: bool = True,
    **options: Any,
) -> Table:
    """The recorded runs of an experiment beside the paper's numbers, mean ± standard deviation over seeds.

    Runs with different settings are never averaged: each has its line, labelled with what differs from the recipe.
    Runs with another budget (epochs, learning rate) have a section of their own, whose title says so.

    Args:
        results: folder of the records, or a file.
        model: only these models.
        profile: only this profile.
        settings: only runs with these settings.
        variants: False leaves out runs whose settings are not the recipe's.
        columns: environments, ``"valid"``, ``"test mean"``, ``"test worst"``; the recipe's by default.
        count_seeds: False leaves out the column with the number of seeds, where the text says it.
        options: only data with these options; a list means any of its values, None all of them.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import run
        >>> from advdiff.results import table
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = run("synthetic", "mlp", seeds=2, settings={"epochs": 2}, num_nodes=30, shift="none",
        ...             profile="quick", device="cpu", results=folder, progress=False)
        ...     made = table("synthetic", folder, columns=["valid"])
        >>> (line,) = made.sections[0].lines
        >>> line.label, line.seeds, list(line.cells)
        ('mlp', 2, ['valid'])
    """
    recipe = recipes.find(experiment)
    if profile is not None:
        recipe.profile(profile)
    for name in options:
        if name not in recipe.options:
            known = ", ".join(recipe.options) or "none"
            raise ValueError(f"{recipe.name} has no option {name!r}; its options are: {known}.")

    given = {name: value for name, value in options.items() if value is not None}
    found = select(
        records.read(results_file(results, recipe.name)),
        model=None if model is None else choose_models(recipe, model),
        profile=profile,
        settings=settings,
        variants=variants,
        **given,
    )
    return tabulate(recipe, found, columns, count_seeds=count_seeds)


def tabulate(
    recipe: Recipe, found: Iterable[Record], columns: Sequence[str] | None = None, *, count_seeds: bool = True
) -> Table:
    """The table of given records."""
    order = {name: number for number, name in enumerate(recipe.models)}
    sections: dict[str, tuple[str, dict[str, Any], dict[str, list[Record]]]] = {}
    used: dict[str, None] = {}
    for record in found:
        used[record.outcome.metric] = None
        own = {name: record.plan.options[name] for name in recipe.options if name in record.plan.options}
        differs = differences_from(recipe, record)
        budget = {name: differs[name] for name in BUDGET_FIELDS if name in differs}
        options = {**own, "profile": record.plan.profile, **budget}
        title = ", ".join(f"{name} {value}" for name, value in options.items())
        _, _, lines = sections.setdefault(json.dumps(options), (title, options, {}))
        identity = [record.plan.model, record.plan.all_settings, differs]
        lines.setdefault(json.dumps(identity, sort_keys=True), []).append(record)
    chosen = tuple(columns) if columns is not None else recipe.columns
    made = []
    for title, options, lines in sections.values():
        theirs = paper.reported(recipe.name, options)
        caveat = paper.caveat(recipe.name, options)
        members = sorted(lines.values(), key=lambda group: _rank(recipe, order, group[0]))
        made.append(
            Section(title, [_line(recipe, group, options, chosen, theirs, not caveat) for group in members], caveat)
        )
    return Table(recipe.name, " or ".join(used), chosen, made, count_seeds)


def _rank(recipe: Recipe, order: Mapping[str, int], record: Record) -> tuple[int, str, int, str]:
    differs = differences_from(recipe, record)
    return order.get(record.plan.model, len(order)), record.plan.model, len(differs), json.dumps(differs)


def _line(
    recipe: Recipe,
    group: list[Record],
    options: Mapping[str, Any],
    columns: Sequence[str],
    theirs: Mapping[str, paper.Row],
    comparable: bool,
) -> Line:
    first = group[0].plan
    # What the runs of a section share is in its title; a budget that the recipe gives to this model alone is not.
    given = {name: value for name, value in differences_from(recipe, group[0]).items() if name not in BUDGET_FIELDS}
    variant = " ".join([first.model, *(f"{name}={value}" for name, value in given.items())])
    if first.profile == "full":
        usual = recipe.full.budget.as_dict()
        alone = {name: first.all_settings[name] for name in recipe.budgets.get(first.model, {})}
        given |= {name: value for name, value in alone.items() if value not in (usual[name], options.get(name))}
    label = " ".join([first.model, *(f"{name}={value}" for name, value in given.items())])
    if is_of_an_earlier_version(group[0]):
        label += " (earlier)"
    ended = [record.outcome.status for record in group if record.outcome.status != "finished"]
    not_finished = ", ".join(f"{ended.count(status)} {status}" for status in dict.fromkeys(ended))
    scale = 100.0 if group[0].outcome.metric in metrics.PERCENT else 1.0
    cells = {}
    for column in columns:
        values = [value_of(record, column) for record in group]
        known = [scale * value for value in values if value is not None]
        cells[column] = Cell(
            statistics.fmean(known) if known else None,
            statistics.stdev(known) if len(known) > 1 else None,
            theirs.get(variant, {}).get(column),
            digits=2 if scale > 1 else 3,
            comparable=comparable,
        )
    return Line(label, first.model, len(group), cells, not_finished)
