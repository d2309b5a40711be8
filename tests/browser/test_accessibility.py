"""axe-core on the landing page and three chapters, in both themes: nothing serious or critical, contrast included."""

from __future__ import annotations

import pytest

from tools import built_book
from tools.chromium import Browser

AXE = built_book.ROOT / "_build" / "test_assets" / "axe.min.js"
PAGES = [
    "book/index.html",
    "notebooks/playground.html",
    "notebooks/02_advective_diffusion.html",
    "notebooks/05_perturbation_bounds.html",
    "notebooks/09_tuning_and_ablations.html",
]
# An audit takes time for every element. Formulas, which MathJax makes accessible by itself, become words, and of the
# tokens of code one of a kind is kept.
LIGHTEN = """
for (const formula of document.querySelectorAll("mjx-container")) formula.replaceWith("formula");
const seen = new Set();
for (const token of document.querySelectorAll(".highlight pre span"))
  if (seen.has(token.className)) token.replaceWith(...token.childNodes); else seen.add(token.className);
document.normalize();
"""
AUDIT = """
const done = arguments[arguments.length - 1];
axe.run({runOnly: arguments[0], resultTypes: ["violations"], elementRef: false}).then(
  result => done(result.violations.filter(({impact}) => ["serious", "critical"].includes(impact)).map(
    ({id, help, nodes}) => `${id}: ${help}: ${nodes.map(node => node.target).slice(0, 4).join(" | ")}`)),
  error => done([String(error)]));
"""


STANDARD = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


@pytest.mark.parametrize("name", [name for name in PAGES if name in built_book.PAGES])
def test_no_serious_violation(browser: Browser, name: str) -> None:
    if not AXE.is_file():
        pytest.skip("axe-core is not there: `make browser` fetches it")
    browser.open(name)
    browser.run(LIGHTEN)
    browser.run(AXE.read_text(encoding="utf-8"))
    browser.set_theme("light")
    assert browser.driver.execute_async_script(AUDIT, STANDARD) == []
    browser.set_theme("dark")  # the same elements in other colours
    assert browser.driver.execute_async_script(AUDIT, ["color-contrast"]) == []
