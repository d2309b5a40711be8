"""The landing page: three routes, and five lines that run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[2] / "book" / "index.md").read_text(encoding="utf-8")


def test_the_five_lines_run(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    assert len([line for line in example.splitlines() if line]) == 5
    exec(compile(example, "book/index.md", "exec"), {})
    printed = eval(capsys.readouterr().out)
    assert set(printed) == {"train", "valid", "test"} and all(0 <= value <= 1 for value in printed.values())


def test_there_are_three_routes() -> None:
    routes = TEXT.split("## Three routes")[1].split("\n## ")[0]
    assert re.findall(r"\{grid-item-card\} (.*)", routes) == ["Use it in half an hour", "The theory", "The experiments"]
