"""The ledger refuses a verdict whose evidence does not hold."""

import pytest

from advdiff.theory.claims import VERDICTS, Ledger


def _record(ledger: Ledger, **changes) -> None:
    ledger.record(
        **{"statement": "a < b", "source": "here", "measured": "1 < 2", "verdict": "holds", "evidence": True} | changes
    )


def test_claims_are_numbered_and_printed():
    ledger = Ledger(chapter=5)
    for verdict in VERDICTS:
        _record(ledger, verdict=verdict)
    assert [c.number for c in ledger.claims] == ["5.1", "5.2", "5.3"]
    text, page = repr(ledger), ledger._repr_html_()
    assert "5.3  FAILS  (here)" in text and "measured: 1 < 2" in text
    assert "a &lt; b" in page and page.count("<tr>") == 4


def test_missing_evidence_is_an_error_and_records_nothing():
    ledger = Ledger(chapter=1)
    with pytest.raises(AssertionError, match=r"claim 1\.1 .*evidence"):
        _record(ledger, evidence=False)
    assert ledger.claims == []


def test_unknown_verdict_names_the_valid_ones():
    with pytest.raises(ValueError, match="holds, holds with a condition, fails"):
        _record(Ledger(1), verdict="probably")
