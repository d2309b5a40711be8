"""The search: sections and definitions instead of pages, clean excerpts, and words that mean the same."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tools import built_book
from tools.chromium import PHONE, Browser

RESULTS = """
return [...document.querySelectorAll("#search-results li")].map(result => ({
  title: result.querySelector("a").innerText,
  address: result.querySelector("a").getAttribute("href"),
  kind: result.querySelector(".kind").innerText,
  excerpt: result.querySelector("p").innerText,
}));
"""


def results(browser: Browser, question: str) -> list[dict[str, str]]:
    browser.open(f"search.html?q={quote(question)}")
    return list(browser.run(RESULTS))


@pytest.mark.parametrize(
    ("question", "title", "kind"),
    [
        ("oversmoothing", "over-smoothing", "glossary"),
        ("over smoothing", "over-smoothing", "glossary"),
        ("homophilic", "homophily", "glossary"),
        ("AdvDiffConv", "advdiff.nn.AdvDiffConv", "library"),
        ("theorem 5.2", "Theorem 5.2", "theorem"),
        ("stochastic block models", "stochastic block model", "glossary"),
        ("generalization gap", "generalisation gap", "glossary"),
        ("residual bound", "Theorem 6.", "theorem"),
        ("how to choose a method", "How to choose a method", "page"),
    ],
)
def test_the_first_answer(browser: Browser, question: str, title: str, kind: str) -> None:
    first = results(browser, question)[0]
    assert first["title"].startswith(title) and first["kind"].startswith(kind)


def test_answers_are_places_of_the_book_with_clean_excerpts(browser: Browser) -> None:
    found = results(browser, "exponential")
    assert len(found) == 20
    assert sum("#" in result["address"] for result in found) > 15, "sections, not pages"
    for result in found:
        path, _, anchor = result["address"].partition("#")
        assert not anchor or built_book.is_anchor(anchor, built_book.HTML / path), result["address"]
        for text in (result["excerpt"], result["title"]):
            assert not any(mark in text for mark in ("\\", "_{", "^{", "$", "Copy", "Show code", "Click to")), text
    kinds = [result["kind"].partition(" ")[0] for result in found]
    defining = [k for k, kind in enumerate(kinds) if kind in ("theorem", "proposition", "lemma", "definition")]
    assert defining and defining[0] < kinds.index("section"), "what defines comes before what tells"


def test_synonyms_and_hyphens_find_the_same_places(browser: Browser) -> None:
    addresses = [
        [result["address"] for result in results(browser, word)]
        for word in ("oversmoothing", "over-smoothing", "Over smoothing")
    ]
    assert addresses[0] == addresses[1] == addresses[2] != []


def test_typing_searches_more_are_shown_and_nothing_is_said_plainly(browser: Browser) -> None:
    assert len(results(browser, "graph")) == 20
    browser.run("document.querySelector('#search-results button').click()")
    assert len(browser.run(RESULTS)) == 40
    browser.open("search.html")
    assert browser.run(RESULTS) == [] and browser.console == []
    browser.run("return document.querySelector('.bd-search-container input')").send_keys("qwertz")
    browser.driver.execute_async_script("setTimeout(arguments[0], 400)")
    assert "Nothing" in browser.run("return document.querySelector('#search-results [role=status]').innerText")
    assert browser.run("return location.search") == "?q=qwertz"


def test_a_question_cannot_write_into_the_page(browser: Browser) -> None:
    assert results(browser, "<img src=x onerror=alert(1)>") == []
    assert browser.run("return document.querySelector('#search-results img')") is None


def test_results_fit_a_phone(browser: Browser) -> None:
    assert results(browser, "advdiff.datasets")
    browser.resize(*PHONE)
    assert browser.run("return document.documentElement.scrollWidth") <= PHONE[0]
