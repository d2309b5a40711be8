"""The files around the library agree: dependencies, table of contents, notebooks, commands."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Paths of the machine on which a notebook ran; runs of base64 may contain anything and are cut out first.
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home|tmp)/")
BASE64 = re.compile(r"[A-Za-z0-9+/=]{60,}")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def constraints(python: str) -> dict[str, str]:
    """The pins of constraints.txt that apply to a version of Python."""
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    pins: dict[str, str] = {}
    for line in text_of("constraints.txt").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(environment):
            name = canonicalize_name(pin.name)
            assert re.fullmatch(r"==[^*+,]+", str(pin.specifier)), f"not an exact, public version: {line}"
            assert name not in pins, f"{name} is pinned twice for Python {python}"
            pins[name] = str(pin.specifier).removeprefix("==")
    return pins


def toc_files(node: Any) -> list[str]:
    if isinstance(node, dict):
        own = [node[key] for key in ("root", "file") if key in node]
        return own + [file for value in node.values() for file in toc_files(value)]
    if isinstance(node, list):
        return [file for item in node for file in toc_files(item)]
    return []


# ---------------------------------------------------------------------------------------------- dependencies


@pytest.mark.parametrize("python", PYTHONS)
def test_every_dependency_is_pinned_within_its_bounds(python: str) -> None:
    pins = constraints(python)
    for line in [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]:
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        assert name in pins, f"{name} is not in constraints.txt"
        assert requirement.specifier.contains(pins[name], prereleases=True), f"{line}, pinned {pins[name]}"


def test_environment_yml_installs_the_same_thing() -> None:
    entries = yaml.safe_load(text_of("environment.yml"))["dependencies"]
    (pip,) = (entry["pip"] for entry in entries if isinstance(entry, dict))
    conda = dict(entry.partition("=")[::2] for entry in entries if isinstance(entry, str))

    assert conda.keys() == {"python", "pip", "make", "nodejs"}, "everything else comes through constraints.txt"
    assert conda["python"] in PYTHONS
    assert Requirement(f"python{PROJECT['requires-python']}").specifier.contains(conda["python"])
    packages = [line for line in pip if not line.startswith("--extra-index-url ")]
    assert packages == ["-c constraints.txt", "-e .[book,test,data]"]


def test_makefile_installs_every_extra_but_npm() -> None:
    match = re.search(r"^EXTRAS := (\S+)$", text_of("Makefile"), re.MULTILINE)
    assert match is not None
    assert {*match[1].split(","), "npm"} == set(EXTRAS), "npm is installed only where the system has none"


# -------------------------------------------------------------------------------------------------- the book


def test_table_of_contents_lists_what_exists() -> None:
    listed = toc_files(yaml.safe_load(text_of("_toc.yml")))
    pages = {str(path.relative_to(ROOT).with_suffix("")) for path in [*ROOT.glob("book/**/*.md"), *NOTEBOOKS]}
    assert set(listed) <= pages, "a page is listed that does not exist"
    assert len(listed) == len(set(listed)), "a page is listed twice"
    assert {f"notebooks/{path.stem}" for path in NOTEBOOKS} <= set(listed), "a notebook is not listed"


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_committed_executed_and_clean(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    cells = [cell for cell in code if "".join(cell["source"]).strip()]
    counts = [cell["execution_count"] for cell in cells]
    assert counts == list(range(1, len(cells) + 1)), "not executed from top to bottom: run `make notebooks`"
    for output in (output for cell in cells for output in cell["outputs"]):
        assert output["output_type"] != "error", output
        for mime in ("image/png", "image/jpeg"):
            output.get("data", {}).pop(mime, None)
    found = MACHINE_PATH.search(BASE64.sub("", json.dumps(notebook)))
    assert found is None, f"a path of the machine it ran on: {found}"


def test_notebooks_begin_with_the_cell_that_installs_the_package_elsewhere() -> None:
    command = [sys.executable, "tools/start_cell.py", "--check"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr


def test_mathjax_and_latex_know_the_same_macros() -> None:
    config = yaml.safe_load(text_of("_config.yml"))["sphinx"]["config"]
    latex = set()
    for name, body in config["mathjax3_config"]["tex"]["macros"].items():
        definition, arguments = (body[0], f"[{body[1]}]") if isinstance(body, list) else (body, "")
        latex.add(rf"\newcommand{{\{name}}}{arguments}{{{definition}}}")
    assert set(config["latex_elements"]["preamble"].split("\n")) - {""} == latex


def test_pages_load_only_fetched_browser_code() -> None:
    fetch_assets = runpy.run_path(str(ROOT / "tools" / "fetch_assets.py"))
    config = yaml.safe_load(text_of("_config.yml"))["sphinx"]["config"]
    fetched_folder, own_folder = (ROOT / folder for folder in config["html_static_path"])
    assert fetched_folder == fetch_assets["ASSETS"]
    own = {*config["html_css_files"], *(name for name in config["html_js_files"] if isinstance(name, str))}
    assert {path.name for path in own_folder.iterdir()} == own
    assert text_of("Makefile").count(f"ASSETS := _build/assets/{fetch_assets['STAMP']}\n") == 1
    fetched = {target for package in fetch_assets["PACKAGES"] for target in package.files.values()}
    assert {config["mathjax_path"], *config["nb_ipywidgets_js"]} <= fetched


@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in for npm is a shell script")
@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'npm error code ENOTFOUND' >&2; exit 1", r"could not fetch mathjax@\S+ \(ENOTFOUND\)"),
        ("echo other > mathjax.tgz", "is not the pinned file"),
        (None, "install Node.js"),
    ],
    ids=["no network", "another file", "no npm"],
)
def test_assets_are_fetched_as_pinned_or_not_at_all(
    script: str | None, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch = runpy.run_path(str(ROOT / "tools" / "fetch_assets.py"))["fetch"]
    if script is not None:
        (tmp_path / "npm").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SystemExit, match=message):
        fetch(tmp_path / "build" / "assets")
    assert not list(tmp_path.glob("build/*"))


# ------------------------------------------------------------------------------------------------ the README


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
