"""The address of the repository stands in one place; while it is empty, nothing leads to one that nobody owns."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools import address, start_cell

ROOT = Path(__file__).parents[2]
OURS = "https://github.com/somebody/advdiff"


def test_no_file_names_an_address_of_its_own() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    named = re.compile(r"github\.com/advdiff|advdiff\.github\.io")
    texts = {name: ROOT / name for name in listed if name.endswith((".md", ".yml", ".toml", ".cff", ".ipynb", ".py"))}
    found = [
        n for n, path in texts.items() if n != "tests/repository/test_address.py" and named.search(path.read_text())
    ]
    assert not found


def test_what_is_made_from_the_address_is_up_to_date() -> None:
    done = subprocess.run([sys.executable, "-m", "tools.address", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("given", ["", OURS])
def test_the_first_cell_of_a_notebook(given: str) -> None:
    text = start_cell.source(given)
    assert ("git clone" in text) == bool(given) == (OURS in text)
    assert ("--branch v" in text) == bool(given), "a release, not whatever is on main"
    assert "constraints.txt" in text, "with the pins"
    assert all(len(line) <= 92 for line in text.replace(given, "").splitlines())


def test_the_citation() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    with_it = yaml.safe_load(address.citation(text, OURS))
    assert with_it["repository-code"] == OURS and with_it["url"] == "https://somebody.github.io/advdiff"
    without = address.citation(address.citation(text, OURS), "")
    assert {"repository-code", "url"}.isdisjoint(yaml.safe_load(without))


CONF = """
extensions = ["myst_parser", "address"]
html_theme = "sphinx_book_theme"
html_theme_options = {}
"""
PAGE = "# A page\n\nText<!-- with the address: ([here]({repository}) and [there]({pages})) -->.\n"


@pytest.mark.parametrize("given", ["", OURS], ids=["empty", "set"])
def test_a_book_is_built_both_ways(given: str, tmp_path: Path) -> None:
    """One page of it, with the extension that gives the book its buttons."""
    (tmp_path / "conf.py").write_text(CONF)
    (tmp_path / "index.md").write_text(PAGE)
    code = (
        f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tools')!r}]; import address; "
        f"address.repository = lambda: {given!r}; from sphinx.cmd.build import main; "
        f"sys.exit(main(['-q', '-W', {str(tmp_path)!r}, {str(tmp_path / 'html')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "index.html").read_text(encoding="utf-8")
    assert "with the address" not in page
    for mark in ("github.com/somebody", "somebody.github.io", "/edit/main/", "/issues/new"):
        assert (mark in page) == bool(given), mark
    assert "github.com/advdiff" not in page


def test_the_book_uses_the_extension() -> None:
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert "tools.address" in config["sphinx"]["config"]["extensions"]
    assert "repository" not in config and "launch_buttons" not in config
    buttons = [name for name in config["html"] if name.startswith("use_")]
    assert not buttons, "they come with the address"
