"""Print the built book into one PDF, with the headless Chromium that tests the pages.

    python -m tools.book_pdf    # _build/html → _build/advdiff.pdf

Every page of the table of contents is printed by itself, with the style for paper and page numbers that go on from the
page before. The parts are then joined: bookmarks for parts, chapters and sections, and links from page to page that
stay within the file.
"""

from __future__ import annotations

import base64
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

import yaml
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, Fit, NameObject, NullObject

from tools import built_book, chromium

PDF = built_book.HTML.with_name("advdiff.pdf")
# A4 in inches; the margins are those of the style sheet. Tags would be lost when the parts are joined.
PRINT = {"paperWidth": 210 / 25.4, "paperHeight": 297 / 25.4, "printBackground": True, "generateTaggedPDF": False}

# Chromium keeps the place of an anchor only if its page has a link to it, seen or not.
PREPARE = r"""
const [before] = arguments, article = document.querySelector("article");
const links = document.createElement("div");
links.hidden = true;
for (const target of article.querySelectorAll("[id]:not(svg *)")) {
  const link = document.createElement("a");
  link.href = "#" + encodeURIComponent(target.id);
  links.append(link);
}
document.body.append(links);
const words = heading => {
  const copy = heading.cloneNode(true);
  for (const mark of copy.querySelectorAll(".headerlink")) mark.remove();
  return copy.textContent.trim().replace(/\s+/g, " ");
};
const title = words(article.querySelector("h1"));
const root = document.documentElement.style;
root.counterReset = `page ${before}`;
root.setProperty("--book-running-title", JSON.stringify(title));
const sections = [...article.querySelectorAll("section > h2")].filter(heading => heading.checkVisibility());
return [title, sections.map(heading => [words(heading), heading.parentElement.id])];
"""


class Entry(NamedTuple):
    """A line of the table of contents: a page of the built book or, without a page, the caption of a part."""

    level: int
    page: str
    caption: str = ""


class Sheets(NamedTuple):
    """A page of the book on paper: its title, its sections with their anchors, and what Chromium printed."""

    title: str
    sections: list[tuple[str, str]]
    pdf: PdfReader


class Place(NamedTuple):
    """A sheet of the whole document, and a height on it (None: its head)."""

    sheet: int
    top: float | None = None

    def fit(self) -> Fit:
        return Fit.xyz(left=None, top=self.top, zoom=None)


Places = dict[tuple[str, str], Place]  # by page and anchor


def contents(toc: dict[str, Any]) -> list[Entry]:
    """The lines of a table of contents (_toc.yml) in the order of reading."""

    def walk(items: Sequence[dict[str, Any]], level: int) -> Iterator[Entry]:
        for item in items:
            yield Entry(level, f"{item['file']}.html")
            yield from walk(item.get("sections", []), level + 1)

    lines = [Entry(0, f"{toc['root']}.html")]
    for part in toc["parts"]:
        lines += [Entry(0, "", part["caption"]), *walk(part["chapters"], 1)]
    return lines


def print_pages(browser: chromium.Browser, pages: Sequence[str]) -> dict[str, Sheets]:
    """Print pages of the book one after the other, and say where each begins."""
    printed: dict[str, Sheets] = {}
    before = 0
    for page in pages:
        browser.open(page)
        browser.set_theme("light")
        title, sections = browser.run(PREPARE, before)
        answer = browser.driver.execute_cdp_cmd("Page.printToPDF", PRINT)
        printed[page] = Sheets(title, sections, PdfReader(io.BytesIO(base64.b64decode(answer["data"]))))
        print(f"{before + 1:5d}  {title}", flush=True)
        before += len(printed[page].pdf.pages)
    return printed


def find_places(printed: dict[str, Sheets]) -> Places:
    places: Places = {}
    first = 0
    for page, (_, _, pdf) in printed.items():
        places[page, ""] = Place(first)
        for name, mark in pdf.named_destinations.items():
            number = pdf.get_destination_page_number(mark)
            if number is not None and mark.top is not None:
                places[page, unquote(name.removeprefix("/"))] = Place(first + number, float(mark.top))
        first += len(pdf.pages)
    return places


def target_of(link: DictionaryObject, source: str, server: str) -> tuple[str, str] | None:
    """The page and the anchor to which a link of the page `source` leads; None for a link out of the book."""
    if "/Dest" in link:
        return source, unquote(str(link["/Dest"]).removeprefix("/"))
    address = str(cast(DictionaryObject, link["/A"])["/URI"])
    if not address.startswith(f"{server}/"):
        return None
    page, _, anchor = address.removeprefix(f"{server}/").partition("#")
    return page, unquote(anchor)


def join(printed: dict[str, Sheets], places: Places, server: str) -> PdfWriter:
    """All sheets; links within the book lead to their place, those to what is not printed become plain text."""
    writer = PdfWriter()
    sheets = [(page, writer.add_page(sheet)) for page, (_, _, pdf) in printed.items() for sheet in pdf.pages]
    for source, sheet in sheets:
        kept = ArrayObject()
        for reference in sheet.annotations or ArrayObject():
            link = reference.get_object()
            if target := target_of(link, source, server):
                place = places.get(target, places.get((target[0], "")))
                if place is None:
                    continue
                link.pop("/A", None)
                to = sheets[place.sheet][1].indirect_reference or NullObject()
                link[NameObject("/Dest")] = ArrayObject([to, NameObject("/XYZ"), *place.fit().fit_args])
            kept.append(reference)
        sheet.annotations = kept
    return writer


def add_outline(writer: PdfWriter, lines: Sequence[Entry], printed: dict[str, Sheets], places: Places) -> None:
    """Bookmarks for parts, pages and sections; a part opens where the first of its pages does."""
    parents: list[Any] = [None]
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        del parents[line.level + 1 :]
        page = line.page or (following.page if following else "")
        start, title = places[page, ""], line.caption or printed[page].title
        mark = writer.add_outline_item(title, start.sheet, parents[-1], fit=start.fit(), is_open=not line.page)
        parents.append(mark)
        for heading, anchor in printed[page].sections if line.page else []:
            place = places.get((page, anchor), start)
            writer.add_outline_item(heading, place.sheet, mark, fit=place.fit())


def bind(printed: dict[str, Sheets], lines: Sequence[Entry], server: str, about: dict[str, str]) -> PdfWriter:
    """One document from printed pages: links, bookmarks, title and author."""
    places = find_places(printed)
    writer = join(printed, places, server)
    add_outline(writer, lines, printed, places)
    writer.add_metadata({"/Title": about["title"], "/Author": about["author"]})
    writer.page_mode = "/UseOutlines"
    writer.compress_identical_objects()
    return writer


def main(target: Path = PDF) -> None:
    if not built_book.PAGES:
        sys.exit("There is no built book: run `make book` first.")
    if chromium.find_browser() is None:
        sys.exit("The PDF is printed by Chromium: install the packages chromium and chromium-driver.")
    lines = contents(yaml.safe_load((built_book.ROOT / "_toc.yml").read_text(encoding="utf-8")))
    about = yaml.safe_load((built_book.ROOT / "_config.yml").read_text(encoding="utf-8"))
    with built_book.serve() as server, chromium.start(server) as browser:
        printed = print_pages(browser, [line.page for line in lines if line.page])
    writer = bind(printed, lines, server, about)
    temporary = target.with_name(f".{target.name}")
    writer.write(temporary)
    os.replace(temporary, target)
    print(f"\n{target.relative_to(built_book.ROOT)}: {len(writer.pages)} pages, {target.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
