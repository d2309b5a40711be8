"""Every page in Chromium without any other host: quiet, complete, alive, and no wider than a phone."""

from __future__ import annotations

from selenium.webdriver.common.keys import Keys

from tools.chromium import PHONE, Browser

FORMULAS = """
const untypeset = [...document.querySelectorAll("span.math, div.math")]
  .filter(formula => !formula.querySelector("mjx-container"));
const errors = [...document.querySelectorAll("mjx-merror, [data-mjx-error], [data-mml-node=merror]")];
return [...untypeset, ...errors].map(formula => formula.dataset.mjxError || formula.textContent.slice(0, 80));
"""

# Text outside code with what looks like TeX: the marks of a formula, a command, an index in braces.
RAW_TEX = r"""
const skipped = "pre, code, script, style, noscript, textarea, title, mjx-container, .highlight, .sig";
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
while (walker.nextNode()) {
  const text = walker.currentNode.textContent;
  if (/\\[([]|\$\$|\\[a-zA-Z]{2,}|[_^]\{/.test(text) && !walker.currentNode.parentElement.closest(skipped))
    found.push(text.trim().slice(0, 80));
}
return found;
"""

# The name of an image: never that of its file, nor only where the sliders of a moving figure stand.
IMAGES = """
const name = image => image.alt || image.title || image.ariaLabel || image.closest("[role=img]")?.ariaLabel || "";
const isFile = /\\.(png|svg|jpe?g|gif|webp)$/;
const isNamed = image => name(image).trim() && !isFile.test(name(image)) && !name(image).startsWith("Figure, at ");
return {
  broken: [...document.images].filter(image => !image.naturalWidth).map(image => image.src),
  nameless: [...document.images].filter(image => !isNamed(image)).map(image => image.src),
};
"""

OVERFLOW = """
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth <= width && document.body.scrollWidth <= width) return [];
const scrolls = element => element && element !== document.body &&
  (getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
return [...document.body.querySelectorAll("*")]
  .filter(element => element.getBoundingClientRect().right > width + 1 && !scrolls(element.parentElement))
  .map(element => `${element.tagName}.${element.className}: ${element.textContent.trim().slice(0, 60)}`);
"""

CONTROLS = "[role=slider], input[type=range], select"
FIGURES = """
return [...document.querySelectorAll(".cell_output")].filter(output => output.querySelector(arguments[0]));
"""
# Those of a folded panel cannot be moved.
SHOWN_CONTROLS = """
return [...arguments[0].querySelectorAll(arguments[1])].filter(control => control.checkVisibility());
"""
# What a figure shows, its controls and their read-outs left out.
SHOWN = """
const visible = element => element.getClientRects().length > 0;
const control = ".widget-slider, .widget-dropdown, .widget-play, .anim-controls, select, input";
const parts = [...arguments[0].querySelectorAll("img, canvas, svg, .widget-html-content, .widget-label")];
return parts.filter(part => visible(part) && !part.closest(control))
  .map(part => part.src || part.toDataURL?.() || part.outerHTML).join();
"""


def answers(page: Browser, figure: object, control: object) -> bool:
    """Whether a figure shows something else when the control moves, one way or the other."""
    before = page.run(SHOWN, figure)
    for key in [Keys.ARROW_RIGHT] * 3 + [Keys.ARROW_LEFT] * 6:
        control.send_keys(key)  # type: ignore[attr-defined]
        if page.run(SHOWN, figure) != before:
            return True
    return False


def test_nothing_in_the_console(page: Browser) -> None:
    assert page.console == []


def test_no_request_leaves_this_machine(page: Browser) -> None:
    assert page.requests(), "the log of requests is empty"
    assert [address for address in page.requests() if not address.startswith(f"{page.site}/")] == []


def test_no_request_fails(page: Browser) -> None:
    assert page.failures() == []


def test_formulas_are_typeset(page: Browser) -> None:
    assert page.run(FORMULAS) == []
    assert page.run(RAW_TEX) == []


def test_claims_are_typeset_and_the_type_of_the_book_is_there(page: Browser) -> None:
    cells = "[...document.querySelectorAll('table.claims td')].map(cell => cell.textContent)"
    assert page.run(f"return {cells}.filter(text => /\\^|(^|[^\\w])[A-Za-z]_[A-Za-z0-9]/.test(text))") == []
    faces = page.run("return [...document.fonts].filter(face => face.family.includes('Book')).map(face => face.status)")
    assert "loaded" in faces and "error" not in faces


def test_bookkeeping_is_folded_under_a_line_that_says_what_it_is(page: Browser) -> None:
    code = "[...document.querySelectorAll('.cell_input pre')]"
    shown = f"{code}.filter(pre => pre.checkVisibility() && pre.textContent.includes('ledger.record('))"
    assert page.run(f"return {shown}.length") == 0
    lines = page.run("return [...document.querySelectorAll('.cell summary')].map(summary => summary.innerText.trim())")
    assert [line for line in lines if not line or "code cell" in line] == []


def test_images_are_there_and_described(page: Browser) -> None:
    assert page.run(IMAGES) == {"broken": [], "nameless": []}


def test_interactive_figures_answer(page: Browser) -> None:
    views = page.run("return document.querySelectorAll('[type=\"application/vnd.jupyter.widget-view+json\"]').length")
    figures = page.run(FIGURES, CONTROLS)
    assert len(figures) >= views, "a widget is not drawn, or has no control"
    for number, figure in enumerate(figures):
        for control in page.run(SHOWN_CONTROLS, figure, CONTROLS):
            label = page.run("return arguments[0].parentElement.closest('.jupyter-widgets')?.innerText", control)
            assert answers(page, figure, control), f"figure {number + 1}: nothing follows the control {label!r}"


def test_page_fits_a_phone(page: Browser) -> None:
    page.resize(*PHONE)
    assert page.run(OVERFLOW) == []
