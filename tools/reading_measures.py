"""Measure how a chapter reads: code in its height, long visible cells, tables in typewriter type, cut outputs, figures.

    python -m tools.reading_measures                  every chapter of _build/html
    python -m tools.reading_measures --site FOLDER    those of another build

An output is cut where it is wider than its place, so that a reader has to scroll sideways, on a laptop or a phone. A
printed table is an output in typewriter type of three lines or more whose columns are set by spaces.

The smallest text of the figures is that of the drawings (SVG), in pixels on the screen of a laptop. The letters of a
picture (PNG) cannot be told from its lines, so of pictures the resolution is measured: the fewest pixels of a file for
one pixel shown. The weight is that of the page and its pictures.
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
const shown = element => element.checkVisibility() && element.getBoundingClientRect().width > 0;
const letters = [...article.querySelectorAll("div.cell_output svg text, .inline-svg svg text")].filter(shown)
  .map(text => parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().d);
const pixels = [...article.querySelectorAll("figure img, div.cell_output img")].filter(shown)
  .map(image => image.naturalWidth / image.getBoundingClientRect().width);
return {
  code: seen.reduce((sum, cell) => sum + height(cell), 0) / height(article),
  long: seen.filter(cell => lines(cell) > arguments[0]).length,
  tables: printed.filter(text => text.filter(columns).length >= 3).length,
  letters: Math.min(...letters),
  pixels: Math.min(...pixels),
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
    letters: float | None  # pixels, the smallest in a drawing; None without one
    pixels: float | None  # of a file for one that is shown, the fewest; None without a picture
    megabytes: float


def measure(browser: chromium.Browser, page: str, site: Path = built_book.HTML) -> Reading:
    """Measure the open page at the width of a laptop and of a phone."""
    browser.resize(*LAPTOP)
    found = browser.run(MEASURE, LONGEST_CELL)
    cut = browser.run(CUT)
    browser.resize(*chromium.PHONE)
    cut_phone = browser.run(CUT)
    browser.resize(*chromium.DESKTOP)
    weight = built_book.weight(site / page) / 1e6
    figures = (found["letters"], found["pixels"], weight)  # JSON has no infinity: None where there is nothing
    return Reading(page, found["code"], found["long"], found["tables"], cut, cut_phone, *figures)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description="How the chapters of the built book read.")
    parser.add_argument("--site", type=Path, default=built_book.HTML, help="folder of the built book")
    site = parser.parse_args().site
    pages = sorted(str(path.relative_to(site)) for path in site.glob("notebooks/[0-9]*.html"))
    if not pages:
        parser.exit(1, "There is no built book: run `make book` first.\n")
    rows = []
    print("  code  long cells  printed tables  cut: laptop  phone  letters  pixels     MB")
    with built_book.serve(site) as address, chromium.start(address) as browser:
        for page in pages:
            browser.open(page)
            rows.append(measure(browser, page, site))
    for row in rows:
        print(
            f"{row.code:6.1%} {row.long:11d} {row.tables:15d} {row.cut_laptop:12d} {row.cut_phone:6d} "
            f"{_number(row.letters):>8} {_number(row.pixels):>7} {row.megabytes:6.2f}  {row.page}"
        )
    shares, drawn = [row.code for row in rows], [row.letters for row in rows if row.letters is not None]
    pictures = [row.pixels for row in rows if row.pixels is not None]
    print(
        f"{len(rows)} chapters: code {sum(shares) / len(rows):.1%} in the mean, {max(shares):.1%} at most; "
        f"{sum(row.long for row in rows)} long cells, {sum(row.tables for row in rows)} printed tables, "
        f"{sum(row.cut_laptop for row in rows)} and {sum(row.cut_phone for row in rows)} cut outputs; "
        f"smallest text of a drawing {_number(min(drawn, default=None))} px, coarsest picture "
        f"{_number(min(pictures, default=None))} pixels for one, heaviest page {max(r.megabytes for r in rows):.2f} MB"
    )


if __name__ == "__main__":
    main()
