"""Bookkeeping is folded: every cell that records claims is a line on the page, and the line names its claims."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output

from advdiff.claims import MIME_TYPE
from tools import fold_cells

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
RECORD = "ledger.record('a', source='b', measured='c', verdict='holds', evidence=True)"


def recording(*counts: int) -> NotebookNode:
    return new_notebook(cells=[new_code_cell("\n".join([f"x = {n}", *[RECORD] * n])) for n in counts])


def lines(notebook: NotebookNode) -> list[str | None]:
    return [cell.metadata.get("mystnb", {}).get("code_prompt_show") for cell in notebook.cells]


def test_committed_notebooks_are_folded() -> None:
    fold_cells.main(["--check"], ROOT / "notebooks")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_folded_cells_record_the_claims_of_the_ledger(path: Path) -> None:
    cells = [c for c in json.loads(path.read_text(encoding="utf-8"))["cells"] if c["cell_type"] == "code"]
    (ledger,) = [o["data"][MIME_TYPE] for c in cells for o in c["outputs"] if MIME_TYPE in o.get("data", {})]
    assert sum(fold_cells.count_claims("".join(cell["source"])) for cell in cells) == len(ledger)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_visible_cell_has_at_most_40_lines(path: Path) -> None:
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        folded = any(tag.startswith(("hide-", "remove-")) for tag in cell["metadata"].get("tags", []))
        source = "".join(cell["source"])
        assert cell["cell_type"] != "code" or folded or source.count("\n") < 40, source.partition("\n")[0]


def test_lines_number_the_claims_and_follow_an_insertion() -> None:
    folded = fold_cells.fold(recording(0, 1, 2, 4), chapter=5)
    assert lines(folded) == [
        None,
        "Claim 5.1 recorded with its evidence",
        "Claims 5.2 and 5.3 recorded with their evidence",
        "Claims 5.4 to 5.7 recorded with their evidence",
    ]
    assert ["hide-input" in cell.metadata.get("tags", []) for cell in folded.cells] == [False, True, True, True]
    assert fold_cells.fold(folded, chapter=5) == folded

    folded.cells.insert(1, recording(1).cells[0])
    assert lines(fold_cells.fold(folded, chapter=5))[1:3] == [
        "Claim 5.1 recorded with its evidence",
        "Claim 5.2 recorded with its evidence",
    ]


def test_other_metadata_of_a_cell_stay() -> None:
    notebook = recording(1)
    notebook.cells[0].metadata.update(tags=["nbval-skip"], mystnb={"image": {"alt": "a"}})
    (cell,) = fold_cells.fold(notebook, chapter=1).cells
    assert cell.metadata.tags == ["nbval-skip", "hide-input"] and cell.metadata.mystnb["image"] == {"alt": "a"}


def test_a_line_goes_with_its_claims() -> None:
    notebook = fold_cells.fold(recording(1, 1), chapter=1)
    notebook.cells[0].source = "x = 1"
    folded = fold_cells.fold(notebook, chapter=1)
    assert lines(folded) == [None, "Claim 1.1 recorded with its evidence"]
    assert folded.cells[0].metadata.tags == [] and fold_cells.fold(folded, chapter=1) == folded


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (new_code_cell(f"for x in y:\n    {RECORD}"), "within a loop"),
        (new_code_cell(RECORD, outputs=[new_output("stream", text="a")]), "shows something: split it"),
        (new_code_cell("x = 1", metadata={"tags": ["hide-input"]}), "has no line"),
        (new_code_cell("x = 1", metadata={"tags": ["hide-output"]}), "has no line"),
    ],
    ids=["loop", "output", "no line", "no line for an output"],
)
def test_what_must_be_changed_by_hand_is_named(cell: NotebookNode, message: str, tmp_path: Path) -> None:
    path = tmp_path / "03_third.ipynb"
    nbformat.write(new_notebook(cells=[cell]), path)
    before = path.read_bytes()
    with pytest.raises(SystemExit, match=rf"03_third\.ipynb: the cell .*{message}"):
        fold_cells.main([], tmp_path)
    assert path.read_bytes() == before


def test_check_writes_nothing_and_the_tool_mends(tmp_path: Path) -> None:
    path = tmp_path / "03_third.ipynb"
    nbformat.write(recording(1), path)
    before = path.read_bytes()
    with pytest.raises(SystemExit, match="not folded"):
        fold_cells.main(["--check"], tmp_path)
    assert path.read_bytes() == before
    fold_cells.main([], tmp_path)
    fold_cells.main(["--check"], tmp_path)
