"""``advdiff data status`` and ``advdiff data fetch``."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advdiff.experiments.recipes import RECIPES

if TYPE_CHECKING:
    from advdiff.datasets.files import Source


@dataclass(frozen=True)
class State:
    """What there is of a data set: its files, their size on disk in bytes, and the paths of those that are missing."""

    state: str
    size: int = 0
    missing: tuple[str, ...] = ()
    licence: str = ""
    title: str = ""
    citation: str = ""


def add(commands: Any) -> None:
    data = commands.add_parser("data", help="which data sets are here, and how to get them")
    actions = data.add_subparsers(dest="action", required=True, metavar="action")
    status = actions.add_parser("status", help="what is present, its size and licence")
    status.add_argument("--json", action="store_true", help="print JSON")
    status.set_defaults(run=_status)
    fetch = actions.add_parser("fetch", help="download from upstream what is missing, and verify what is there")
    fetch.add_argument("names", nargs="+", metavar="name", help="data sets")
    fetch.set_defaults(run=_fetch)


def _names() -> list[str]:
    return list(dict.fromkeys(recipe.dataset for recipe in RECIPES.values()))


def _sources(name: str) -> tuple[Source, ...]:
    """The files of a data set; none if it is drawn by the program."""
    return getattr(import_module(f"advdiff.datasets.{name}"), "SOURCES", ())


def _state(name: str) -> State:
    from advdiff.datasets.files import find

    sources = _sources(name)
    if not sources:
        return State("drawn by the program, needs no files")
    found = {source.path: find(source) for source in sources}
    present = {path for path in found.values() if path is not None}
    missing = tuple(path for path, where in found.items() if where is None)
    state = "present" if not missing else f"{len(found) - len(missing)} of {len(found)} files" if present else "absent"
    module = import_module(f"advdiff.datasets.{name}")
    return State(
        state,
        sum(_size(path) for path in present),
        missing,
        *(getattr(module, field, "") for field in ("LICENCE", "TITLE", "CITATION")),
    )


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file())


def _status(options: argparse.Namespace) -> int:
    from advdiff.datasets.files import data_folder

    states = {name: _state(name) for name in _names()}
    if options.json:
        print(
            json.dumps({"folder": str(data_folder()), "datasets": {k: asdict(v) for k, v in states.items()}}, indent=1)
        )
        return 0
    print(f"data folder: {data_folder()}")
    for name, state in states.items():
        size = f"{state.size / 1e6:.1f} MB" if state.size else ""
        print(f"{name:12s}  {state.state:12s}  {size:>8s}  {state.licence}".rstrip())
        if state.state != "absent":
            for path in state.missing:
                print(f"{'':12s}  missing: {path}")
    return 0


def _fetch(options: argparse.Namespace) -> int:
    from advdiff.checks import check_choice
    from advdiff.datasets.download import locate
    from advdiff.datasets.files import find, verify

    for name in options.names:
        check_choice("data set", name, _names())
    for name in options.names:
        sources = _sources(name)
        for source in sources:
            if source.url:
                verify(source, locate(source))
            elif (path := find(source)) is not None:
                verify(source, path)
            else:
                print(f"{name}: {source.path} is not upstream's and cannot be downloaded; the rest does without it")
        state = _state(name)
        print(f"{name}: {state.state}" + (f", {state.size / 1e6:.1f} MB" if state.size else ""))
        if state.licence:
            print(f"{'':{len(name)}s}  licence: {state.licence}\n{'':{len(name)}s}  please cite: {state.citation}")
    return 0
