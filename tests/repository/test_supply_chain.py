"""What runs on other people's machines, and with which rights."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tools import check_links
from tools.check_links import links_in

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    used = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
    assert used and all(name.startswith("./") or re.search(r"@[0-9a-f]{40}$", name) for name in used)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_only_the_job_that_publishes_may_write(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    rights = {name: job["permissions"] for name, job in workflow["jobs"].items() if "permissions" in job}
    assert rights == ({"deploy": {"pages": "write", "id-token": "write"}} if path.stem == "book" else {})


def test_what_is_published_has_passed_the_tests() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/book.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["test"]["uses"] == "./.github/workflows/tests.yml"
    assert jobs["build"]["needs"] == "test" and jobs["deploy"]["needs"] == "build"


def test_the_weekly_run_compares() -> None:
    text = (ROOT / ".github/workflows/weekly.yml").read_text(encoding="utf-8")
    assert "make nbval\n" in text and "nbval-lax" not in text
    assert "tools.recompute" in text and "tools.check_links" in text


def test_links_are_found_in_markdown_and_bibtex() -> None:
    text = "[a](https://a.org/x_(y)), <https://b.org/z>. url = {https://c.org/d}, https://e.org."
    assert links_in(text) == {"https://a.org/x_(y)", "https://b.org/z", "https://c.org/d", "https://e.org"}
    assert any("proceedings.mlr.press" in link for link in check_links.links())


def test_a_dead_link_is_named() -> None:
    assert list(check_links.dead(["http://127.0.0.1:9/nothing"], seconds=1)) == ["http://127.0.0.1:9/nothing"]
