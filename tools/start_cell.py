"""Give every notebook the same first code cell, which installs the package where it is missing, as on Colab.

    python -m tools.start_cell            insert it, or bring it up to date
    python -m tools.start_cell --check    fail where it is missing or another one

What it does depends on whether the repository has an address (tools/address.py). The cell is hidden in the book. Where
advdiff is installed it does nothing and prints nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

import advdiff
from tools.address import repository
from tools.execute_notebooks import write

TAG = "start"
VERSION = "v" + advdiff.__version__
#: With an address: the release with its pins.
FETCH = """\
# On Colab: fetch this release and install it with its pins. Elsewhere nothing happens.
import importlib.util

if importlib.util.find_spec("advdiff") is None:
    !git clone --quiet --depth 1 --branch {version} {repository} advdiff
    %cd -q advdiff/notebooks
    %pip install --quiet -c ../constraints.txt "..[data]"
"""
#: Without: the folder in which the notebook lies, or one that was uploaded beside it.
OWN_COPY = """\
# Where advdiff is missing: install it from the copy of the book around this notebook.
import importlib.util
import pathlib

if importlib.util.find_spec("advdiff") is None:
    places = [pathlib.Path.cwd().parent, pathlib.Path.cwd(), pathlib.Path.cwd() / "advdiff"]
    copies = [place for place in places if (place / "constraints.txt").exists()]
    assert copies, "upload the folder of the book, advdiff, beside this notebook"
    %pip install --quiet -c {copies[0]}/constraints.txt "{copies[0]}[data]"
"""


def source(address: str) -> str:
    """The cell's code."""
    text = FETCH.replace("{version}", VERSION).replace("{repository}", address) if address else OWN_COPY
    return text.strip()


def start_cell(notebook: NotebookNode) -> NotebookNode | None:
    """The start cell of a notebook, if it has one."""
    return next((cell for cell in notebook.cells if TAG in cell.metadata.get("tags", [])), None)


def is_current(notebook: NotebookNode, address: str) -> bool:
    cell = start_cell(notebook)
    return cell is not None and cell.source == source(address) and notebook.cells.index(cell) == 1


def bring_up_to_date(notebook: NotebookNode, address: str) -> None:
    """Put the cell behind the title, without an output, which it never has."""
    old = start_cell(notebook)
    if old is not None:
        notebook.cells.remove(old)
    cell = nbformat.v4.new_code_cell(source(address), metadata={"tags": [TAG, "remove-cell"]})
    cell["id"] = TAG
    notebook.cells.insert(1, cell)
    renumber(notebook)


def renumber(notebook: NotebookNode) -> None:
    """Count the code cells from 1 again, as if all had been run from top to bottom."""
    for count, cell in enumerate((cell for cell in notebook.cells if cell.cell_type == "code"), start=1):
        cell.execution_count = count
        for output in cell.outputs:
            if "execution_count" in output:
                output.execution_count = count


def update(check: bool) -> None:
    """Bring the cells up to date, or exit where one is not."""
    address = repository()
    for path in sorted(Path("notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if is_current(notebook, address):
            continue
        if check:
            sys.exit(f"{path} has no current start cell; run: python -m tools.start_cell")
        bring_up_to_date(notebook, address)
        write(notebook, path)
        print(f"{path}: start cell written")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail where something is to be done")
    update(parser.parse_args().check)


if __name__ == "__main__":
    main()
