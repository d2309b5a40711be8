"""One server and one browser for all pages; a test that names ``page`` runs on every page of the built book."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tools import built_book, chromium


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == built_book.ROOT / "tests" / "browser":
            item.add_marker(pytest.mark.slow)
            if not built_book.PAGES:
                item.add_marker(pytest.mark.skip(reason="the book is not built: `make book`"))


@pytest.fixture(scope="session")
def browser() -> Iterator[chromium.Browser]:
    if chromium.find_browser() is None:
        pytest.skip("no Chromium: install the packages chromium and chromium-driver")
    with built_book.serve() as address, chromium.start(address) as session:
        yield session


@pytest.fixture(scope="session", params=built_book.PAGES)
def page(request: pytest.FixtureRequest, browser: chromium.Browser) -> chromium.Browser:
    """The browser with this page open; pytest takes the tests page by page."""
    browser.open(request.param)
    return browser
