"""A chapter of theory is for reading: at most 15 % of the height of its page is code that nobody folded."""

from __future__ import annotations

import re

import pytest

from tools.chromium import Browser

CHAPTERS = re.compile(r"notebooks/(0[1-7]|16)_")
LARGEST_SHARE = 0.15
SHARE = """
const height = element => element.getBoundingClientRect().height;
const cells = [...document.querySelectorAll(".bd-article div.cell_input")]
  .filter(cell => !cell.closest("details:not([open])"));
return cells.reduce((sum, cell) => sum + height(cell), 0) / height(document.querySelector(".bd-article"));
"""


def test_little_of_the_page_is_code(page: Browser, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["page"]
    if not CHAPTERS.search(str(name)):
        pytest.skip("not a chapter of theory")
    share = page.run(SHARE)
    assert 0 < share <= LARGEST_SHARE, f"{share:.0%} of the height of {name} is code: fold what only checks or draws"
