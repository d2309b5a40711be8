"""The ledger of claims with which each chapter ends.

A claim is recorded together with its evidence, a condition that the chapter has just computed. If the evidence does
not hold, recording the claim fails: a verdict can never outlive its measurement.

A statement of the paper carries its place, its LaTeX label and a few of its own words, so that a reader finds it there
and sees that it was made; without them it is not recorded. Where it fails, the most charitable reading stands beside
it. A statement of the book names the chapter as its source.

What the paper says about trained models is judged by the protocol of the trial alone (``results/protocol.toml``): other
runs may illustrate it, and leave it not decided.

A notebook shows a ledger as a table, as text, and as JSON under a MIME type of its own. The page of all claims is made
from the JSON that the chapters' outputs hold.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

FAILS = "fails"
# A slip of the pen: its entry stands in book/errata.md, and the page of claims does not count it.
MISPRINT = "misprint"
NOT_DECIDED = "not decided"
VERDICTS = ("holds", "holds with a condition", "gap in the proof", FAILS, NOT_DECIDED, MISPRINT)
NOT_JUDGED = "not judged"
MIME_TYPE = "application/vnd.advdiff.claims+json"
# The longest quotation of the paper, in words.
LONGEST_PHRASE = 8
OURS = "this chapter"

_CELL = 'style="text-align: left; vertical-align: top; padding: 0.5em"'


@dataclass(frozen=True)
class Claim:
    """One statement of the paper or of a chapter, and what became of it.

    Attributes:
        number: chapter and place in its ledger, for example "2.3" or "6a.1".
        statement: what it says, in our words and symbols.
        measured: what was computed here.
        verdict: one of ``VERDICTS``.
        source: who says it, where the book does; it begins with "this chapter".
        place: the section of the paper and the place in it, in words, where the paper says it.
        label: the LaTeX label of the equation or theorem in the paper, or else of the section.
        phrase: up to eight words of the paper by which the statement is found there.
        charitable: for a statement of the paper that fails: the most charitable reading, and why it fails too or that
            it does not.

    Example:
        >>> from advdiff.claims import Claim
        >>> Claim("2.1", "e^(-Lt) Z is the solution", "six methods agree", "holds", place="Section 3.2").of_the_paper
        True
    """

    number: str
    statement: str
    measured: str
    verdict: str
    source: str | None = None
    place: str | None = None
    label: str | None = None
    phrase: str | None = None
    charitable: str | None = None

    @property
    def of_the_paper(self) -> bool:
        """Whether the paper says it; otherwise it is a statement of the book."""
        return self.place is not None

    @property
    def where(self) -> str:
        """Place and words of the paper, or the chapter."""
        return f"{self.place}: “{self.phrase}”" if self.of_the_paper else str(self.source)

    def to_row(self) -> dict[str, Any]:
        """The claim as JSON: its attributes, as far as they are given, its chapter, and whether the paper says it."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        chapter = self.number.partition(".")[0]
        return given | {"chapter": int(chapter) if chapter.isdigit() else chapter, "of_the_paper": self.of_the_paper}

    def check(self) -> None:
        """Raise ValueError unless the verdict is known and the claim says who makes it, and where."""
        if self.verdict not in VERDICTS:
            raise ValueError(f"unknown verdict {self.verdict!r}; choose one of: {', '.join(VERDICTS)}.")
        if self.of_the_paper:
            if self.source is not None:
                raise ValueError("give the place in the paper or a source in the book, not both.")
            if self.label is None or self.phrase is None:
                raise ValueError("a statement of the paper has a place, a label and a phrase; give all three.")
            if not 1 <= len(self.phrase.split()) <= LONGEST_PHRASE:
                words = len(self.phrase.split())
                raise ValueError(f"phrase has {words} words; quote 1 to {LONGEST_PHRASE} words of the paper.")
        elif self.source is None or not self.source.startswith(OURS):
            raise ValueError(
                f"source is {self.source!r}; a statement of the book has a source that begins with {OURS!r}, "
                "one of the paper has place, label and phrase instead."
            )
        elif self.label is not None or self.phrase is not None:
            raise ValueError("label and phrase belong to a statement of the paper; give its place, too.")
        if (self.charitable is not None) != (self.of_the_paper and self.verdict == FAILS):
            raise ValueError(
                "charitable is the most charitable reading of a statement of the paper that fails; "
                "give it there, and only there."
            )


class Ledger:
    """The claims of one chapter, in the order in which they are recorded.

    Args:
        chapter: its number; a page that follows chapter 6 may be "6a".
        judged: False where the chapter runs on miniature data, about which it says nothing: claims are then listed as
            "not judged", whatever their evidence.

    Example:
        >>> from advdiff.claims import Ledger
        >>> ledger = Ledger(chapter=2)
        >>> ledger.record("1 + 1 = 2", source="this chapter", measured="2", verdict="holds", evidence=1 + 1 == 2)
        >>> ledger.claims[0].number
        '2.1'
    """

    def __init__(self, chapter: int | str, *, judged: bool = True) -> None:
        self.chapter, self.judged = chapter, judged
        self.claims: list[Claim] = []

    def record(
        self,
        statement: str,
        *,
        measured: str,
        verdict: str,
        evidence: bool,
        runs: Iterable[Any] = (),
        **words: str | None,
    ) -> None:
        """Add a claim; raises AssertionError if the evidence for the verdict does not hold.

        ``runs`` are the records of the training runs that the evidence rests on. If one of them was not made under a
        protocol, a statement of the paper is not decided by them; any other verdict raises ValueError.
        ``words`` are ``source``, or ``place``, ``label``, ``phrase`` and, if it fails, ``charitable``; see `Claim`.
        """
        number = f"{self.chapter}.{len(self.claims) + 1}"
        claim = Claim(number, statement, measured, verdict, **words)
        claim.check()
        if claim.of_the_paper and verdict != NOT_DECIDED and any(run.provenance.protocol is None for run in runs):
            raise ValueError(
                f"claim {number} rests on runs that were made under no protocol; its verdict is {NOT_DECIDED!r}."
            )
        if not self.judged:
            claim = Claim(number, statement, measured, NOT_JUDGED, **words)
        elif not evidence:
            raise AssertionError(f"claim {number} ({statement}): the evidence for {verdict!r} does not hold.")
        self.claims.append(claim)

    @classmethod
    def from_rows(cls, rows: Sequence[dict[str, Any]]) -> Ledger:
        """The ledger whose JSON (under ``MIME_TYPE`` in an executed notebook) is ``rows``.

        Raises ValueError unless the ledger that was read has exactly this JSON, and a verdict on every claim.
        """
        if not rows:
            raise ValueError("the ledger holds no claims.")
        ledger = cls(chapter=rows[0].get("chapter", 0))
        for place, row in enumerate(rows, start=1):
            try:
                claim = Claim(**{name: text for name, text in row.items() if name not in ("chapter", "of_the_paper")})
            except TypeError as error:
                raise ValueError(f"row {place} is not a claim: {error}.") from error
            if claim.number != f"{ledger.chapter}.{place}":
                raise ValueError(f"claim {claim.number} stands where {ledger.chapter}.{place} should be.")
            try:
                claim.check()
            except ValueError as error:
                raise ValueError(f"claim {claim.number}: {error}") from error
            if claim.to_row() != row:
                raise ValueError(f"claim {claim.number} is not as a Ledger writes it.")
            ledger.claims.append(claim)
        return ledger

    def __repr__(self) -> str:
        blocks = []
        for claim in self.claims:
            lines = [f"{claim.number}  {claim.verdict.upper()}  ({claim.where})"]
            texts = {"claim": claim.statement, "measured": claim.measured, "charitably": claim.charitable}
            for name, text in texts.items():
                if text is not None:
                    lines += textwrap.wrap(f"{name}: {text}", 96, initial_indent="     ", subsequent_indent="     ")
            blocks.append("\n".join(lines))
        return "\n".join(blocks)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        rows = [claim.to_row() for claim in self.claims]
        return {MIME_TYPE: rows, "text/html": self._repr_html_(), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        def row(tag: str, *columns: str) -> str:
            return "<tr>" + "".join(f"<{tag} {_CELL}>{text}</{tag}>" for text in columns) + "</tr>"

        def reading(claim: Claim) -> str:
            return "" if claim.charitable is None else f"<br><em>Charitably:</em> {html.escape(claim.charitable)}"

        body = "".join(
            row(
                "td",
                claim.number,
                f"{html.escape(claim.statement)} <em>({html.escape(claim.where)})</em>",
                html.escape(claim.measured) + reading(claim),
                f"<strong>{claim.verdict}</strong>",
            )
            for claim in self.claims
        )
        head = row("th", "", "claim", "measured here", "verdict")
        return f'<table class="table claims"><thead>{head}</thead><tbody>{body}</tbody></table>'
