"""The switch of a chapter: story, story + code, everything; remembered, moved by keyboard, and not on paper."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from selenium.webdriver.common.keys import Keys

from tools.chromium import PHONE, Browser

CHAPTER, OTHER = "notebooks/05_perturbation_bounds.html", "notebooks/06a_when_advection_helps.html"
STATE = """
const seen = elements => [...elements].filter(element => element.checkVisibility()).length;
const article = document.querySelector(".bd-article"), folded = "div.cell details.above-input";
return {
  position: document.documentElement.dataset.reading,
  checked: document.querySelector(".reading-switch input:checked").value,
  code: seen(article.querySelectorAll("div.cell_input pre")),
  folded: seen(article.querySelectorAll(folded + ":not([open])")),
  outputs: seen(article.querySelectorAll("div.cell_output")),
  empty: [...article.querySelectorAll("div.cell")].filter(cell => cell.checkVisibility() && !cell.clientHeight).length,
};
"""
PUT = "document.querySelector(`.reading-switch input[value=${arguments[0]}]`).click()"
PRINTED = "return [...document.querySelectorAll('div.cell_input pre')].filter(pre => pre.checkVisibility()).length"


@pytest.fixture
def chapter(browser: Browser) -> Iterator[Browser]:
    """A chapter as a new reader sees it."""
    browser.open(CHAPTER)
    browser.run("localStorage.removeItem('advdiff-reading')")
    browser.open(CHAPTER)
    yield browser
    browser.run("localStorage.removeItem('advdiff-reading')")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_a_new_reader_sees_story_and_code(chapter: Browser) -> None:
    state = chapter.run(STATE)
    assert state["position"] == state["checked"] == "code"
    assert state["code"] > 0 and state["folded"] > 0


def test_the_story_has_every_output_and_no_code(chapter: Browser) -> None:
    before = chapter.run(STATE)
    chapter.run(PUT, "story")
    state = chapter.run(STATE)
    assert (state["code"], state["folded"], state["empty"]) == (0, 0, 0)
    assert state["outputs"] == before["outputs"] > 0


def test_everything_is_open_and_closes_again(chapter: Browser) -> None:
    before = chapter.run(STATE)
    chapter.run(PUT, "everything")
    state = chapter.run(STATE)
    assert state["folded"] == 0 and state["code"] >= before["code"] + before["folded"]
    chapter.run(PUT, "code")
    assert chapter.run(STATE) == before


@pytest.mark.parametrize("position", ["story", "everything"])
def test_the_next_page_remembers(chapter: Browser, position: str) -> None:
    chapter.run(PUT, position)
    chapter.open(OTHER)
    state = chapter.run(STATE)
    assert state["position"] == state["checked"] == position
    assert state["folded"] == 0 and (state["code"] > 0) == (position == "everything")
    assert chapter.console == []


def test_it_is_moved_by_arrow_keys(chapter: Browser) -> None:
    chapter.run("document.querySelector('.reading-switch input:checked').focus()")
    chapter.driver.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert chapter.run(STATE)["position"] == "everything"
    chapter.driver.switch_to.active_element.send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert chapter.run(STATE)["position"] == "story"


def test_what_is_read_stays_in_place(chapter: Browser) -> None:
    last = "const heading = [...document.querySelectorAll('.bd-article section > h2')].at(-2);"
    chapter.run(f"{last} heading.scrollIntoView()")
    top = f"{last} return heading.getBoundingClientRect().top"
    before = chapter.run(top)
    for position in ("story", "everything"):
        chapter.run(PUT, position)
        assert chapter.run(top) == pytest.approx(before, abs=2)


@pytest.mark.parametrize("position", ["story", "everything"])
def test_paper_shows_what_the_chapter_shows_by_itself(chapter: Browser, position: str) -> None:
    chapter.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    before = chapter.run(PRINTED)
    chapter.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    chapter.run(PUT, position)
    chapter.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    chapter.run("dispatchEvent(new Event('beforeprint'))")
    assert chapter.run(PRINTED) == before > 0
    assert not chapter.run("return document.querySelector('.reading-bar').checkVisibility()")
    chapter.run("dispatchEvent(new Event('afterprint'))")
    chapter.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert chapter.run(STATE)["position"] == position


def test_it_fits_a_phone_in_one_line(chapter: Browser) -> None:
    chapter.resize(*PHONE)
    tops = chapter.run(
        "return [...document.querySelectorAll('.reading-switch span')].map(span => span.getBoundingClientRect())"
    )
    assert len({box["top"] for box in tops}) == 1 and tops[-1]["right"] <= PHONE[0]
    assert all(box["height"] >= 24 for box in tops), "a finger needs room"
