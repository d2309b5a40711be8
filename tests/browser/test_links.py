"""The built pages as files: links lead somewhere, and no page is heavy."""

from __future__ import annotations

import pytest

from tools import built_book

MEGABYTE = 1_000_000


@pytest.mark.parametrize("name", built_book.PAGES)
def test_links_and_anchors_of_the_book_resolve(name: str) -> None:
    assert built_book.broken_links(built_book.HTML / name) == []


@pytest.mark.parametrize("name", built_book.PAGES)
def test_page_is_light(name: str) -> None:
    assert built_book.weight(built_book.HTML / name) < 3 * MEGABYTE


def test_book_opens_at_its_landing_page() -> None:
    redirect = built_book.REDIRECT.match((built_book.HTML / "index.html").read_text(encoding="utf-8"))
    assert redirect is None or (built_book.HTML / redirect[1]).is_file()
