"""What is committed and not recomputed in every run: records, verdicts, figures."""

from __future__ import annotations

import base64
import io
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib.image
import nbformat
import numpy as np
import pytest

from advdiff.experiments.plan import Plan
from tools import digests, verdicts

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


# ---------------------------------------------------------------- records


def test_no_recorded_number_was_altered() -> None:
    assert digests.wrong() == [], "if that was meant: python -m tools.digests"


def alter(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b'"valid_metric": 0.', b'"valid_metric": 1.', 1))


def cut(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def remove(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize("damage", [alter, cut, remove], ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", ["ham.jsonl", "molbace.jsonl", "arxiv.jsonl"])
def test_a_record_altered_where_the_data_are_absent(name: str, damage: Callable[[Path], None], tmp_path: Path) -> None:
    for file in (name, "digests.json"):
        shutil.copy(ROOT / "results" / file, tmp_path)
    was = digests.wrong(tmp_path)
    damage(tmp_path / name)
    assert len([line for line in digests.wrong(tmp_path) if line not in was or ("gone" in line and name in line)]) == 1


def test_a_file_of_records_may_grow(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text("one\n")
    (tmp_path / "digests.json").write_text(json.dumps({"runs.jsonl": digests.digest(path)}))
    path.write_text("one\ntwo\n")
    assert digests.wrong(tmp_path) == []
    path.write_text("eins\ntwo\n")
    assert digests.wrong(tmp_path) == ["runs.jsonl was altered in its first 1 lines"]


@pytest.mark.parametrize("path", sorted((ROOT / "results").rglob("*.jsonl")), ids=lambda path: path.name)
def test_every_record_has_the_key_of_its_plan(path: Path) -> None:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        content = json.loads(line)
        if "plan" in content:
            assert content["key"] == Plan.from_dict(content["plan"]).key, f"line {number}"


# ---------------------------------------------------------------- verdicts


def test_no_verdict_was_turned_over() -> None:
    """An edit of a chapter and ``make notebooks`` are not enough to turn one."""
    assert verdicts.differences() == [], "if these are meant: python -m tools.verdicts --accept"


def test_a_verdict_turned_over_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted = verdicts.verdicts()
    chapter, statement = next((chapter, next(iter(said))) for chapter, said in accepted.items() if said)
    turned = {**accepted, chapter: {**accepted[chapter], statement: "turned over"}}
    monkeypatch.setattr(verdicts, "verdicts", lambda root: turned)
    assert [line for line in verdicts.differences() if "is turned over" in line]


# ---------------------------------------------------------------- figures


def figure_trouble(png: bytes) -> str:
    """Why an image cannot be a figure of the book; empty if it can."""
    pixels = np.asarray(matplotlib.image.imread(io.BytesIO(png), format="png"))
    height, width = pixels.shape[:2]
    if min(height, width) < 60 or max(height, width) < 200:
        return f"it has {width} × {height} pixels"
    flat = np.round(pixels.reshape(height * width, -1)[:, :3] * 255).astype(np.int64)
    codes, counts = np.unique(flat @ np.array([1 << 16, 1 << 8, 1]), return_counts=True)
    if len(codes) < 16:
        return f"it has {len(codes)} colours"
    if counts.max() > 0.995 * height * width:
        return "it is empty"
    return ""


def figures(path: Path) -> list[bytes]:
    notebook = nbformat.read(path, as_version=4)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [base64.b64decode(o["data"]["image/png"]) for o in outputs if "image/png" in o.get("data", {})]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_figures_of_a_chapter_show_something(path: Path) -> None:
    """nbval does not compare images."""
    assert [trouble for png in figures(path) if (trouble := figure_trouble(png))] == []


def png(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    matplotlib.image.imsave(buffer, pixels, format="png")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("pixels", "message"),
    [(np.zeros((1, 1, 3)), "1 × 1 pixels"), (np.ones((400, 600, 3)), "1 colours"), (np.ones((400, 10, 3)), "10 × 400")],
    ids=["one pixel", "white", "thin"],
)
def test_a_figure_replaced_by_nothing_is_noticed(pixels: np.ndarray, message: str) -> None:
    assert message in figure_trouble(png(pixels))


# ---------------------------------------------------------------- numbers of results/ on miniatures


@pytest.mark.slow
@pytest.mark.parametrize(("tags", "survives"), [(["nbval-check-output"], False), ([], True)], ids=["tagged", "free"])
def test_on_miniatures_tagged_cells_are_compared(tags: list[str], survives: bool, tmp_path: Path) -> None:
    """``--nbval-lax``, with which chapters run on miniatures, compares the cells whose numbers come from results/."""
    cell = nbformat.v4.new_code_cell("print(1 + 1)", metadata={"tags": tags}, execution_count=1)
    cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text="3\n")]
    notebook = nbformat.v4.new_notebook(cells=[cell])
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, tmp_path / "chapter.ipynb")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--nbval-current-env", "--nbval-lax", "chapter.ipynb"]
    done = subprocess.run([*command, "-p", "no:cacheprovider"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode == 0) == survives, done.stdout
    assert "--nbval-lax $(WITH_DATA)" in (ROOT / "Makefile").read_text(encoding="utf-8")
