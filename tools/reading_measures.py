"""Measure how a chapter reads: code in its height, long visible cells, tables in typewriter type, cut outputs.

    python -m tools.reading_measures                  every chapter of _build/html
    python -m tools.reading_measures --site FOLDER    those of another build

An output is cut where it is wider than its place, so that a reader has to scroll sideways, on a laptop or a phone. A
printed table is an output in typewriter type of three lines or more whose columns are set by spaces.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from tools import built_book, chromium

LAPTOP = (1366, 768)
LONGEST_CELL = 40  # lines

MEASURE = """
const article = document.querySelector(".bd-article");
const seen = [...article.querySelectorAll("div.cell_input")].filter(cell => !cell.closest("details:not([open])"));
const height = element => element.getBoundingClientRect().height;
const lines = cell => cell.innerText.trimEnd().split("\\n").length;
const printed = [...article.querySelectorAll("div.cell_output pre")].map(pre => pre.innerText.trimEnd().split("\\n"));
const columns = line => /\\S {2,}\\S.* {2,}\\S/.test(line);
return {
  code: seen.reduce((sum, cell) => sum + height(cell), 0) / height(article),
  long: seen.filter(cell => lines(cell) > arguments[0]).length,
  tables: printed.filter(text => text.filter(columns).length >= 3).length,
};
"""
CUT = """
const places = document.querySelectorAll(".bd-article div.cell_output pre, .bd-article div.cell_output .table-wrapper, "
  + ".bd-article div.cell_output table");
return [...places].filter(place => {
  const box = place.tagName === "TABLE" ? place.parentElement : place;
  return place.offsetParent !== null && place.scrollWidth > box.clientWidth + 1;
}).length;
"""


class Reading(NamedTuple):
    """What a reader meets on one page."""

    page: str
    code: float  # visible code, as a share of the height
    long: int  # visible cells over 40 lines
    tables: int  # tables in typewriter type
    cut_laptop: int
    cut_phone: int


def measure(browser: chromium.Browser, page: str) -> Reading:
    """Open a page and measure it at the width of a laptop and of a phone."""
    browser.open(page)
    browser.resize(*LAPTOP)
    found = browser.run(MEASURE, LONGEST_CELL)
    cut = browser.run(CUT)
    browser.resize(*chromium.PHONE)
    return Reading(page, found["code"], found["long"], found["tables"], cut, browser.run(CUT))


def main() -> None:
    parser = argparse.ArgumentParser(description="How the chapters of the built book read.")
    parser.add_argument("--site", type=Path, default=built_book.HTML, help="folder of the built book")
    site = parser.parse_args().site
    pages = sorted(str(path.relative_to(site)) for path in site.glob("notebooks/[0-9]*.html"))
    if not pages:
        parser.exit(1, "There is no built book: run `make book` first.\n")
    print("  code  long cells  printed tables  cut: laptop  phone")
    with built_book.serve(site) as address, chromium.start(address) as browser:
        rows = [measure(browser, page) for page in pages]
    for row in rows:
        print(f"{row.code:6.1%} {row.long:11d} {row.tables:15d} {row.cut_laptop:12d} {row.cut_phone:6d}  {row.page}")
    shares = [row.code for row in rows]
    print(
        f"{len(rows)} chapters: code {sum(shares) / len(rows):.1%} in the mean, {max(shares):.1%} at most; "
        f"{sum(row.long for row in rows)} long cells, {sum(row.tables for row in rows)} printed tables, "
        f"{sum(row.cut_laptop for row in rows)} and {sum(row.cut_phone for row in rows)} cut outputs"
    )


if __name__ == "__main__":
    main()
