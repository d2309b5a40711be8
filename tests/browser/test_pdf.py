"""Three short pages as one PDF: sheets, bookmarks, text, and links that stay within the file."""

from __future__ import annotations

import io
from typing import Any

import pytest
import yaml
from pypdf import PdfReader

from tools import built_book
from tools.book_pdf import Entry, Sheets, bind, contents, print_pages
from tools.chromium import Browser

PART, CITE, BIBLIOGRAPHY = PAGES = ["book/part1.html", "book/how_to_cite.html", "book/bibliography.html"]
TITLES = ["About Part I", "How to cite", "Bibliography"]
LINES = [Entry(0, PART), Entry(0, "", "Reference"), Entry(1, CITE), Entry(1, BIBLIOGRAPHY)]


@pytest.fixture(scope="module")
def printed(browser: Browser) -> dict[str, Sheets]:
    return print_pages(browser, PAGES)


@pytest.fixture(scope="module")
def pdf(browser: Browser, printed: dict[str, Sheets]) -> PdfReader:
    stream = io.BytesIO()
    bind(printed, LINES, browser.site, {"title": "Three pages", "author": "Somebody"}).write(stream)
    return PdfReader(stream)


@pytest.fixture(scope="module")
def texts(pdf: PdfReader) -> list[str]:
    return [sheet.extract_text() for sheet in pdf.pages]


@pytest.fixture(scope="module")
def first(printed: dict[str, Sheets]) -> dict[str, int]:
    """The number of the sheet on which each page begins."""
    lengths = [len(printed[page].pdf.pages) for page in PAGES]
    return {page: sum(lengths[:k]) for k, page in enumerate(PAGES)}


def links(pdf: PdfReader, page: int) -> list[Any]:
    return [link.get_object() for link in pdf.pages[page].annotations or []]


def targets(pdf: PdfReader, page: int) -> list[tuple[int | None, float | None]]:
    """The sheets, and the heights on them, to which the links of a sheet lead."""
    places = [link["/Dest"] for link in links(pdf, page) if "/Dest" in link]
    return [(pdf.get_page_number(place[0].get_object()), place[3]) for place in places]


def test_sheets_are_a4_with_title_and_running_number(
    pdf: PdfReader, printed: dict[str, Sheets], texts: list[str], first: dict[str, int]
) -> None:
    assert len(pdf.pages) == sum(len(sheets.pdf.pages) for sheets in printed.values()) > len(PAGES)
    for number, (sheet, text) in enumerate(zip(pdf.pages, texts, strict=True)):
        assert (sheet.mediabox.width, sheet.mediabox.height) == pytest.approx((595, 842), abs=1)  # in points
        title = next(title for page, title in reversed([*zip(PAGES, TITLES, strict=True)]) if first[page] <= number)
        assert f"{number + 1}{title}" in text.replace("\n", ""), "the footer"
    for page, title in zip(PAGES, TITLES, strict=True):
        assert texts[first[page]].count(title) >= 2, "the heading, besides the footer"


def test_title_author_and_bookmarks(pdf: PdfReader, texts: list[str], first: dict[str, int]) -> None:
    assert pdf.metadata is not None
    assert (pdf.metadata.title, pdf.metadata.author) == ("Three pages", "Somebody")
    part, sections, caption, (cite, _, bibliography) = pdf.outline
    found = [(mark.title, pdf.get_destination_page_number(mark)) for mark in (part, caption, cite, bibliography)]
    starts = [first[PART], first[CITE], first[CITE], first[BIBLIOGRAPHY]]
    assert found == list(zip([TITLES[0], "Reference", *TITLES[1:]], starts, strict=True))
    assert sections[0].title == "The running example"
    for section in sections:
        assert section.title in texts[pdf.get_destination_page_number(section)]


def test_no_link_leads_to_the_server(pdf: PdfReader) -> None:
    addresses = [link["/A"]["/URI"] for page in range(len(pdf.pages)) for link in links(pdf, page) if "/A" in link]
    assert any(address.startswith("https://") for address in addresses)
    assert [address for address in addresses if "127.0.0.1" in address] == []


def test_links_from_page_to_page_lead_to_their_place(pdf: PdfReader, texts: list[str], first: dict[str, int]) -> None:
    cited = [sheet for page in range(first[CITE], first[BIBLIOGRAPHY]) for sheet, _ in targets(pdf, page)]
    assert cited and set(cited) == {first[BIBLIOGRAPHY]}
    ((sheet, top),) = targets(pdf, first[PART])  # to Zachary's paper; the chapters are not in this file
    assert sheet is not None and sheet > first[BIBLIOGRAPHY]
    assert "Zachary" in texts[sheet] and top is not None and 0 < top < 842


def test_contents_are_those_of_the_book() -> None:
    lines = contents(yaml.safe_load((built_book.ROOT / "_toc.yml").read_text(encoding="utf-8")))
    pages = [line.page for line in lines if line.page]
    assert sorted(pages) == [page for page in built_book.PAGES if "/" in page], (
        "pages at the root are indices and the search"
    )
    assert lines[0] == Entry(0, "book/index.html")
    assert lines[1].caption and not lines[1].page and lines[2].level == 1
