"""Give every notebook the same first code cell, which installs the package where it is missing, as on Colab.

    python -m tools.start_cell            insert it, or bring it up to date
    python -m tools.start_cell --check    fail where it is missing or another one

The cell is hidden in the book. Where advdiff is installed it does nothing and prints nothing.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.execute_notebooks import write

TAG = "start"
SOURCE = """\
# On Colab: fetch the book and install it. Where advdiff is installed, nothing happens.
import importlib.util

if importlib.util.find_spec("advdiff") is None:
    !git clone --quiet --depth 1 https://github.com/advdiff/advdiff
    %cd -q advdiff/notebooks
    %pip install --quiet "..[data]"
"""


def start_cell(notebook: NotebookNode) -> NotebookNode | None:
    """The start cell of a notebook, if it has one."""
    return next((cell for cell in notebook.cells if TAG in cell.metadata.get("tags", [])), None)


def is_current(notebook: NotebookNode) -> bool:
    cell = start_cell(notebook)
    return cell is not None and cell.source == SOURCE.strip() and notebook.cells.index(cell) == 1


def bring_up_to_date(notebook: NotebookNode) -> None:
    """Put the cell behind the title, without an output, which it never has."""
    old = start_cell(notebook)
    if old is not None:
        notebook.cells.remove(old)
    cell = nbformat.v4.new_code_cell(SOURCE.strip(), metadata={"tags": [TAG, "remove-cell"]})
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail where something is to be done")
    arguments = parser.parse_args()
    for path in sorted(Path("notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if is_current(notebook):
            continue
        if arguments.check:
            sys.exit(f"{path} has no current start cell; run: python -m tools.start_cell")
        bring_up_to_date(notebook)
        write(notebook, path)
        print(f"{path}: start cell written")


if __name__ == "__main__":
    main()
