"""``advdiff data status`` and ``advdiff data fetch``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from advdiff.experiments.recipes import RECIPES


def add(commands: Any) -> None:
    data = commands.add_parser("data", help="which data sets are here, and how to get them")
    actions = data.add_subparsers(dest="action", required=True, metavar="action")
    status = actions.add_parser("status", help="what is present")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(run=_status)
    fetch = actions.add_parser("fetch", help="download from upstream")
    fetch.add_argument("names", nargs="+", metavar="name", help="data sets")
    fetch.set_defaults(run=_fetch)


def _state(name: str) -> str:
    from advdiff import datasets

    if name not in datasets.DATASETS:
        return "no loader in this version"
    return "drawn by the program, needs no files" if RECIPES[name].seeded_data else "has a loader"


def _status(options: argparse.Namespace) -> int:
    states = {recipe.dataset: _state(recipe.name) for recipe in RECIPES.values()}
    if options.json:
        print(json.dumps(states, indent=1))
    else:
        for name, state in states.items():
            print(f"{name:10s} {state}")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    from advdiff.checks import check_choice

    for name in options.names:
        check_choice("data set", name, [recipe.dataset for recipe in RECIPES.values()])
        if not RECIPES[name].seeded_data:
            raise ValueError(f"{name} cannot be fetched: {_state(name)}.")
        print(f"{name}: {_state(name)}")
    return 0
