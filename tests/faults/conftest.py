"""Counts what was tried and what survived, for the table that ``make faults`` prints and the README shows.

A test is one try. One that makes many says how many with the fixture ``tried``; it fails at the first that does not
survive, so that a row whose tests all pass has survived everything.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

COUNTS = Path("_build/faults.json")
#: Test → how much it tried, and how much of this survived.
_counts: dict[str, list[int]] = {}


@pytest.fixture
def tried(record_property: Callable[[str, object], None]) -> Callable[[int], None]:
    return lambda count: record_property("tried", count)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when != "call" or "tests/faults/" not in report.nodeid or report.skipped:
        return
    count = dict(report.user_properties).get("tried", 1)
    _counts[report.nodeid.rpartition("tests/faults/")[2]] = [count, count if report.passed else 0]


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput") and _counts:
        COUNTS.parent.mkdir(exist_ok=True)
        COUNTS.write_text(json.dumps(_counts, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
