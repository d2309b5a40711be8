"""One numbering: a chapter has its number everywhere, and what stands in it is counted by it."""

from __future__ import annotations

import re

import pytest

from tools import built_book
from tools.book_numbers import MENTION, chapter_of
from tools.chromium import Browser

CHAPTERS = [page for page in built_book.PAGES if chapter_of(page)]
KINDS = "Figure|Theorem|Lemma|Proposition|Corollary|Definition|Remark|Example|Exercise|Algorithm|Conjecture"
PLACES = """
const words = element => {
  const copy = element.cloneNode(true);
  for (const mark of copy.querySelectorAll(".headerlink")) mark.remove();
  return copy.textContent.trim().replace(/\\s+/g, " ");
};
return {
  tab: document.title.split(" — ")[0],
  page: words(document.querySelector("article h1")),
  sidebar: words(document.querySelector(".bd-links .current.active > a")),
  numbers: [...document.querySelectorAll("article .caption-number")].map(words),
};
"""
# Text that a reader could want to follow: outside of code, formulas, headings and what cells printed.
UNLINKED = """
const walker = document.createTreeWalker(document.querySelector("article"), NodeFilter.SHOW_TEXT), found = [];
const skipped = "a, pre, code, script, h1, h2, h3, h4, .cell_output, .admonition-title, mjx-container, svg, .math";
while (walker.nextNode())
  if (!walker.currentNode.parentElement.closest(skipped)) found.push(walker.currentNode.data);
return found;
"""


def test_a_chapter_has_its_number_everywhere(page: Browser, request: pytest.FixtureRequest) -> None:
    number = chapter_of(request.node.callspec.params["page"])
    if not number:
        pytest.skip("not a chapter")
    places = page.run(PLACES)
    assert places["page"].startswith(f"{number} ") and places["tab"] == places["sidebar"] == places["page"]
    counted: dict[str, list[int]] = {}
    for label in places["numbers"]:
        found = re.fullmatch(rf"({KINDS}) {number}\.(\d+)", label)
        assert found, label
        counted.setdefault(found[1], []).append(int(found[2]))
    assert counted and all(numbers == list(range(1, len(numbers) + 1)) for numbers in counted.values())


def test_the_places_in_the_book_are_all_different() -> None:
    bars = [re.search(r'<progress value="(\d+)" max="(\d+)"', text_of(page)) for page in CHAPTERS]
    assert sorted(int(bar[1]) for bar in bars if bar) == list(range(1, len(CHAPTERS) + 1))
    assert {int(bar[2]) for bar in bars if bar} == {len(CHAPTERS)}


def text_of(page: str) -> str:
    return (built_book.HTML / page).read_text(encoding="utf-8")


def test_every_mention_of_a_chapter_is_a_link(page: Browser, request: pytest.FixtureRequest) -> None:
    own = chapter_of(request.node.callspec.params["page"])
    known = {chapter_of(name) for name in CHAPTERS} - {own}
    if page.run("return document.querySelector('article') === null"):
        pytest.skip("a page that Sphinx makes")
    mentions = [(text, mention) for text in page.run(UNLINKED) for mention in MENTION.finditer(text)]
    # "[Higham], chapters 3 and 10" are those of another book; the citation stands before the text.
    left = [text[:80] for text, mention in mentions if mention.start() > 2 and _numbers(mention[0]) & known]
    assert left == []


def _numbers(mention: str) -> set[str]:
    return set(re.findall(r"\d+[a-z]?", mention))
