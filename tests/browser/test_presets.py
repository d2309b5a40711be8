"""The playgrounds inside chapters 1 to 6: each tells the library's number, follows the hand, and prints."""

from __future__ import annotations

import math
from typing import Any

import pytest
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from advdiff import viz
from tests.browser.test_playground import Page
from tools.book_pdf import print_pages
from tools.chromium import PHONE, Browser

PRESETS = {
    "notebooks/01_diffusion_on_graphs.html": ["layers"],
    "notebooks/02_advective_diffusion.html": ["growth", "factions"],
    "notebooks/03_computing_the_exponential.html": ["three solvers"],
    "notebooks/04_topological_shift.html": ["cut an edge"],
    "notebooks/05_perturbation_bounds.html": ["swap of partners", "homophily"],
    "notebooks/06_generalization_gap.html": ["cut node 3 off"],
}
# What each playground of a page tells, how it is captioned, how high it is, and how many colours its picture has.
LOOK = """
return [...document.querySelectorAll(".advdiff-playground")].map(root => {
  const canvas = root.querySelector(".pg-canvas");
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const numbers = [...root.querySelectorAll(".pg-told")];
  return {
    told: Object.fromEntries(numbers.map(number => [number.dataset.told, Number(number.dataset.value)])),
    caption: root.querySelector(".pg-caption").innerText,
    height: root.getBoundingClientRect().height,
    colours: new Set(new Uint32Array(data.buffer)).size,
    hidden: [...root.querySelectorAll(".pg-top, .pg-hint")].every(part => !part.checkVisibility()),
  };
});
"""


class Chapter(Page):
    """The first playground of a chapter; :meth:`told` reads the number above its caption."""

    def __init__(self, browser: Browser, page: str) -> None:
        self.browser, self.driver = browser, browser.driver
        browser.open(page)

    def told(self, key: str) -> float:
        found = self.browser.run(f"return document.querySelector('.pg-told[data-told={key}]')?.dataset.value")
        return math.nan if found is None else float(found)


@pytest.mark.parametrize("page", PRESETS)
def test_presets_tell_the_numbers_of_the_library(browser: Browser, page: str) -> None:
    browser.open(page)
    found = browser.run(LOOK)
    assert len(found) == len(PRESETS[page])
    for look, name in zip(found, PRESETS[page], strict=True):
        wanted = viz.playground(preset=name)
        assert look["told"] == pytest.approx(wanted.numbers, rel=1e-9, abs=1e-9)
        assert len(look["caption"]) > 60 and "^" not in look["caption"]
        assert look["height"] < 1100, "no more than a screen and a bit"
        assert look["colours"] > 10, "an empty picture"
        assert look["hidden"], "a chapter shows the controls of its preset alone"
    browser.resize(*PHONE)
    WebDriverWait(browser.driver, 5).until(
        lambda _: browser.run("return document.documentElement.scrollWidth <= window.innerWidth")
    )


def test_layers_at_half_the_step_agree_with_the_flow(browser: Browser) -> None:
    page = Chapter(browser, "notebooks/01_diffusion_on_graphs.html")
    for layers in (20, 9):
        page.write("layers", layers)
        wanted = viz.playground(preset="layers", layers=layers).numbers["steps"]
        page.wait(lambda wanted=wanted: page.told("steps") == pytest.approx(wanted, rel=1e-9))


def test_leftmost_eigenvalue_follows_beta_by_keyboard(browser: Browser) -> None:
    page = Chapter(browser, "notebooks/02_advective_diffusion.html")
    slider = page.find("input[type=range][data-key=beta]")
    page.browser.run("arguments[0].focus()", slider)
    for _ in range(25):
        slider.send_keys(Keys.ARROW_RIGHT)
    page.wait(lambda: page.told("leftmost") == pytest.approx(-0.75, abs=1e-9))
    Select(page.find(".pg-controls select")).select_by_value("symmetric")
    wanted = viz.playground(preset="growth", beta=0.75, normalization="symmetric").numbers["leftmost"]
    assert wanted > -0.74
    page.wait(lambda: page.told("leftmost") == pytest.approx(wanted, rel=1e-9))
    assert browser.run("return location.hash") == "", "of several playgrounds on a page none owns its address"


def test_friends_join_again_where_a_pointer_drags(browser: Browser) -> None:
    page = Chapter(browser, "notebooks/04_topological_shift.html")
    second = ".pg-panel-second .pg-canvas"
    box, points = page.box(second), viz.playground(preset="cut an edge").graph["points"]
    unit = box["height"] / 2.2

    def place(node: int) -> tuple[float, float]:
        x, y = points[node]
        return box["left"] + box["width"] / 2 + x * unit, box["top"] + box["height"] / 2 - y * unit

    def drag(u: int, v: int) -> None:
        start, end = place(u), place(v)
        page.mouse("mousePressed", start)
        for part in (0.4, 1.0):
            page.mouse("mouseMoved", tuple(a + part * (b - a) for a, b in zip(start, end, strict=True)))
        page.mouse("mouseReleased", end, down=False)

    drag(0, 31)
    page.wait(lambda: page.told("shift") == 0)
    drag(24, 27)
    edges = [edge for edge in viz.Playground().graph["edges"] if edge[:2] != [24, 27]]
    wanted = viz.playground(preset="cut an edge", second=edges).numbers["shift"]
    page.wait(lambda: page.told("shift") == pytest.approx(wanted, rel=1e-9))


def test_all_controls_come_and_go(browser: Browser) -> None:
    page = Chapter(browser, "notebooks/06_generalization_gap.html")
    shown = "return document.querySelector('.pg-top').checkVisibility()"
    for text, wanted in (("All controls", True), ("Fewer controls", False)):
        page.press(text)
        page.wait(lambda wanted=wanted: browser.run(shown) == wanted)


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("notebooks/playground.html", ["β = 0.5, T = 2, V = Ã, attention uniform", "Over time", "Zachary"]),
        (
            "notebooks/05_perturbation_bounds.html",
            ["β = 1, T = 1, V = Ã, attention off", "shift x 2.0000 · variation 0.8647"],
        ),
    ],
)
def test_print_is_a_still_picture_with_its_numbers(browser: Browser, page: str, words: list[str]) -> None:
    pdf: Any = print_pages(browser, [page])[page].pdf
    sheets = [(sheet, " ".join(sheet.extract_text().split())) for sheet in pdf.pages]
    text = " ".join(words_of for _, words_of in sheets)
    assert [word for word in words if word not in text] == []
    assert [word for word in ("All controls", "A click drops", "draw arrows instead") if word in text] == [], (
        "a control"
    )
    assert any(sheet.images for sheet, words_of in sheets if words[0] in words_of), "the picture"
