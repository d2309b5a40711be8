"""Chapters on data sets: which cells are compared without the data, too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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
