"""The ledger refuses a verdict whose evidence does not hold, and its JSON can be read back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advdiff.claims import MIME_TYPE, VERDICTS, Claim, Ledger


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


@pytest.mark.parametrize("phrase", ["", " ", "this phrase of the paper is one word too long"])
def test_a_quotation_has_one_to_eight_words(phrase: str):
    ledger = Ledger(1)
    with pytest.raises(ValueError, match="quote 1 to 8 words"):
        _record(ledger, phrase=phrase)
    _record(ledger, phrase="one two three four five six seven eight")
    assert len(ledger.claims) == 1


def stored(ledger: Ledger) -> list[dict[str, Any]]:
    """The ledger's JSON as a notebook keeps it."""
    rows: list[dict[str, Any]] = json.loads(json.dumps(ledger._repr_mimebundle_()[MIME_TYPE]))
    return rows


def test_a_row_says_where_the_paper_says_it():
    ledger = Ledger(chapter=3)
    _record(ledger)
    _record(ledger, source="this chapter", place="4.2", label="thm:one", phrase="grows at most polynomially")
    first, second = stored(ledger)
    assert set(first) == {"number", "chapter", "statement", "source", "measured", "verdict", "of_the_paper"}
    assert first["of_the_paper"] is True and second["of_the_paper"] is False
    assert set(second) - set(first) == {"place", "label", "phrase"}
    assert second["number"] == "3.2" and second["chapter"] == 3 and second["label"] == "thm:one"


# Whatever a chapter may write, Markdown and HTML included.
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    ["", " ", "a < b > c & d", "&lt;&amp;", "</td><td>", " <em>(x)</em>", "|x|_2 * $y$", "two\nlines", "(Section 2)"]
)


@given(
    rows=st.lists(
        st.tuples(TEXTS, TEXTS, TEXTS, st.sampled_from(VERDICTS), st.none() | TEXTS, st.none() | TEXTS),
        min_size=1,
        max_size=12,
    )
)
def test_the_json_is_read_back_exactly(rows: list[tuple[str, str, str, str, str | None, str | None]]):
    ledger = Ledger(chapter=12)
    for statement, source, measured, verdict, place, label in rows:
        texts = {"source": source, "measured": measured, "place": place, "label": label}
        _record(ledger, statement=statement, verdict=verdict, **texts)
    read = Ledger.from_rows(stored(ledger))
    assert (read.chapter, read.claims) == (12, ledger.claims)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": "7.2"}, r"claim 7\.2 stands where 7\.1"),
        ({"verdict": "shines"}, "unknown verdict 'shines'"),
        ({"verdict": "not judged"}, "unknown verdict 'not judged'"),
        ({"of_the_paper": False}, "not as a Ledger writes it"),
        ({"colour": "red"}, "row 1 is not a claim: .*colour"),
        ({"place": None}, "not as a Ledger writes it"),
    ],
)
def test_rows_that_no_ledger_writes_are_refused(changes: dict[str, Any], message: str):
    ledger = Ledger(chapter=7)
    _record(ledger)
    (row,) = stored(ledger)
    assert Ledger.from_rows([row]).claims == ledger.claims
    with pytest.raises(ValueError, match=message):
        Ledger.from_rows([row | changes])


def test_an_incomplete_or_empty_ledger_is_refused():
    ledger = Ledger(chapter=7)
    _record(ledger)
    (row,) = stored(ledger)
    del row["measured"]
    with pytest.raises(ValueError, match=r"row 1 is not a claim: .*measured"):
        Ledger.from_rows([row])
    with pytest.raises(ValueError, match="holds no claims"):
        Ledger.from_rows([])


@pytest.mark.parametrize(("source", "expected"), [("Section 3.2, Remark", True), ("this chapter", False)])
def test_a_claim_knows_whether_the_paper_makes_it(source: str, expected: bool):
    assert Claim("1.1", source, "a", "b", "holds").of_the_paper is expected


def test_nothing_is_judged_on_miniature_data():
    ledger = Ledger(chapter=10, judged=False)
    _record(ledger, evidence=False)
    assert [c.verdict for c in ledger.claims] == ["not judged"]
    with pytest.raises(ValueError, match="unknown verdict"):
        Ledger.from_rows(stored(ledger))  # such a ledger never reaches the page of all claims


def test_a_page_that_follows_a_chapter_has_claims_of_its_own():
    ledger = Ledger(chapter="6a")
    _record(ledger)
    (row,) = ledger._repr_mimebundle_()[MIME_TYPE]
    assert (row["number"], row["chapter"]) == ("6a.1", "6a")
    assert Ledger.from_rows([row]).claims == ledger.claims
