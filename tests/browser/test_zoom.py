"""A figure opens large by a tap or by keyboard, and shuts again."""

from __future__ import annotations

import pytest
from selenium.webdriver.common.keys import Keys

from tools.chromium import PHONE, Browser

STATE = """
const dialog = document.querySelector("dialog.zoom"), large = dialog.querySelector("img");
return { open: dialog.open, name: dialog.ariaLabel, width: large?.getBoundingClientRect().width };
"""


@pytest.fixture
def chapter(browser: Browser) -> Browser:
    browser.open("notebooks/05_perturbation_bounds.html")
    return browser


def test_a_tap_opens_and_shuts_a_figure_on_a_phone(chapter: Browser) -> None:
    chapter.resize(*PHONE)
    image = chapter.run("const image = document.querySelector('.zoomable > img'); image.click(); return image.alt")
    state = chapter.run(STATE)
    assert state["open"] and state["name"] == image and state["width"] > 1.5 * PHONE[0]
    chapter.run("document.querySelector('dialog.zoom img').click()")
    assert not chapter.run(STATE)["open"]


def test_keyboard(chapter: Browser) -> None:
    chapter.run("document.querySelector('.zoom-button').focus()")
    chapter.driver.switch_to.active_element.send_keys(Keys.ENTER)
    assert chapter.run(STATE)["open"]
    chapter.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not chapter.run(STATE)["open"]
    assert chapter.run("return document.activeElement.className") == "zoom-button", "one is where one was"
