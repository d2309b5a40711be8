"""Notebooks are committed as they ran, on no machine in particular, and are pages of the book."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Paths of the machine on which a notebook ran; runs of base64 may contain anything and are cut out first.
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home|tmp)/")
BASE64 = re.compile(r"[A-Za-z0-9+/=]{60,}")


def toc_files(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node[key] for key in ("root", "file") if key in node]
        return own + [file for value in node.values() for file in toc_files(value)]
    if isinstance(node, list):
        return [file for item in node for file in toc_files(item)]
    return []


def test_table_of_contents_lists_what_exists() -> None:
    listed = toc_files(yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8")))
    pages = {str(path.relative_to(ROOT).with_suffix("")) for path in [*ROOT.glob("book/**/*.md"), *NOTEBOOKS]}
    assert set(listed) <= pages, "a page is listed that does not exist"
    assert len(listed) == len(set(listed)), "a page is listed twice"
    assert {f"notebooks/{path.stem}" for path in NOTEBOOKS} <= set(listed), "a notebook is not listed"


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_executed_and_clean(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    cells = [cell for cell in code if "".join(cell["source"]).strip()]
    counts = [cell["execution_count"] for cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "not executed from top to bottom: run `make notebooks`"
    for output in (output for cell in cells for output in cell["outputs"]):
        assert output["output_type"] != "error", output
        for mime in ("image/png", "image/jpeg"):
            output.get("data", {}).pop(mime, None)
    found = MACHINE_PATH.search(BASE64.sub("", json.dumps(notebook)))
    assert found is None, f"a path of the machine it ran on: {found}"


def test_notebooks_begin_with_the_cell_that_installs_the_package_elsewhere() -> None:
    command = [sys.executable, "-m", "tools.start_cell", "--check"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
