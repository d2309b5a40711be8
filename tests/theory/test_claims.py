"""The ledger refuses a verdict whose evidence does not hold, and its table can be read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advdiff.theory.claims import VERDICTS, Claim, Ledger


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


# Whatever a chapter may write, Markdown and HTML included.
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    ["", " ", "a < b > c & d", "&lt;&amp;", "</td><td>", " <em>(x)</em>", "|x|_2 * $y$", "two\nlines", "(Section 2)"]
)


@given(rows=st.lists(st.tuples(TEXTS, TEXTS, TEXTS, st.sampled_from(VERDICTS)), min_size=1, max_size=12))
def test_the_table_is_read_back_exactly(rows: list[tuple[str, str, str, str]]):
    ledger = Ledger(chapter=12)
    for statement, source, measured, verdict in rows:
        ledger.record(statement, source=source, measured=measured, verdict=verdict, evidence=True)
    parsed = Ledger.parse(ledger._repr_html_())
    assert (parsed.chapter, parsed.claims) == (12, ledger.claims)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1 &lt; 2", "1 < 2", "holds no claims"),
        ("</tbody>", "<tr></tr></tbody>", "not one that a Ledger displays"),
        ("7.1", "7.2", r"claim 7\.2 stands where 7\.1"),
        ("<strong>holds", "<strong>shines", "unknown verdict 'shines'"),
    ],
)
def test_a_table_that_no_ledger_displays_is_refused(old: str, new: str, message: str):
    ledger = Ledger(chapter=7)
    _record(ledger)
    page = ledger._repr_html_()
    assert old in page
    with pytest.raises(ValueError, match=message):
        Ledger.parse(page.replace(old, new))


@pytest.mark.parametrize(("source", "expected"), [("Section 3.2, Remark", True), ("this chapter", False)])
def test_a_claim_knows_whether_the_paper_makes_it(source: str, expected: bool):
    assert Claim("1.1", source, "a", "b", "holds").of_the_paper is expected


def test_nothing_is_judged_on_miniature_data():
    ledger = Ledger(chapter=10, judged=False)
    _record(ledger, evidence=False)
    assert [c.verdict for c in ledger.claims] == ["not judged"]
    with pytest.raises(ValueError, match="unknown verdict"):
        Ledger.parse(ledger._repr_html_())  # such a table never reaches the page of all claims
