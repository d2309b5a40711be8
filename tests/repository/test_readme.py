"""The examples of the README run as they stand, and its findings are those of the notebooks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import readme_findings

ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(compile(EXAMPLES[number], f"README.md, example {number + 1}", "exec"), names)
    if "fitted" in names:
        assert set(names["fitted"].metrics) == {"train", "valid", "test"}  # type: ignore[attr-defined]
        assert (tmp_path / "karate.safetensors").stat().st_size > 1000


def test_there_are_examples():
    assert len(EXAMPLES) >= 2


def test_the_findings_are_those_of_the_notebooks():
    assert readme_findings.main(["--check"]) == 0


def test_a_finding_that_no_chapter_measured_is_refused(monkeypatch):
    monkeypatch.setitem(readme_findings.SHOWN, "Nothing", "No chapter says this")
    with pytest.raises(ValueError, match="0 claims begin with"):
        readme_findings.main(["--check"])
