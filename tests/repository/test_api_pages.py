"""The API pages hold every public name, and every name of the contract has an example that doctest runs."""

from __future__ import annotations

import doctest
import functools
import importlib
import inspect
import pkgutil
import re
import runpy
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import advdiff
from advdiff.cli import parser

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "book" / "api").glob("*.md"))
#: Packages whose ``__all__`` is the contract, and modules all of whose functions and classes belong to it.
CONTRACT = ("advdiff", "advdiff.nn", "advdiff.datasets", "advdiff.experiments", "advdiff.results", "advdiff.viz")
CONTRACT_MODULES = (
    *(f"advdiff.theory.{name}" for name in ("bounds", "gap", "graph_statistics", "norms", "shifts", "variation")),
    *(f"advdiff.theory.{name}" for name in ("advection_law", "spectral_measure")),
    "advdiff.claims",
)
#: Modules without a page of their own, and why.
NO_PAGE = {
    "advdiff.bench": "the command `advdiff bench`; documented as such on the page of the command line",
    "advdiff.cli": "the command itself",
    "advdiff.distributed.__main__": "the command of torchrun; documented as such on the page of several machines",
    "advdiff.lazy": "how the package is put together, nothing to call",
}
#: Names of the contract without an example, and why.
NO_EXAMPLE = {
    "DATASETS": "a tuple of names",
    "NAMES": "a dictionary of names",
    "STYLES": "a dictionary of looks",
    "RECIPES": "a dictionary; the example of Recipe reads it",
}
DIRECTIVE = re.compile(r"^\.\. (auto\w+|py:data):: (\S+)((?:\n   :.*)*)", re.MULTILINE)


def walk() -> list[ModuleType]:
    names = ["advdiff", *(found.name for found in pkgutil.walk_packages(advdiff.__path__, "advdiff."))]
    return [importlib.import_module(name) for name in names]


def has_page(module: ModuleType) -> bool:
    return not any(module.__name__ == name or module.__name__.startswith(f"{name}.") for name in NO_PAGE)


def public(module: ModuleType) -> dict[str, Any]:
    """Functions and classes that are defined in a module and have no underscore."""
    return {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    }


def resolve(path: str) -> Any:
    module, _, name = path.rpartition("::") if "::" in path else path.rpartition(".")
    return getattr(importlib.import_module(module), name)


@functools.cache
def documented() -> tuple[set[int], set[str]]:
    """What the pages show: the identities of functions and classes, and the names of data."""
    shown: set[int] = set()
    data: set[str] = set()
    for page in PAGES:
        for kind, path, options in DIRECTIVE.findall(page.read_text(encoding="utf-8")):
            if kind == "automodule":
                excluded = re.search(r":exclude-members: (.*)", options)
                left_out = excluded[1].split(", ") if excluded else []
                members = public(importlib.import_module(path))
                assert set(left_out) - set(members) <= {"RECIPES"}, f"{page.name} leaves out what {path} does not have"
                shown |= {id(value) for name, value in members.items() if name not in left_out}
            elif kind in ("autodata", "py:data"):
                resolve(path)
                data.add(path.rpartition(".")[2])
            else:
                shown.add(id(resolve(path)))
    return shown, data


def contract() -> list[tuple[str, Any]]:
    names = [(f"{package}.{name}", name, importlib.import_module(package)) for package in CONTRACT
             for name in importlib.import_module(package).__all__]  # fmt: skip
    found = [(path, getattr(module, name)) for path, name, module in names if name not in NO_EXAMPLE]
    for module in map(importlib.import_module, CONTRACT_MODULES):
        found += [(f"{module.__name__}.{name}", value) for name, value in public(module).items()]
    return found


@pytest.mark.parametrize("module", walk(), ids=lambda module: module.__name__)
def test_every_public_name_is_on_a_page(module: ModuleType) -> None:
    if not has_page(module):
        pytest.skip("see NO_PAGE")
    shown, data = documented()
    for name, value in public(module).items():
        assert id(value) in shown, f"{module.__name__}.{name} is on no page of book/api"
        assert inspect.getdoc(value), f"{module.__name__}.{name} has no docstring, so that autodoc leaves it out"
    if module.__name__ in CONTRACT:
        for name in module.__all__:
            assert id(getattr(module, name)) in shown or name in data, f"{name} is on no page of book/api"


@pytest.mark.parametrize(("path", "value"), contract(), ids=lambda each: each if isinstance(each, str) else "")
def test_every_name_of_the_contract_has_an_example_that_runs(path: str, value: Any) -> None:
    (found,) = [test for test in doctest.DocTestFinder(recurse=False).find(value, path) if test.examples] or [None]
    assert found is not None, f"{path} has no example"
    skipped = [example for example in found.examples if doctest.SKIP in example.options]
    assert not skipped, f"{path}: an example that is skipped shows nothing"


def test_exemptions_are_needed() -> None:
    modules = {module.__name__ for module in walk()}
    assert set(NO_PAGE) <= modules
    names = {name for package in CONTRACT for name in importlib.import_module(package).__all__}
    assert set(NO_EXAMPLE) <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_examples_of_a_page_run(page: Path) -> None:
    blocks = re.findall(r"^```pycon\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for number, block in enumerate(blocks):
        test = doctest.DocTestParser().get_doctest(block, {}, f"{page.name}[{number}]", str(page), 0)
        assert test.examples
        failures = doctest.DocTestRunner().run(test).failed
        assert not failures


def test_every_page_is_listed_and_mapped() -> None:
    toc = (ROOT / "_toc.yml").read_text(encoding="utf-8")
    index = (ROOT / "book" / "api" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert f"file: book/api/{page.stem}\n" in toc
        assert page.stem == "index" or f"]({page.name})" in index


def test_every_command_is_on_its_page() -> None:
    page = (ROOT / "book" / "api" / "command_line.md").read_text(encoding="utf-8")
    (commands,) = (action.choices for action in parser()._actions if action.dest == "command")
    assert re.findall(r"^\.\. shell-command:: (\w+)$", page, re.MULTILINE) == list(commands)
    assert re.findall(r"^## advdiff (\w+)$", page, re.MULTILINE) == list(commands)


def test_text_of_options_is_read_from_the_parsers() -> None:
    pytest.importorskip("sphinx")
    reference = runpy.run_path(str(ROOT / "tools" / "book_reference.py"))
    below = reference["subparsers"](parser())
    lines = {name: list(reference["command_lines"](name, command)) for name, command in below.items()}
    assert "   * - ``--jobs N``" in lines["run"]
    assert any("homophily, density, block, none" in line for line in lines["run"])
    assert "   advdiff data fetch name [name ...] [options]" in lines["data"]
    table = list(reference["model_lines"]())
    assert sum(line.startswith("   * - ``") for line in table) == len(advdiff.nn.model_names())


def test_exponents_and_indices_of_docstrings() -> None:
    pytest.importorskip("sphinx")
    tool = runpy.run_path(str(ROOT / "tools" / "book_docstrings.py"))
    for test in doctest.DocTestFinder(recurse=False).find(tool["typeset"], "typeset", globs=tool):
        assert test.examples and not doctest.DocTestRunner().run(test).failed
    lines = [".. math::", "    x^2", "", "x^2", "", ">>> x^2", "x^2", "", "as follows::", "", "    x^2", "", "z_u"]
    changed = [new for old, new in zip(lines, tool["typeset_lines"](lines), strict=True) if new != old]
    assert changed == [r"x\ :sup:`2`\ ", r"z\ :sub:`u`\ "]


def test_page_on_citing_says_what_the_citation_file_says() -> None:
    page = re.sub(r"\s+", " ", (ROOT / "book" / "how_to_cite.md").read_text(encoding="utf-8"))
    book = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    (paper,) = book["references"]
    url = [book["url"]] if "url" in book else []  # while the repository has no address, there is none to cite
    for text in (book["title"], *url, paper["title"], paper["url"], paper["collection-title"]):
        assert page.count(text) >= 2, "once as text and once as BibTeX"
    assert page.count(f"Version {book['version']}.") == page.count(f"version = {{{book['version']}}}") == 1
    for author in paper["authors"]:
        assert f"{author['given-names']} {author['family-names']}" in page
        assert f"{author['family-names']}, {author['given-names']}" in page
    assert f"{paper['volume']}, pages {paper['start']}–{paper['end']}, {paper['year']}" in page


def test_words_of_the_glossary_are_explained_once() -> None:
    page = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
    terms = re.findall(r"^(\S.*)\n  \S", page, re.MULTILINE)
    assert len(terms) == len(set(terms)) >= 35
    for entry in re.split(r"\n\n(?=\S)", page.split(":sorted:\n\n")[1].rsplit("```")[0].strip()):
        assert re.search(r"\]\([\w./#-]+\)", entry), f"no link to a chapter: {entry}"
