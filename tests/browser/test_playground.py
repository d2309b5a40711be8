"""The playground in Chromium without any other host: by pointer, keyboard and touch, in both themes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from advdiff.viz import Playground
from tests.browser.test_accessibility import AUDIT, AXE, STANDARD
from tests.browser.test_pages import OVERFLOW
from tools.chromium import PHONE, Browser

PAGE = "notebooks/playground.html"
SWAP = "#playground:b=1&t=1&v=symmetric&a=off&d=0&p=second&g=two%20couples&e2=0-2,1-3"
PLACES = [(0.25, 0.3), (0.75, 0.3), (0.75, 0.7), (0.25, 0.7)]  # shares of the picture's width and height


class Page:
    """The playground of an open page, and hands to move it."""

    def __init__(self, browser: Browser, address: str = "") -> None:
        self.browser, self.driver = browser, browser.driver
        browser.open(PAGE + address)
        self.find(".pg-canvas").location_once_scrolled_into_view  # noqa: B018

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", f".advdiff-playground {selector}")

    def press(self, text: str, kind: str = "button") -> None:
        """Click a button, away from the bar at the top of the page."""
        found = self.driver.find_element("xpath", f"//{kind}[text()='{text}']")
        self.browser.run("arguments[0].scrollIntoView({block: 'center'})", found)
        found.click()

    def show(self, title: str) -> None:
        self.press(title, "summary")

    def write(self, key: str, value: float) -> None:
        field = self.find(f"input[type=number][data-key={key}]")
        self.browser.run("arguments[0].scrollIntoView({block: 'center'})", field)
        field.send_keys(Keys.CONTROL, "a", Keys.NULL, str(value), Keys.TAB)

    def box(self, selector: str) -> dict[str, float]:
        self.browser.run("arguments[0].scrollIntoView({block: 'center'})", self.find(selector))
        return self.browser.run("return arguments[0].getBoundingClientRect().toJSON()", self.find(selector))

    def place(self, share: tuple[float, float], selector: str = ".pg-canvas") -> tuple[float, float]:
        box = self.box(selector)
        return box["left"] + share[0] * box["width"], box["top"] + share[1] * box["height"]

    def mouse(self, kind: str, at: tuple[float, float], shift: bool = False, down: bool = True) -> None:
        event = {"type": kind, "x": at[0], "y": at[1], "button": "left", "modifiers": 8 * shift, "clickCount": 1}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", event | {"buttons": int(down)})

    def click(self, share: tuple[float, float], times: int = 1) -> None:
        at = self.place(share)
        for _ in range(times):
            self.mouse("mousePressed", at)
            self.mouse("mouseReleased", at, down=False)

    def drag(self, start: tuple[float, float], end: tuple[float, float], shift: bool = False) -> None:
        first, last = self.place(start), self.place(end)
        self.mouse("mousePressed", first, shift)
        for part in (0.3, 0.7, 1.0):
            self.mouse("mouseMoved", tuple(a + part * (b - a) for a, b in zip(first, last, strict=True)), shift)
        self.mouse("mouseReleased", last, shift, down=False)

    def touch(self, *shares: tuple[float, float]) -> None:
        """One finger from the first place over the others."""
        points = [dict(zip("xy", self.place(share), strict=True)) for share in shares]
        self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": points[:1]})
        for point in points[1:]:
            self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
        self.driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    def column(self, number: int) -> list[str]:
        """A column of the table of numbers, as it stands on the page."""
        cells = f"[...document.querySelectorAll('.pg-panel-numbers tbody td:nth-child({number + 1})')]"
        return self.browser.run(f"return {cells}.map(cell => cell.textContent)")

    def undivided(self) -> None:
        box = self.find(".pg-check input")
        self.browser.run("arguments[0].scrollIntoView({block: 'center'})", box)
        box.click()

    def value(self, key: str) -> float:
        found = self.browser.run(f"return document.querySelector('output[data-key={key}]')?.dataset.value")
        return math.nan if found is None else float(found)

    def edges(self) -> list[str]:
        return sorted(self.find("textarea").get_property("value").split())

    def wait(self, condition: Any) -> None:
        WebDriverWait(self.driver, 10).until(lambda _: condition())


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    yield Page(browser)
    browser.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def as_printed(values: Any) -> list[str]:
    return [f"{value:.4f}" for value in values.tolist()]


def library(edges: list[list[float]], **traits: Any) -> Playground:
    return Playground(graph={"points": [[0.0, 0.0]] * 4, "edges": edges}, start=[1.0, 0.0, 0.0, 0.0], **traits)


def test_graph_that_a_pointer_draws_has_the_numbers_of_the_library(page: Page) -> None:
    page.press("Empty")
    for share in PLACES:
        page.click(share)
    page.show("Numbers")
    page.show("Edges as text")
    page.wait(lambda: len(page.column(1)) == 4)
    for start, end in ((0, 1), (1, 2), (2, 3)):
        page.drag(PLACES[start], PLACES[end])
    page.drag(PLACES[3], PLACES[0], shift=True)
    page.click(PLACES[0])
    page.write("beta", 1.7)
    page.write("time", 0.8)
    page.wait(lambda: page.column(1)[0] == "1.0000")
    assert page.edges() == ["0-1", "1-2", "2-3", "3>0"]
    wanted = library([[0, 1, 0, 1], [1, 2, 0, 1], [2, 3, 0, 1], [3, 0, 1, 1]], beta=1.7, time=0.8)
    page.undivided()
    page.wait(lambda: page.column(2) == as_printed(wanted.state))
    Select(page.find(".pg-controls select")).select_by_value("row")
    wanted.normalization = "row"
    page.wait(lambda: page.column(2) == as_printed(wanted.state))

    middle = ((PLACES[1][0] + PLACES[2][0]) / 2, (PLACES[1][1] + PLACES[2][1]) / 2)
    page.click(middle, times=2)  # on the edge between 1 and 2
    page.wait(lambda: page.edges() == ["0-1", "2-3", "3>0"])
    page.click(PLACES[3], times=2)
    page.wait(lambda: len(page.column(1)) == 3 and page.edges() == ["0-1"])
    for _ in range(3):  # the node, the colour that its first click dropped, the edge
        page.press("Undo")
    page.wait(lambda: page.edges() == ["0-1", "1-2", "2-3", "3>0"])


def test_two_graphs_reproduce_the_swap_of_partners_and_the_address_keeps_it(browser: Browser) -> None:
    page = Page(browser, SWAP)
    for time in (1, 0.25, 5):
        page.write("time", time)
        page.wait(lambda time=time: abs(page.value("variation") - (1 - math.exp(-2 * time))) < 1e-9)
        assert page.value("shift") == pytest.approx(2, abs=1e-9)
        assert page.value("sharp") == pytest.approx(1 - math.exp(-2 * time), abs=1e-9)
        assert page.value("paper") == pytest.approx(2 * time * math.exp(2 * time), rel=1e-9)
    page.wait(lambda: "t=5&" in page.driver.current_url)
    address = page.driver.current_url.partition("#")[2]
    again = Page(browser, f"#{address}")
    again.wait(lambda: abs(again.value("variation") - (1 - math.exp(-10))) < 1e-9)


def test_keyboard_alone_draws_the_couples_and_swaps_them(page: Page) -> None:
    def reach(script: str) -> Any:
        for _ in range(80):
            element = page.driver.switch_to.active_element
            if page.browser.run(f"return ({script})(arguments[0])", element):
                return element
            element.send_keys(Keys.TAB)
        raise AssertionError(f"the keyboard does not reach {script}")

    def canvas(number: int) -> Any:
        return reach(f"element => element === document.querySelectorAll('.pg-canvas')[{number}]")

    def join(where: Any, pairs: str) -> None:
        for pair in pairs.split():
            where.send_keys(pair[0], "e", pair[1], Keys.ENTER)

    page.browser.run("document.querySelector('.pg-top select').focus()")
    reach("element => element.textContent === 'Empty'").send_keys(Keys.ENTER)
    first = canvas(0)
    first.send_keys("nnnn")
    join(first, "01 23")
    first.send_keys("0", Keys.ENTER)
    assert "Colour 1.00 on node 0" in page.find(".pg-spoken").text
    reach("element => element.textContent === 'A second graph'").send_keys(Keys.ENTER)
    second = canvas(1)
    join(second, "01 23 02 13")
    page.browser.run("document.querySelector('.pg-top select').focus()")
    beta = reach("element => element.matches('input[type=number][data-key=beta]')")
    beta.send_keys(Keys.CONTROL, "a", Keys.NULL, "1", Keys.TAB)
    time = reach("element => element.matches('input[type=number][data-key=time]')")
    time.send_keys(Keys.CONTROL, "a", Keys.NULL, "0.5", Keys.TAB)
    attention = reach("element => element.matches('select') && element.value === 'uniform'")
    attention.send_keys("off")
    page.wait(lambda: abs(page.value("variation") - (1 - math.exp(-1))) < 1e-9)
    assert page.value("shift") == pytest.approx(2, abs=1e-9)


def test_touch_draws_on_a_phone(page: Page) -> None:
    page.browser.resize(*PHONE)
    page.driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 1})
    page.press("Empty")
    for share in PLACES:
        page.touch(share)
    for start, end in ((0, 1), (1, 2), (2, 3)):
        page.touch(PLACES[start], ((PLACES[start][0] + PLACES[end][0]) / 2, 0.5), PLACES[end])
    page.touch(PLACES[0])
    page.show("Numbers")
    page.show("Edges as text")
    page.write("beta", 0.75)
    page.undivided()
    wanted = library([[0, 1, 0, 1], [1, 2, 0, 1], [2, 3, 0, 1]], beta=0.75, time=2.0)
    page.wait(lambda: page.column(2) == as_printed(wanted.state))
    assert page.edges() == ["0-1", "1-2", "2-3"]
    for title in ("Three solvers side by side", "A second graph"):
        page.show(title)
    assert page.browser.run(OVERFLOW) == []


def test_pasted_edges_and_what_is_none(page: Page) -> None:
    page.show("Edges as text")
    page.show("Numbers")
    page.find("textarea").clear()
    page.find("textarea").send_keys("0-1\n1>2\n0-3*2")
    page.press("Draw these")
    page.wait(lambda: len(page.column(1)) == 4)
    page.find("textarea").clear()
    page.find("textarea").send_keys("0-1\nall of them")
    page.press("Draw these")
    assert "“all of them” is not an edge" in page.find(".pg-panel-edges .pg-warning").text
    assert len(page.column(1)) == 4


def test_inverse_warns_where_it_turns_singular(page: Page) -> None:
    page.show("Three solvers side by side")
    Select(page.find(".pg-controls select")).select_by_value("row")
    page.write("beta", 1.0)
    page.write("theta", 1.5)
    page.wait(lambda: not page.find(".pg-panel-solvers .pg-warning").is_displayed())
    page.write("theta", 1.0)
    page.wait(lambda: "does not exceed θ* = 1.0000" in page.find(".pg-panel-solvers .pg-warning").text)


def test_nothing_serious_with_all_panels_open_in_both_themes(page: Page) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: `make browser` fetches it")
    for title in ("Three solvers side by side", "A second graph", "Numbers", "Edges as text"):
        page.show(title)
    page.wait(lambda: len(page.column(1)) == 34)
    page.browser.run(AXE.read_text(encoding="utf-8"))
    audit = AUDIT.replace("axe.run({", "axe.run('.advdiff-playground', {")
    page.browser.set_theme("light")
    assert page.driver.execute_async_script(audit, STANDARD) == []
    page.browser.set_theme("dark")
    assert page.driver.execute_async_script(audit, ["color-contrast"]) == []


def test_discs_of_the_landing_page_wake_up(browser: Browser) -> None:
    browser.open("book/index.html")
    WebDriverWait(browser.driver, 15).until(
        lambda _: browser.run("return !!document.querySelector('.first-picture.awake')")
    )
    picture = "return document.querySelectorAll('.live-disc')[3].toDataURL()"
    before = browser.run(picture)
    WebDriverWait(browser.driver, 10).until(lambda _: browser.run(picture) != before)
    assert browser.run("return document.querySelectorAll('.live-disc').length") == 4
