"""The ledger of claims with which each chapter ends.

A claim is recorded together with its evidence, a condition that the chapter has just computed. If the evidence does
not hold, recording the claim fails: a verdict can never outlive its measurement.

A notebook shows a ledger as a table, as text, and as JSON under a MIME type of its own. The page of all claims is made
from the JSON that the chapters' outputs hold.
"""

from __future__ import annotations

import html
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

VERDICTS = ("holds", "holds with a condition", "fails")
NOT_JUDGED = "not judged"
MIME_TYPE = "application/vnd.advdiff.claims+json"
# The longest quotation of the paper, in words.
LONGEST_PHRASE = 8

_CELL = 'style="text-align: left; vertical-align: top; padding: 0.5em"'


@dataclass(frozen=True)
class Claim:
    """One statement of the paper or of a chapter, and what became of it.

    Attributes:
        number: chapter and place in its ledger, for example "2.3" or "6a.1".
        source: who says it and where, in words.
        statement: what it says, in our words.
        measured: what was computed here.
        verdict: "holds", "holds with a condition" or "fails".
        place: the section of the paper, if given.
        label: the LaTeX label of the equation or theorem in the paper, if given.
        phrase: up to eight words of the paper by which the statement is found there, if given.

    Example:
        >>> from advdiff.claims import Claim
        >>> Claim("2.1", "Section 3.2", "the closed form is the solution", "six methods agree", "holds").of_the_paper
        True
    """

    number: str
    source: str
    statement: str
    measured: str
    verdict: str
    place: str | None = None
    label: str | None = None
    phrase: str | None = None

    @property
    def of_the_paper(self) -> bool:
        """Whether the paper says it; a chapter's own statements have a source that begins with "this chapter"."""
        return not self.source.startswith("this chapter")

    def to_row(self) -> dict[str, Any]:
        """The claim as JSON: its attributes, as far as they are given, its chapter, and whether the paper says it."""
        given = {name: value for name, value in asdict(self).items() if value is not None}
        chapter = self.number.partition(".")[0]
        return given | {"chapter": int(chapter) if chapter.isdigit() else chapter, "of_the_paper": self.of_the_paper}


class Ledger:
    """The claims of one chapter, in the order in which they are recorded.

    Args:
        chapter: its number; a page that follows chapter 6 may be "6a".
        judged: False where the chapter runs on miniature data, about which it says nothing: claims are then listed as
            "not judged", whatever their evidence.

    Example:
        >>> from advdiff.claims import Ledger
        >>> ledger = Ledger(chapter=2)
        >>> ledger.record("1 + 1 = 2", source="arithmetic", measured="2", verdict="holds", evidence=1 + 1 == 2)
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
        source: str,
        measured: str,
        verdict: str,
        evidence: bool,
        place: str | None = None,
        label: str | None = None,
        phrase: str | None = None,
    ) -> None:
        """Add a claim; raises AssertionError if the evidence for the verdict does not hold."""
        if verdict not in VERDICTS:
            raise ValueError(f"unknown verdict {verdict!r}; choose one of: {', '.join(VERDICTS)}.")
        if phrase is not None and not 1 <= len(phrase.split()) <= LONGEST_PHRASE:
            raise ValueError(f"phrase has {len(phrase.split())} words; quote 1 to {LONGEST_PHRASE} words of the paper.")
        number = f"{self.chapter}.{len(self.claims) + 1}"
        if not self.judged:
            verdict = NOT_JUDGED
        elif not evidence:
            raise AssertionError(f"claim {number} ({statement}): the evidence for {verdict!r} does not hold.")
        self.claims.append(Claim(number, source, statement, measured, verdict, place, label, phrase))

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
            if claim.verdict not in VERDICTS:
                raise ValueError(f"claim {claim.number} has the unknown verdict {claim.verdict!r}.")
            if claim.to_row() != row:
                raise ValueError(f"claim {claim.number} is not as a Ledger writes it.")
            ledger.claims.append(claim)
        return ledger

    def __repr__(self) -> str:
        blocks = []
        for claim in self.claims:
            lines = [f"{claim.number}  {claim.verdict.upper()}  ({claim.source})"]
            for label, text in (("claim", claim.statement), ("measured", claim.measured)):
                lines += textwrap.wrap(f"{label}: {text}", 96, initial_indent="     ", subsequent_indent="     ")
            blocks.append("\n".join(lines))
        return "\n".join(blocks)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        rows = [claim.to_row() for claim in self.claims]
        return {MIME_TYPE: rows, "text/html": self._repr_html_(), "text/plain": repr(self)}

    def _repr_html_(self) -> str:
        def row(tag: str, *columns: str) -> str:
            return "<tr>" + "".join(f"<{tag} {_CELL}>{text}</{tag}>" for text in columns) + "</tr>"

        body = "".join(
            row(
                "td",
                claim.number,
                f"{html.escape(claim.statement)} <em>({html.escape(claim.source)})</em>",
                html.escape(claim.measured),
                f"<strong>{claim.verdict}</strong>",
            )
            for claim in self.claims
        )
        head = row("th", "", "claim", "measured here", "verdict")
        return f'<table class="table claims"><thead>{head}</thead><tbody>{body}</tbody></table>'
