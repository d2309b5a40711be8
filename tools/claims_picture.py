"""The picture of all claims: a row of squares per chapter, one square per claim.

On the page of claims, which it is a part of, titles lead to the claims of their chapter and squares to their claim. A
keyboard steps through the titles only: the rows of the tables follow, and 200 squares before them would be in its way.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from advdiff.claims import Claim

SIDE, PITCH, LEFT, TOP = 22, 28, 248, 26
# Okabe and Ito's colours, as in the book's figures; the marks tell the verdicts apart without them.
COLOURS = {
    "holds": "#0072B2",
    "holds with a condition": "#E69F00",
    "gap in the proof": "#CC79A7",
    "fails": "#D55E00",
    "not decided": "#6E6E6E",
}
GLYPHS = {
    "holds": '<path d="M6 11.5 L9.7 15.2 L16.2 7.6" fill="none" stroke="{ink}" stroke-width="2.4"/>',
    "holds with a condition": '<circle cx="11" cy="11" r="5" fill="none" stroke="{ink}" stroke-width="1.6"/>'
    '<path d="M11 6 A5 5 0 0 0 11 16 Z" fill="{ink}"/>',
    "gap in the proof": '<path d="M11 6 L16 15.5 L6 15.5 Z" fill="none" stroke="{ink}" stroke-width="2"/>',
    "fails": '<path d="M7 7 L15 15 M15 7 L7 15" fill="none" stroke="{ink}" stroke-width="2.4"/>',
    "not decided": '<path d="M8 9 A3 3 0 1 1 11 12 L11 13.5 M11 15.4 L11 16.6" fill="none" stroke="{ink}"'
    ' stroke-width="2"/>',
}


def column(claim: Claim) -> int:
    """Where its square stands: by its number, so that a misprint, which has no square, leaves its place empty."""
    return int(claim.number.partition(".")[2]) - 1


def square(claim: Claim, x: int, y: int) -> str:
    colour = COLOURS[claim.verdict]
    fill, ink = (colour, "#ffffff") if claim.of_the_paper else ("#ffffff", colour)
    name = claim.number.replace(".", "-")
    return (
        f'<a href="#claim-{name}" tabindex="-1"><g transform="translate({x} {y})"><title>'
        f"{escape(f'{claim.number} {claim.verdict}')}</title>"
        f'<rect x="1" y="1" width="{SIDE - 2}" height="{SIDE - 2}" rx="3" fill="{fill}" stroke="{colour}"'
        f' stroke-width="1.6"/>{GLYPHS[claim.verdict].format(ink=ink)}</g></a>'
    )


def draw(chapters: Sequence[tuple[str, Sequence[Claim]]]) -> str:
    """The text of book/images/claims.svg, from the titles of the chapters and their claims."""
    longest = max((column(claim) + 1 for _, claims in chapters for claim in claims), default=0)
    width, height = LEFT + longest * PITCH + 8, TOP + len(chapters) * PITCH + 4
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' role="img" font-family="Helvetica, Arial, sans-serif">',
        "<!-- Made by tools/gather_claims.py from the outputs of the notebooks. -->",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    lines += [
        f'<text x="{LEFT + k * PITCH + SIDE / 2:g}" y="16" font-size="11" fill="#777777" text-anchor="middle">{k + 1}'
        "</text>"
        for k in range(longest)
    ]
    for row, (title, claims) in enumerate(chapters):
        y = TOP + row * PITCH
        lines.append(
            f'<a href="#claims-of-chapter-{title.partition(" ")[0]}"><text x="{LEFT - 12}" y="{y + 16}" font-size="14"'
            f' fill="#222222" text-anchor="end">{escape(title)}</text></a>'
        )
        lines += [square(claim, LEFT + column(claim) * PITCH, y) for claim in claims]
    return "\n".join([*lines, "</svg>"]) + "\n"
