"""Fold the cells that record claims into one line that names the claims.

    python -m tools.fold_cells            tag the cells and write the lines
    python -m tools.fold_cells --check    change nothing, fail where something is to be done

On the page a reader sees what is computed and what came out; the bookkeeping is one click away. The numbers of the
claims follow from the order in which the cells record them, so the lines stay true when a claim is inserted: `make
notebooks` runs this, and a test calls it with --check. Other folded cells are figures, for which _config.yml has the
line, or say themselves what they do (`code_prompt_show` in the metadata of the cell).
"""

from __future__ import annotations

import argparse
import ast
import copy
import sys
from collections.abc import Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from tools.execute_notebooks import write

TAG = "hide-input"
CALL = "ledger.record("
ENDING = "recorded with {} evidence"
FIGURES = {"image/png", "application/vnd.jupyter.widget-view+json"}
HOVER = '<div class="hover-lines"'  # advdiff.viz.hover_lines


def count_claims(source: str) -> int:
    """How many claims a cell records; ValueError if that cannot be seen, as in a loop."""
    if CALL not in source:
        return 0
    lines = [ast.unparse(statement) for statement in ast.parse(source).body]
    count = sum(line.startswith(CALL) for line in lines)
    if count != sum(line.count(CALL) for line in lines):
        raise ValueError("records claims within a loop, a function or a condition, so that their numbers are unknown")
    return count


def summary_of(chapter: int | str, first: int, count: int) -> str:
    """The line of a cell that records ``count`` claims from number ``first`` on.

    >>> summary_of(5, 3, 4)
    'Claims 5.3 to 5.6 recorded with their evidence'
    """
    if count == 1:
        return f"Claim {chapter}.{first} {ENDING.format('its')}"
    joint = "and" if count == 2 else "to"
    return f"Claims {chapter}.{first} {joint} {chapter}.{first + count - 1} {ENDING.format('their')}"


def set_summary(cell: NotebookNode, text: str | None) -> None:
    """The line that stands for the folded cell, open or closed; None takes it away."""
    options = cell.metadata.get("mystnb", {})
    for key in ("code_prompt_show", "code_prompt_hide"):
        options.pop(key, None)
        if text is not None:
            options[key] = text
    cell.metadata.pop("mystnb", None)
    if options:
        cell.metadata["mystnb"] = options


def shows_a_figure(cell: NotebookNode) -> bool:
    shown = [output.get("data", {}) for output in cell.outputs]
    return any(FIGURES & set(data) or HOVER in "".join(data.get("text/html", "")) for data in shown)


def fold(notebook: NotebookNode, chapter: int | str) -> NotebookNode:
    """The notebook with its bookkeeping folded; ValueError where a cell has to be changed by hand."""
    folded = copy.deepcopy(notebook)
    recorded = 0
    for cell in folded.cells:
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.get("tags", [])
        try:
            count = count_claims(cell.source)
            said = cell.metadata.get("mystnb", {}).get("code_prompt_show")
            if count:
                if cell.outputs:
                    raise ValueError("records claims and shows something: split it, the claims into a cell below")
                cell.metadata["tags"] = tags if TAG in tags else [*tags, TAG]
                set_summary(cell, summary_of(chapter, recorded + 1, count))
            elif said and said.endswith((ENDING.format("its"), ENDING.format("their"))):
                cell.metadata["tags"] = [tag for tag in tags if tag != TAG]  # its claims have gone elsewhere
                set_summary(cell, None)
            elif said:
                set_summary(cell, said)
            elif any(tag.startswith("hide-") and (tag != TAG or not shows_a_figure(cell)) for tag in tags):
                raise ValueError("is folded and has no line that says what it does (code_prompt_show)")
        except ValueError as error:
            raise ValueError(f"the cell {cell.source.partition(chr(10))[0]!r} {error}") from error
        recorded += count
    return folded


def main(arguments: Sequence[str] | None = None, folder: Path = Path("notebooks")) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail where something is to be done")
    check = parser.parse_args(arguments).check
    for path in sorted(folder.glob("[0-9]*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        try:
            folded = fold(notebook, chapter=path.stem.partition("_")[0].lstrip("0"))
        except ValueError as error:
            sys.exit(f"{path}: {error}")
        if folded == notebook:
            continue
        if check:
            sys.exit(f"{path} has claims that are not folded; run: python -m tools.fold_cells")
        write(folded, path)
        print(f"{path}: folded")


if __name__ == "__main__":
    main()
