"""How a chapter reads cannot get worse: each measure of tools/reading_measures.py has its limit."""

from __future__ import annotations

import pytest

from tools.book_numbers import chapter_of
from tools.chromium import Browser
from tools.reading_measures import measure

# For every chapter: the largest value that was measured, or the aim where all chapters reach it. Only ever lower these.
AT_MOST = {"code": 0.12, "long": 0, "tables": 10, "cut_laptop": 0, "cut_phone": 4, "megabytes": 3.0}
AT_LEAST = {"letters": 10.0, "pixels": 0.98}


def test_the_chapter_reads_no_worse(page: Browser, request: pytest.FixtureRequest) -> None:
    name = str(request.node.callspec.params["page"])
    if not chapter_of(name):
        pytest.skip("not a chapter")
    found = measure(page, name)._asdict()
    assert found["code"] > 0, "no code was seen"
    worse = {key: found[key] for key, limit in AT_MOST.items() if found[key] > limit}
    worse |= {key: found[key] for key, limit in AT_LEAST.items() if found[key] is not None and found[key] < limit}
    assert worse == {}, f"beyond { ({key: (AT_MOST | AT_LEAST)[key] for key in worse}) }"
