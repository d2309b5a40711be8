"""The ledger refuses a verdict whose evidence does not hold, and its JSON can be read back."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advdiff.claims import FAILS, MIME_TYPE, MISPRINT, NOT_DECIDED, VERDICTS, Ledger

OURS = {"source": "this chapter"}
THEIRS = {"place": "Section 3.2, Remark", "label": "eqn-1", "phrase": "has a solution"}


def _record(ledger: Ledger, **changes: Any) -> None:
    """A claim of the book, or with ``THEIRS`` one of the paper."""
    said = {} if "place" in changes else OURS
    given = {"statement": "a < b", "measured": "1 < 2", "verdict": "holds", "evidence": True} | said | changes
    ledger.record(**{name: value for name, value in given.items() if value is not None})


def test_claims_are_numbered_and_printed():
    ledger = Ledger(chapter=5)
    for verdict in VERDICTS:
        _record(ledger, verdict=verdict)
    assert [c.number for c in ledger.claims] == [f"5.{k + 1}" for k in range(len(VERDICTS))]
    _record(ledger, **THEIRS, verdict=FAILS, charitable="as a > b it holds")
    text, page = repr(ledger), ledger._repr_html_()
    assert "5.4  FAILS  (this chapter)" in text and "measured: 1 < 2" in text
    assert "5.7  FAILS  (Section 3.2, Remark: “has a solution”)" in text and "charitably: as a > b it holds" in text
    assert "a &lt; b" in page and page.count("<tr>") == len(VERDICTS) + 2
    assert page.count("Charitably:") == 1 and "as a &gt; b it holds" in page


def test_missing_evidence_is_an_error_and_records_nothing():
    ledger = Ledger(chapter=1)
    with pytest.raises(AssertionError, match=r"claim 1\.1 .*evidence"):
        _record(ledger, evidence=False)
    assert ledger.claims == []


def test_unknown_verdict_names_the_valid_ones():
    with pytest.raises(ValueError, match="holds, holds with a condition, gap in the proof, fails"):
        _record(Ledger(1), verdict="probably")


@pytest.mark.parametrize("phrase", ["", " ", "this phrase of the paper is one word too long"])
def test_a_quotation_has_one_to_eight_words(phrase: str):
    ledger = Ledger(1)
    with pytest.raises(ValueError, match="quote 1 to 8 words"):
        _record(ledger, **THEIRS | {"phrase": phrase})
    _record(ledger, **THEIRS | {"phrase": "one two three four five six seven eight"})
    assert len(ledger.claims) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": "Section 3.2"}, "begins with 'this chapter'"),
        ({"source": None}, "one of the paper has place, label and phrase"),
        (THEIRS | {"label": None}, "give all three"),
        (THEIRS | {"phrase": None}, "give all three"),
        (THEIRS | OURS, "not both"),
        (OURS | {"label": "eqn-1"}, "belong to a statement of the paper"),
        (THEIRS | {"verdict": FAILS}, "most charitable reading"),
        (THEIRS | {"charitable": "it holds"}, "most charitable reading"),
        (OURS | {"verdict": FAILS, "charitable": "it holds"}, "most charitable reading"),
    ],
)
def test_a_claim_says_who_makes_it_and_where(changes: dict[str, Any], message: str) -> None:
    ledger = Ledger(1)
    with pytest.raises(ValueError, match=message):
        _record(ledger, **changes)
    assert ledger.claims == []


def stored(ledger: Ledger) -> list[dict[str, Any]]:
    """The ledger's JSON as a notebook keeps it."""
    rows: list[dict[str, Any]] = json.loads(json.dumps(ledger._repr_mimebundle_()[MIME_TYPE]))
    return rows


def test_a_row_says_where_the_paper_says_it():
    ledger = Ledger(chapter=3)
    _record(ledger)
    _record(ledger, **THEIRS, verdict=FAILS, charitable="no")
    first, second = stored(ledger)
    both = {"number", "chapter", "statement", "measured", "verdict", "of_the_paper"}
    assert set(first) == both | {"source"} and set(second) == both | {"place", "label", "phrase", "charitable"}
    assert first["of_the_paper"] is False and second["of_the_paper"] is True
    assert second["number"] == "3.2" and second["chapter"] == 3 and second["label"] == "eqn-1"


# Whatever a chapter may write, Markdown and HTML included.
TEXTS = st.text(st.characters(codec="utf-8"), max_size=30) | st.sampled_from(
    ["", " ", "a < b > c & d", "&lt;&amp;", "</td><td>", " <em>(x)</em>", "|x|_2 * $y$", "two\nlines", "(Section 2)"]
)


@given(
    rows=st.lists(
        st.tuples(TEXTS, TEXTS, st.sampled_from(VERDICTS), st.none() | st.tuples(TEXTS, TEXTS, TEXTS)),
        min_size=1,
        max_size=12,
    )
)
def test_the_json_is_read_back_exactly(rows: list[tuple[str, str, str, tuple[str, str, str] | None]]):
    ledger = Ledger(chapter=12)
    for statement, measured, verdict, paper in rows:
        words: dict[str, Any] = {"source": f"this chapter{statement}"}
        if paper is not None:
            place, label, charitable = paper
            words = {"place": place, "label": label, "phrase": "can reduce"}
            words |= {"charitable": charitable} if verdict == FAILS else {}
        _record(ledger, statement=statement, measured=measured, verdict=verdict, **words)
    read = Ledger.from_rows(stored(ledger))
    assert (read.chapter, read.claims) == (12, ledger.claims)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"number": "7.2"}, r"claim 7\.2 stands where 7\.1"),
        ({"verdict": "shines"}, "unknown verdict 'shines'"),
        ({"verdict": "not judged"}, "unknown verdict 'not judged'"),
        ({"of_the_paper": True}, "not as a Ledger writes it"),
        ({"colour": "red"}, "row 1 is not a claim: .*colour"),
        ({"place": None}, "not as a Ledger writes it"),
        ({"source": "Section 1"}, "claim 7.1: .*begins with 'this chapter'"),
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


def test_a_misprint_is_recorded_with_its_evidence():
    ledger = Ledger(1)
    with pytest.raises(AssertionError, match=MISPRINT):
        _record(ledger, **THEIRS, verdict=MISPRINT, evidence=False)
    _record(ledger, **THEIRS, verdict=MISPRINT)
    assert [(c.verdict, c.of_the_paper) for c in ledger.claims] == [(MISPRINT, True)]


def _run(protocol: str | None) -> Any:
    return SimpleNamespace(provenance=SimpleNamespace(protocol=protocol))


@pytest.mark.parametrize("verdict", [v for v in VERDICTS if v not in (NOT_DECIDED, FAILS)])
def test_runs_without_a_protocol_decide_nothing_about_the_paper(verdict: str) -> None:
    free, mixed, under = [_run(None)], [_run("913e"), _run(None)], [_run("913e")]
    ledger = Ledger(chapter=12)
    for runs in (free, mixed):
        with pytest.raises(ValueError, match=r"claim 12\.1 rests on runs .* under no protocol"):
            _record(ledger, **THEIRS, verdict=verdict, runs=runs)
    _record(ledger, **THEIRS, verdict=NOT_DECIDED, runs=free)
    _record(ledger, **THEIRS, verdict=verdict, runs=under)
    _record(ledger, verdict=verdict, runs=free)  # what the book says of its own runs
    assert [claim.verdict for claim in ledger.claims] == [NOT_DECIDED, verdict, verdict]


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
