"""Chapters on data sets: which cells are compared without the data, too."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from IPython.core.formatters import DisplayFormatter

from tools import compared_cells

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("1[0-4]_*.ipynb"))
TEXT = {"output_type": "stream", "name": "stdout", "text": ["1\n"]}


def are_compared(*sources: str, tags: tuple[str, ...] = ()) -> list[bool]:
    """For each cell of a notebook that prints something, whether it gets the tag."""
    cells = [
        {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": [source], "outputs": [TEXT]}
        for source in ("from advdiff.datasets import load\nimport numpy as np\nprint(1)", *sources)
    ]
    made = compared_cells.tagged({"cells": cells})["cells"]
    return [compared_cells.TAG in cell["metadata"]["tags"] for cell in made[1:]]


class WithoutData(ast.NodeTransformer):
    """Takes out of a cell all statements that depend on the data."""

    def __init__(self, reader: compared_cells.Reader) -> None:
        self.reader = reader

    def visit(self, node: ast.AST) -> ast.AST | None:
        if node in self.reader.dependent:
            return None
        node = super().generic_visit(node)
        if isinstance(node, ast.For | ast.If | ast.While | ast.With) and not node.body:
            node.body = [ast.Pass(lineno=node.lineno, col_offset=0)]
        return node


def shown(body: list[ast.stmt], names: dict[str, object]) -> tuple[str, list[dict[str, str]]]:
    """Run the statements; what they print, and the formats of what they display and of a value at their end."""
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed, displayed = io.StringIO(), []
    names["display"] = displayed.append
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if last is not None:
            displayed.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
    return printed.getvalue(), [DisplayFormatter().format(value)[0] for value in displayed if value is not None]


@pytest.mark.slow
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_what_is_compared_everywhere_needs_no_data(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The chapter without all that depends on the data prints the same in these cells."""
    monkeypatch.chdir(path.parent)
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))
    reader, names = compared_cells.Reader(), {"__name__": "__main__"}
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] != "code" or "start" in tags:
            continue
        module = ast.parse("".join(cell["source"]))
        reader.prints_data(module.body)
        body = WithoutData(reader).visit(module).body
        compared = compared_cells.TAG in tags
        if not compared and body and isinstance(body[-1], ast.Expr):
            body.pop()  # a figure that lacks what the data would have drawn
        printed, formats = shown(body, names)
        if not compared:
            continue
        data = [output["data"] for output in cell["outputs"] if "data" in output]
        assert printed == "".join("".join(each["text"]) for each in cell["outputs"] if "text" in each)
        assert len(formats) == len(data)
        for found, wanted in zip(formats, data, strict=True):
            assert all(found[kind] == "".join(wanted[kind]) for kind in ("text/plain", "text/html"))


def test_the_chapters_have_their_tags() -> None:
    compared_cells.main(["--check"], ROOT / "notebooks")


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_every_chapter_on_data_has_numbers_that_are_compared_everywhere(path: Path) -> None:
    """Its tables of recorded runs among them."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    compared = ["".join(cell["source"]) for cell in cells if compared_cells.TAG in cell["metadata"].get("tags", [])]
    assert len(compared) >= 4
    assert any("table(" in source or "tabulate(" in source for source in compared)


@pytest.mark.parametrize(
    ("sources", "compared"),
    [
        (["print(read(RESULTS))"], [True]),
        (["data = load('twitch')\nprint(2)", "print(data)", "print(3)"], [True, False, True]),
        (["a = load('x')\nb = {'k': a.y}\nprint(0)", "print(b['k'])", "b = 3\nprint(b)"], [True, False, True]),
        (["c = []\nprint(0)", "c.append(load('x'))", "print(c)"], [True, False, False]),
        (["d = {}\nd['k'] = np.mean(load('x'))\nprint(0)", "print(d)", "print(np.mean([1]))"], [True, False, True]),
        (["def f():\n    return load('x')\nprint(0)", "print(f())"], [True, False]),
        (["def g():\n    return later\nlater = load('x')\nprint(0)", "print(g())"], [True, False]),
        (["for name in load('x'):\n    print('-')"], [False]),
        (["for n in load('x'):\n    pass\nprint(0)", "print(n)", "print([n for n in 'ab'])"], [True, False, True]),
        (["for name in load('x'):\n    pass\nprint(0)", "for name in 'ab':\n    print(name)"], [True, True]),
        (["last = 0\nfor i in 'ab':\n    print(last)\n    last = load('x')"], [False]),
        (["if is_miniature():\n    print('small')"], [False]),
        (["with open(load('x')) as f:\n    print(f)"], [False]),
        (["print(experiments.run('twitch'))"], [False]),
        (["assert is_miniature() or read(RESULTS)\nprint(read(RESULTS))"], [True]),
    ],
)  # fmt: skip
def test_what_is_made_of_the_data_is_not_compared(sources: list[str], compared: list[bool]) -> None:
    assert are_compared(*sources) == compared


def test_what_differs_from_run_to_run_is_not_compared() -> None:
    assert are_compared("print(1)", tags=("nbval-ignore-output",)) == [False]


def test_a_tag_that_is_wrong_goes() -> None:
    assert are_compared("print(load('x'))", tags=(compared_cells.TAG,)) == [False]
