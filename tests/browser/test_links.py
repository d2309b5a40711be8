"""The built pages as files: links lead somewhere, and no page is heavy."""

from __future__ import annotations

import pytest

from tests.browser import site

MEGABYTE = 1_000_000


@pytest.mark.parametrize("name", site.PAGES)
def test_links_and_anchors_of_the_book_resolve(name: str) -> None:
    assert site.broken_links(site.HTML / name) == []


@pytest.mark.parametrize("name", site.PAGES)
def test_page_is_light(name: str) -> None:
    assert site.weight(site.HTML / name) < 3 * MEGABYTE


def test_book_opens_at_its_landing_page() -> None:
    redirect = site.REDIRECT.match((site.HTML / "index.html").read_text(encoding="utf-8"))
    assert redirect is None or (site.HTML / redirect[1]).is_file()
