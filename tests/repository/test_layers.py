"""Data flow one way: a module of the library imports only from its left."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2] / "advdiff"
#: From left to right; modules of one group may import each other.
LAYERS = [
    {"atomic", "checks", "lazy"},
    {"datasets"},
    {"operators"},
    {"propagation"},
    {"theory"},
    {"nn"},
    {"experiments"},
    {"distributed"},
    {"results"},
    {"claims", "viz"},
    {"bench"},
    {"cli"},
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
FILES = sorted(ROOT.rglob("*.py"))


def layer(path: Path) -> str:
    """The first part of the path below ``advdiff/``: "nn" for advdiff/nn/conv.py."""
    first = path.relative_to(ROOT).parts[0]
    return first.removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Layers that a file imports, wherever in it; annotations under TYPE_CHECKING count, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a module lives"
            base = node.module or ""
            found.update(f"{base}.{alias.name}" if base == "advdiff" else base for alias in node.names)
    parts = [name.split(".") for name in found if name.split(".")[0] == "advdiff"]
    return {part[1] for part in parts if len(part) > 1}


def test_every_module_has_its_place():
    assert {layer(path) for path in FILES} - {"__init__", "__main__"} == set(RANK)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_come_from_the_left(path):
    own = layer(path)
    # The roof over all of them, and the door of the experiments, from which `table` can be had as well.
    if own == "__init__" or path == ROOT / "experiments" / "__init__.py":
        return
    # Public names of the roof (advdiff.exponential and so on) come from operators and propagation.
    targets = {name if name in RANK else "propagation" for name in imported(path)}
    wrong = {name for name in targets if RANK[name] > RANK[own]}
    assert not wrong, f"{path.relative_to(ROOT)} imports {', '.join(sorted(wrong))} from its right"


def test_the_map_of_the_code_names_every_room():
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## The map of the code")[1]
    table = text.split("\n## ")[0]
    for name in RANK:
        assert f"`advdiff/{name}/`" in table or f"{name}.py`" in table, f"{name} is not on the map"
    for path in re.findall(r"`(advdiff/[\w./]+)`", table):
        assert (ROOT.parent / path).exists(), f"{path} is on the map and not in the tree"
