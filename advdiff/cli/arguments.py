"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advdiff.experiments.recipe import PROFILES, Recipe


def value(text: str) -> Any:
    """A number, true, false or null as JSON or Python write them; anything else is a string."""
    words = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def pairs(texts: Sequence[str], what: str = "--set") -> dict[str, Any]:
    """``["beta=0.5"]`` → ``{"beta": 0.5}``."""
    found = {}
    for text in texts:
        name, equals, given = text.partition("=")
        if not equals or not name or not given:
            raise ValueError(f"{what} takes name=value, not {text!r}.")
        found[name.replace("-", "_")] = value(given)
    return found


def lists(texts: Sequence[str]) -> dict[str, list[Any]]:
    """``["beta=0.2,0.5"]`` → ``{"beta": [0.2, 0.5]}``."""
    found = {}
    for text in texts:
        name, equals, given = text.partition("=")
        if not equals or not name or not given:
            raise ValueError(f"--grid takes name=value,value,…, not {text!r}.")
        found[name.replace("-", "_")] = [value(each) for each in given.split(",")]
    return found


def add_data_options(parser: argparse.ArgumentParser, recipe: Recipe) -> None:
    """One flag for every option of the recipe's data; several values mean each of them."""
    group = parser.add_argument_group("data")
    quick = recipe.quick.options
    for name, option in recipe.options.items():
        usual = " ".join(map(str, option.default)) if isinstance(option.default, tuple) else str(option.default)
        known = f"one or more of {', '.join(option.choices)}; " if option.choices else ""
        group.add_argument(
            "--" + name.replace("_", "-"),
            dest="option_" + name,
            nargs="+",
            type=value,
            metavar="VALUE",
            help=f"{option.help}: {known}by default {usual}"
            + (f" ({quick[name]} in the quick profile)" if name in quick else ""),
        )


def data_options(options: argparse.Namespace) -> dict[str, Any]:
    """The data options that were given."""
    prefix = "option_"
    given = {name: each for name, each in vars(options).items() if name.startswith(prefix) and each is not None}
    return {name.removeprefix(prefix): each for name, each in given.items()}


def add_common(parser: argparse.ArgumentParser) -> None:
    """Models, profile, folder of the results, and JSON."""
    parser.add_argument("--model", nargs="+", metavar="NAME", help="names of models, or all (see: advdiff list)")
    parser.add_argument(
        "--profile", metavar="NAME", help=f"{' or '.join(PROFILES)}; by default $ADVDIFF_PROFILE or quick"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of the records, or a .jsonl file")
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_execution(parser: argparse.ArgumentParser) -> None:
    """How and where runs are made."""
    parser.add_argument("--seeds", type=int, metavar="N", help="how many seeds")
    parser.add_argument("--first-seed", type=int, default=0, metavar="SEED", help="the first of them (default 0)")
    parser.add_argument(
        "--set", nargs="+", action="extend", default=[], metavar="NAME=VALUE",
        help="replace settings of models, or epochs, lr, weight_decay, batch_size, evaluate_every",
    )  # fmt: skip
    group = parser.add_argument_group("machine")
    group.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda or mps (default auto)")
    group.add_argument("--jobs", type=int, default=1, metavar="N", help="local processes (default 1)")
    group.add_argument("--threads", type=int, metavar="N", help="torch threads of a run (default: 1 with several jobs)")
    group.add_argument("--dask", metavar="ADDRESS", help="use a Dask cluster: tcp://scheduler:8786")
    group.add_argument("--quiet", action="store_true", help="no progress bars")


def execution(options: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments of ``run`` and ``tune``."""
    for name in ("jobs", "threads"):
        given = getattr(options, name)
        if given is not None and given < 1:
            raise ValueError(f"--{name} is {given}; it must be at least 1.")
    return {
        "profile": options.profile,
        "results": options.results,
        "settings": pairs(options.set),
        "device": options.device,
        "jobs": options.jobs,
        "threads": options.threads,
        "dask": options.dask,
        "progress": not options.quiet,
    }


def seeds(options: argparse.Namespace, usual: int) -> list[int]:
    """Seeds from the first one on."""
    count = usual if options.seeds is None else options.seeds
    if count < 1 or options.first_seed < 0:
        raise ValueError(f"--seeds is {count} from {options.first_seed}; give at least one seed, from 0 on.")
    return list(range(options.first_seed, options.first_seed + count))
