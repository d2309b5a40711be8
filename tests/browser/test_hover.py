"""Figures with many lines: a name brings its lines forward, by pointer, keyboard and touch."""

from __future__ import annotations

from typing import Any

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

from tools import built_book
from tools.chromium import Browser

PAGES = [
    f"notebooks/{name}.html"
    for name in (
        "08_synthetic_shifts",
        "09_tuning_and_ablations",
        "10_twitch",
        "11_arxiv",
        "12_protein_interactions",
        "14_molecules",
    )
]
# Of the first figure: how visible the lines of each name are.
SEEN = """
const figure = document.querySelector(".hover-lines"), own = figure.id;
return [...figure.querySelectorAll("[role=button]")].map((_, k) =>
  [...figure.querySelectorAll(`[id^=${own}-line-${k}-]`)].map(line => Number(getComputedStyle(line).opacity)));
"""


def forward(seen: list[list[float]]) -> list[int]:
    """The numbers of the names whose lines are as visible as ever."""
    return [k for k, lines in enumerate(seen) if lines and min(lines) == 1]


@pytest.mark.parametrize("page", PAGES)
def test_name_brings_its_lines_forward(browser: Browser, page: str) -> None:
    assert page in built_book.PAGES
    browser.open(page)
    names = browser.driver.find_elements("css selector", ".hover-lines [role=button]")
    figure = browser.driver.find_element("css selector", ".hover-lines")
    first: Any = browser.run("return [...arguments[0].querySelectorAll('[role=button]')]", figure)
    everybody = forward(browser.run(SEEN))
    assert len(first) >= 2 and len(everybody) == len(first) <= len(names), "a name without lines"

    def alone(k: int) -> Any:
        return lambda _: forward(browser.run(SEEN)) == [k]

    wait = WebDriverWait(browser.driver, 5)
    browser.run("arguments[0].scrollIntoView({block: 'center'})", first[1])
    ActionChains(browser.driver).move_to_element(first[1]).perform()
    wait.until(alone(1))
    ActionChains(browser.driver).move_by_offset(0, 400).perform()
    browser.run("arguments[0].focus()", first[0])  # where the tabulator leads, and a tap
    wait.until(alone(0))
    assert browser.run("return arguments[0].tabIndex", first[0]) == 0
    browser.run("document.activeElement.blur()")
    wait.until(lambda _: forward(browser.run(SEEN)) == everybody)
    figure_box = browser.run("return arguments[0].getBoundingClientRect().toJSON()", figure)
    assert 0 < figure_box["width"] <= browser.run("return document.documentElement.clientWidth")


def test_dark_page_has_no_frame_around_a_figure_and_is_printed_light(browser: Browser) -> None:
    browser.open(PAGES[-1])
    around = "getComputedStyle(document.querySelector('.text_html:has(.hover-lines)')).backgroundColor"
    theme = "document.documentElement.dataset.theme"
    before = browser.run(f"return {theme}")
    browser.run(f"{theme} = 'dark'; addEventListener('beforeprint', () => window.onPaper = [{theme}, {around}])")
    try:
        assert browser.run(f"return {around}") == "rgba(0, 0, 0, 0)"
        browser.driver.execute_cdp_cmd("Page.printToPDF", {"pageRanges": "1"})
        assert browser.run("return window.onPaper") == ["light", "rgba(0, 0, 0, 0)"]
        assert browser.run(f"return {theme}") == "dark"
    finally:
        browser.run(f"{theme} = arguments[0]", before)
