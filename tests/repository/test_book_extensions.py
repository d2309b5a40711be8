"""What the extensions of the book make of a text: numbers, links, verdicts, the bar of a chapter."""

from __future__ import annotations

import doctest
import importlib
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from docutils import nodes
from docutils.utils import new_document
from sphinx import addnodes

from tools import book_claims, book_numbers, book_reading, book_search
from tools.gather_claims import read_chapters
from tools.tex_words import tex_words

ROOT = Path(__file__).parents[2]
PAGES = {"4": "notebooks/04_x", "6": "notebooks/06_y", "6a": "notebooks/06a_z", "10": "notebooks/10_t"}


@pytest.mark.parametrize("name", ["book_claims", "book_numbers", "book_reading", "tex_words"])
def test_examples_in_the_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(f"tools.{name}")).failed == 0


def test_the_book_loads_every_extension() -> None:
    sphinx = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]
    local = set(sphinx["local_extensions"])
    assert local <= set(sphinx["config"]["extensions"])
    files = [
        path for path in (ROOT / "tools").glob("book_*.py") if "\ndef setup(app" in path.read_text(encoding="utf-8")
    ]
    assert {f"tools.{path.stem}" for path in files} <= local


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("Chapter 6a repeats chapter\n6.", [("Chapter 6a", "6a"), ("chapter\n6", "6")]),
        ("chapters 4, 6 and 10", [("chapters 4", "4"), ("6", "6"), ("10", "10")]),
        ("chapters 4 to 6", [("chapters 4", "4"), ("6", "6")]),
        ("a cell of chapter 4, 4.12 of its ledger", [("chapter 4", "4")]),
        ("chapter 26 and chapter 42", []),
        ("chapters on 4 things", []),
    ],
)
def test_mentions_of_chapters(text: str, links: list[tuple[str, str]]) -> None:
    pieces = list(book_numbers.pieces(text, PAGES))
    assert "".join(words for words, _ in pieces) == text
    assert [piece for piece in pieces if piece[1]] == [(words, PAGES[number]) for words, number in links]


@pytest.mark.parametrize(
    ("before", "text", "after", "expected"),
    [
        (True, ", chapters 3 and 10, on derivatives", False, True),
        (False, "both facts are in chapter 4 of ", True, True),
        (True, " says so; chapter 4 has the proof", False, False),
        (False, "see chapter 4 for ", True, False),
    ],
)
def test_chapters_of_a_cited_book_are_left_alone(before: bool, text: str, after: bool, expected: bool) -> None:
    cited = [
        addnodes.pending_xref("", refdomain="cite") if is_there else nodes.emphasis() for is_there in (before, after)
    ]
    paragraph = nodes.paragraph("", "", cited[0], nodes.Text(text), cited[1])
    assert book_numbers.is_of_another_book(paragraph.children[1]) is expected  # type: ignore[arg-type]


def test_numbers_begin_anew_in_each_chapter() -> None:
    counted: dict[str, Any] = {
        "notebooks/04_x": {"theorem": {"a": (1,), "b": (2,)}, "figure": {"c": (1,)}},
        "notebooks/06a_z": {"theorem": {"d": (3,)}},
        "book/claims": {"figure": {"e": (2,)}},
    }
    book_numbers.count_by_chapter(None, SimpleNamespace(toc_fignumbers=counted))  # type: ignore[arg-type]
    assert counted["notebooks/04_x"] == {"theorem": {"a": ("4", 1), "b": ("4", 2)}, "figure": {"c": ("4", 1)}}
    assert counted["notebooks/06a_z"] == {"theorem": {"d": ("6a", 1)}}
    assert counted["book/claims"] == {"figure": {"e": (1,)}}


def test_every_claim_has_a_folded_cell_that_names_it() -> None:
    for chapter in read_chapters(ROOT):
        cells = json.loads((ROOT / chapter.path).read_text(encoding="utf-8"))["cells"]
        lines = [cell["metadata"].get("mystnb", {}).get("code_prompt_show", "") for cell in cells]
        named = [number for line in lines for number in book_claims.numbers_in(line)]
        assert named == [claim.number for claim in chapter.ledger.claims], chapter.path


def test_the_bar_says_where_the_chapter_stands() -> None:
    bar = book_reading.bar("b", ["a", "b", "c"])
    assert '<progress value="2" max="3"' in bar and "2nd of 3 chapters" in bar
    assert [f'value="{position}"' in bar for position in ("story", "code", "everything")] == [True] * 3


@pytest.mark.parametrize(
    ("tex", "words"),
    [
        (r"\tfrac1{\sqrt2}\tilde a_{uv}", "1/(√(2))ãᵤᵥ"),
        (r"\bigl(\bI - \bC\bigr)^{-1}\bZ^\top", "(I − C)⁻¹Zᵀ"),
        (r"\{1, \dots, N\}", "1, …, N"),
        (r"\mathcal O(x\,e^{xT})", "O(x e^(xT))"),
        (r"\underbrace{\beta\bV}_{\text{edges}}", "βV_(edges)"),
    ],
)
def test_formulas_in_plain_letters(tex: str, words: str) -> None:
    assert tex_words(tex) == words


def test_no_formula_of_the_book_keeps_its_source() -> None:
    sources = [
        "".join(cell["source"])
        for path in (ROOT / "notebooks").glob("*.ipynb")
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "markdown"
    ]
    formulas = [formula for text in sources for formula in re.findall(r"(?<![$\\])\$([^$]+)\$", text)]
    assert len(formulas) > 1000
    assert [formula for formula in formulas if re.search(r"[\\{}]|frac", tex_words(formula))] == []


def test_a_page_becomes_entries_of_the_search() -> None:
    inner = nodes.section(
        "", nodes.title("", "Why"), nodes.paragraph("", "Since ", nodes.math("", r"\beta > 0"), nodes.Text("."))
    )
    theorem = nodes.admonition(
        "",
        nodes.title("", "Growth"),
        nodes.section("", nodes.paragraph("", "It grows.")),  # as sphinx-proof has it
        realtype="theorem",
        countertype="theorem",
        ids=["thm-growth"],
    )
    inner["ids"], inner.children = ["why"], [*inner.children, theorem]
    page = nodes.section("", nodes.title("", "A page"), nodes.paragraph("", "Text."), inner, ids=["page"])
    page += nodes.container("", nodes.literal_block("", "code()"), classes=["cell_input"])
    document = new_document("page")
    document += page
    assert list(book_search.entries(document, {"theorem": {"thm-growth": ("5", 2)}})) == [
        ("page", "A page", "", "Text."),
        ("section", "Why", "why", "Since β > 0."),
        ("theorem", "Theorem 5.2 (Growth)", "thm-growth", "It grows."),
    ]
