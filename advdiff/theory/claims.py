"""The ledger of claims with which each chapter ends.

A claim is recorded together with its evidence, a condition that the chapter has just computed. If the evidence does
not hold, recording the claim fails: a verdict can never outlive its measurement.

The table that a ledger shows can be read back, so that the page of all claims is made from the chapters' own outputs.
"""

from __future__ import annotations

import html
import re
import textwrap
from dataclasses import dataclass

VERDICTS = ("holds", "holds with a condition", "fails")
NOT_JUDGED = "not judged"

_CELL = 'style="text-align: left; vertical-align: top; padding: 0.5em"'
# Texts are escaped, so a "<" in the table always belongs to a tag.
_ROW = re.compile(
    r"<tr>"
    rf"<td {_CELL}>(?P<number>[^<]*)</td>"
    rf"<td {_CELL}>(?P<statement>[^<]*) <em>\((?P<source>[^<]*)\)</em></td>"
    rf"<td {_CELL}>(?P<measured>[^<]*)</td>"
    rf"<td {_CELL}><strong>(?P<verdict>[^<]*)</strong></td>"
    r"</tr>"
)


@dataclass(frozen=True)
class Claim:
    """One statement of the paper and what became of it.

    Attributes:
        number: chapter and place, for example "2.3".
        source: where the paper says it.
        statement: what it says, in our words.
        measured: what was computed here.
        verdict: "holds", "holds with a condition" or "fails".

    Example:
        >>> from advdiff.theory.claims import Claim
        >>> Claim("2.1", "Section 3.2", "the closed form is the solution", "six methods agree", "holds").of_the_paper
        True
    """

    number: str
    source: str
    statement: str
    measured: str
    verdict: str

    @property
    def of_the_paper(self) -> bool:
        """Whether the paper says it; a chapter's own statements have a source that begins with "this chapter"."""
        return not self.source.startswith("this chapter")


class Ledger:
    """The claims of one chapter, in the order in which they are recorded.

    Args:
        chapter: its number.
        judged: False where the chapter runs on miniature data, about which it says nothing: claims are then listed as
            "not judged", whatever their evidence.

    Example:
        >>> from advdiff.theory.claims import Ledger
        >>> ledger = Ledger(chapter=2)
        >>> ledger.record("1 + 1 = 2", source="arithmetic", measured="2", verdict="holds", evidence=1 + 1 == 2)
        >>> ledger.claims[0].number
        '2.1'
    """

    def __init__(self, chapter: int, *, judged: bool = True) -> None:
        self.chapter, self.judged = chapter, judged
        self.claims: list[Claim] = []

    def record(self, statement: str, *, source: str, measured: str, verdict: str, evidence: bool) -> None:
        """Add a claim; raises AssertionError if the evidence for the verdict does not hold."""
        if verdict not in VERDICTS:
            raise ValueError(f"unknown verdict {verdict!r}; choose one of: {', '.join(VERDICTS)}.")
        number = f"{self.chapter}.{len(self.claims) + 1}"
        if not self.judged:
            verdict = NOT_JUDGED
        elif not evidence:
            raise AssertionError(f"claim {number} ({statement}): the evidence for {verdict!r} does not hold.")
        self.claims.append(Claim(number, source, statement, measured, verdict))

    @classmethod
    def parse(cls, page: str) -> Ledger:
        """The ledger whose table (``text/html`` in an executed notebook) is ``page``: the inverse of its display.

        Raises ValueError unless the ledger that was read displays as exactly this table.
        """
        claims = [Claim(**{k: html.unescape(v) for k, v in row.groupdict().items()}) for row in _ROW.finditer(page)]
        if not claims:
            raise ValueError("the table holds no claims.")
        ledger = cls(chapter=int(claims[0].number.partition(".")[0]))
        ledger.claims = claims
        if ledger._repr_html_() != page:
            raise ValueError("the table is not one that a Ledger displays.")
        for place, claim in enumerate(claims, start=1):
            if claim.number != f"{ledger.chapter}.{place}":
                raise ValueError(f"claim {claim.number} stands where {ledger.chapter}.{place} should be.")
            if claim.verdict not in VERDICTS:
                raise ValueError(f"claim {claim.number} has the unknown verdict {claim.verdict!r}.")
        return ledger

    def __repr__(self) -> str:
        blocks = []
        for claim in self.claims:
            lines = [f"{claim.number}  {claim.verdict.upper()}  ({claim.source})"]
            for label, text in (("claim", claim.statement), ("measured", claim.measured)):
                lines += textwrap.wrap(f"{label}: {text}", 96, initial_indent="     ", subsequent_indent="     ")
            blocks.append("\n".join(lines))
        return "\n".join(blocks)

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
