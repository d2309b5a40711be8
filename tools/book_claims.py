"""A Sphinx extension: from the evidence to its claim and back, and a picture whose squares are links.

Below the cell that computed the evidence of a claim its chapter says what became of it, "5.3 ✓ holds", with a link to
the row on the page of claims; the row has a link back to this place (label ``evidence-5-3``). The cells are those that
`tools/fold_cells.py` has folded under the line "Claims 5.3 to 5.6 recorded with their evidence".
"""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

from tools.book_numbers import chapter_of
from tools.gather_claims import MARKS, PAGE, ROOT, read_chapter

RECORDED = re.compile(r"Claims? (\w+)\.(\d+)(?: (?:to|and) \w+\.(\d+))? recorded with")
INLINE = "inline-svg"


def numbers_in(line: str) -> list[str]:
    """The numbers of the claims that a folded cell records, from its line.

    >>> numbers_in("Claims 6a.3 to 6a.5 recorded with their evidence"), numbers_in("Code of this figure")
    (['6a.3', '6a.4', '6a.5'], [])
    """
    found = RECORDED.match(line)
    if found is None:
        return []
    chapter, first, last = found.groups()
    return [f"{chapter}.{k}" for k in range(int(first), int(last or first) + 1)]


@cache
def verdicts(path: Path) -> dict[str, str]:
    """The verdicts of a chapter by the numbers of its claims; misprints have a page of their own."""
    return {claim.number: claim.verdict for claim in read_chapter(path, ROOT).claims}


class SayVerdicts(SphinxTransform):
    default_priority = 420

    def apply(self, **kwargs: Any) -> None:
        if not chapter_of(self.env.docname):
            return
        known = verdicts(Path(self.env.doc2path(self.env.docname)))
        for cell in list(self.document.findall(nodes.container)):
            said = [(number, known[number]) for number in numbers_in(cell.get("prompt_show", "")) if number in known]
            if said:
                line = nodes.paragraph("", "", classes=["verdicts"])
                line += [self.link(number, verdict) for number, verdict in said]
                cell.parent.insert(cell.parent.index(cell), line)

    def link(self, number: str, verdict: str) -> nodes.Node:
        name = number.replace(".", "-")
        words = nodes.inline("", f"{number} {MARKS[verdict]} {verdict}")
        target: dict[str, Any] = {"refdomain": "std", "reftype": "ref", "reftarget": f"claim-{name}"}
        link = addnodes.pending_xref("", words, refdoc=self.env.docname, refexplicit=True, refwarn=True, **target)
        place = nodes.inline("", "", link, ids=[f"evidence-{name}"], names=[f"evidence-{name}"])
        self.document.note_explicit_target(place)
        return place


class InlinePictures(SphinxPostTransform):
    """A picture of the class ``inline-svg`` becomes part of the page, so that its links can be followed."""

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            if INLINE in image["classes"]:
                text = (Path(self.env.srcdir) / image["uri"]).read_text(encoding="utf-8")
                # An image has no links for who cannot see it, a group has.
                named = text.replace('role="img"', f'role="group" aria-label="{escape(image.get("alt", ""))}"')
                image.replace_self(nodes.raw("", f'<div class="{INLINE}">{named}</div>', format="html"))


def add_filters(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if pagename == PAGE.with_suffix("").as_posix():
        app.add_js_file("claims.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(SayVerdicts)
    app.add_post_transform(InlinePictures)
    app.connect("html-page-context", add_filters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
