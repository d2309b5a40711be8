"""``advdiff run``, ``tune``, ``table`` and ``list``."""

from __future__ import annotations

import argparse
import json
import math
from typing import Any

from advdiff.cli import arguments
from advdiff.experiments.recipe import Recipe
from advdiff.experiments.recipes import RECIPES


def add(commands: Any) -> None:
    for name, function, text in (
        ("run", _run, "train models of an experiment and record the results; goes on where it was interrupted"),
        ("tune", _tune, "search the paper's grid, on validation data only"),
        ("table", _table, "print recorded results beside the paper's"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        experiments = command.add_subparsers(dest="experiment", required=True, metavar="experiment")
        for recipe in RECIPES.values():
            parser = experiments.add_parser(recipe.name, help=recipe.description, description=recipe.description)
            parser.set_defaults(run=function)
            arguments.add_common(parser)
            if function is _table:
                parser.add_argument("--columns", nargs="+", metavar="NAME", help="environments, valid, test mean, …")
                parser.add_argument("--no-variants", action="store_true", help="only runs with the recipe's settings")
                parser.add_argument("--markdown", action="store_true", help="print Markdown")
            else:
                arguments.add_execution(parser)
            if function is _run:
                parser.add_argument("--data-seed", type=int, metavar="SEED", help="the same data for all seeds")
            if function is _tune:
                parser.add_argument(
                    "--grid",
                    nargs="+",
                    action="extend",
                    default=[],
                    metavar="NAME=A,B",
                    help="replace axes of the grid",
                )
                parser.add_argument("--points", type=int, metavar="N", help="try only N points, drawn at random")
            arguments.add_data_options(parser, recipe)
    listing = commands.add_parser("list", help="experiments, their options and models, and all models")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(run=_list)


def _profile(options: argparse.Namespace, recipe: Recipe) -> Any:
    from advdiff.experiments.plan import default_profile

    return recipe.profile(options.profile or default_profile())


def _run(options: argparse.Namespace) -> int:
    from advdiff.experiments import run
    from advdiff.results.tables import tabulate

    recipe = RECIPES[options.experiment]
    found = run(
        recipe.name,
        options.model or "all",
        arguments.seeds(options, _profile(options, recipe).seeds),
        data_seed=options.data_seed,
        **arguments.execution(options),
        **arguments.data_options(options),
    )
    if options.json:
        _print_json([record.as_dict() for record in found])
    else:
        print(tabulate(recipe, found))
        notes = [f"{record.plan.model}: {text}" for record in found for text in record.outcome.remarks]
        notes += [
            f"{record.plan.model}: {record.outcome.status}: {record.outcome.reason}"
            for record in found
            if record.outcome.reason
        ]
        for note in dict.fromkeys(notes):
            print(note)
        print(f"\n{len(found)} runs in {options.results}")
    return 0


def _tune(options: argparse.Namespace) -> int:
    from advdiff.experiments import tune

    recipe = RECIPES[options.experiment]
    found = tune(
        recipe.name,
        options.model or "all",
        arguments.seeds(options, 1),
        grid=arguments.lists(options.grid),
        points=options.points,
        **arguments.execution(options),
        **arguments.data_options(options),
    )
    if options.json:
        _print_json(
            [
                {
                    "experiment": each.experiment,
                    "options": each.options,
                    "model": each.model,
                    "metric": each.metric,
                    "settings": each.settings,
                    "value": _finite(each.value),
                    "tried": [[point, _finite(value)] for point, value in each.tried],
                }
                for each in found
            ]
        )
    else:
        for each in found:
            print(each)
    return 0


def _table(options: argparse.Namespace) -> int:
    from advdiff.results import table

    made = table(
        options.experiment,
        options.results,
        model=options.model,
        profile=options.profile,
        variants=not options.no_variants,
        columns=options.columns,
        **arguments.data_options(options),
    )
    if options.json:
        _print_json(made.as_dict())
    elif not made.sections:
        raise ValueError(f"no records of {options.experiment} in {options.results}: advdiff run {options.experiment}")
    else:
        print(made.to_markdown() if options.markdown else made)
    return 0


def _list(options: argparse.Namespace) -> int:
    from advdiff import nn

    if options.json:
        experiments = {
            recipe.name: {
                "description": recipe.description,
                "models": recipe.models,
                "options": {name: {"default": o.default, "choices": o.choices} for name, o in recipe.options.items()},
            }
            for recipe in RECIPES.values()
        }
        _print_json(
            {"experiments": experiments, "models": {name: nn.model_settings(name) for name in nn.model_names()}}
        )
        return 0
    print("experiments")
    for recipe in RECIPES.values():
        print(f"  {recipe.name:10s} {recipe.description}")
        for name, option in recipe.options.items():
            known = ", ".join(option.choices) or option.default
            print(f"  {'':10s}   --{name.replace('_', '-')}: {known}")
        print(f"  {'':10s}   models: {', '.join(recipe.models)}")
    print("\nmodels and their settings")
    for name in nn.model_names():
        print(f"  {name:16s} " + " ".join(f"{key}={value}" for key, value in nn.model_settings(name).items()))
    return 0


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _print_json(content: Any) -> None:
    print(json.dumps(content, ensure_ascii=False, indent=1))
