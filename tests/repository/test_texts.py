"""README, CONTRIBUTING, citation and configuration say what is so."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import yaml

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_commands_of_the_texts_are_targets_of_make() -> None:
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    assert {"book", "test"} <= targets
    for name in ("README.md", "CONTRIBUTING.md", "book/index.md"):
        assert set(re.findall(r"(?:^|`)make ([a-z]+)", text_of(name), re.MULTILINE)) <= targets, name


def test_readme_shows_a_picture_that_exists() -> None:
    for image in re.findall(r"!\[[^]]+\]\(([^):]+)\)", text_of("README.md")):
        assert (ROOT / image).is_file()


def test_version_is_the_same_everywhere() -> None:
    assert f"## [{PROJECT['version']}]" in text_of("CHANGELOG.md")
    assert yaml.safe_load(text_of("CITATION.cff"))["version"] == PROJECT["version"]


def test_mathjax_and_latex_know_the_same_macros() -> None:
    config = yaml.safe_load(text_of("_config.yml"))["sphinx"]["config"]
    latex = set()
    for name, body in config["mathjax3_config"]["tex"]["macros"].items():
        definition, arguments = (body[0], f"[{body[1]}]") if isinstance(body, list) else (body, "")
        latex.add(rf"\newcommand{{\{name}}}{arguments}{{{definition}}}")
    assert set(config["latex_elements"]["preamble"].split("\n")) - {""} == latex
