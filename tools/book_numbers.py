"""A Sphinx extension: one numbering for the whole book, from the names of the chapters' files.

`notebooks/05_perturbation_bounds.ipynb` is chapter 5. Its title becomes "5 Perturbation bounds" wherever Sphinx shows
it: on the page, in the sidebar, in the browser's tab, in links and on paper. Its theorems, exercises and figures are
counted within it, kind by kind: Theorem 5.2, Exercise 5.3, Figure 5.1, as its claims are. And "chapter 5" in the text
of any page is a link to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms import SphinxTransform

_FILE = re.compile(r"notebooks/0*(\d+[a-z]?)_")
_NUMBER = r"\d+[a-z]?\b"
# "chapter 5", "chapters 4 and 6", "chapters 1 to 7"; the 2 of "chapter 2, 2.1 of its ledger" is no chapter.
MENTION = re.compile(rf"\b[Cc]hapter\s+{_NUMBER}|\b[Cc]hapters\s+{_NUMBER}(?:(?:,\s+|\s+and\s+|\s+to\s+|–){_NUMBER})*")
_LINKED = re.compile(rf"(?:[Cc]hapters?\s+)?({_NUMBER})")
# Where a link would be wrong or one within another.
_KEPT = (
    nodes.FixedTextElement,
    nodes.literal,
    nodes.math,
    nodes.raw,
    nodes.reference,
    nodes.title,
    nodes.substitution_definition,
    addnodes.pending_xref,
)


def chapter_of(docname: str) -> str:
    """The number of a page that is a chapter, and nothing for another page.

    >>> chapter_of("notebooks/06a_when_advection_helps"), chapter_of("book/glossary")
    ('6a', '')
    """
    found = _FILE.match(docname)
    return found[1] if found else ""


def chapters(env: BuildEnvironment) -> dict[str, str]:
    """The pages of the chapters by their numbers."""
    return {number: docname for docname in sorted(env.found_docs) if (number := chapter_of(docname))}


def pieces(text: str, pages: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The text in pieces, each with the page that it should lead to or nothing.

    >>> list(pieces("In chapters 4 and 6.", {"4": "four", "6": "six"}))
    [('In ', ''), ('chapters 4', 'four'), (' and ', ''), ('6', 'six'), ('.', '')]
    """
    done = 0
    for mention in MENTION.finditer(text):
        for link in _LINKED.finditer(text, mention.start(), mention.end()):
            if page := pages.get(link[1], ""):
                yield text[done : link.start()], ""
                yield link[0], page
                done = link.end()
    yield text[done:], ""


def is_of_another_book(text: nodes.Text) -> bool:
    """Whether the chapters meant are those of a citation beside them: "[Higham], chapters 3 and 10"."""
    siblings = text.parent.children
    place = siblings.index(text)
    before = siblings[place - 1] if place else None
    after = siblings[place + 1] if place + 1 < len(siblings) else None

    def cites(node: nodes.Node | None) -> bool:
        return isinstance(node, addnodes.pending_xref) and node.get("refdomain") == "cite"

    return (cites(before) and re.match(r",\s+chapter", text) is not None) or (
        cites(after) and re.search(rf"{_NUMBER}\s+of\s+$", text) is not None
    )


class NumberTitle(SphinxTransform):
    """The number before the title of a chapter; early, before Sphinx takes titles and labels from the page."""

    default_priority = 400

    def apply(self, **kwargs: Any) -> None:
        title = next(self.document.findall(nodes.title), None)
        if title is not None and (number := chapter_of(self.env.docname)):
            title.insert(0, [nodes.inline("", number, classes=["chapter-number"]), nodes.Text(" ")])


class LinkChapters(SphinxTransform):
    """Every "chapter 5" of the text, but on the page of the chapter itself."""

    default_priority = 410

    def apply(self, **kwargs: Any) -> None:
        pages = {number: page for number, page in chapters(self.env).items() if page != self.env.docname}
        for text in list(self.document.findall(nodes.Text)):
            if MENTION.search(text) and not is_of_another_book(text) and not _inside(text, _KEPT):
                parts = [self.linked(words, page) for words, page in pieces(text.astext(), pages) if words]
                text.parent.replace(text, parts)

    def linked(self, words: str, page: str) -> nodes.Node:
        if not page:
            return nodes.Text(words)
        to: dict[str, Any] = {"refdomain": "std", "reftype": "doc", "reftarget": f"/{page}", "refexplicit": True}
        link = addnodes.pending_xref("", nodes.inline("", words), refdoc=self.env.docname, refwarn=True, **to)
        return link


def _inside(node: nodes.Node, kinds: tuple[type[nodes.Node], ...]) -> bool:
    parent = node.parent
    while parent is not None and not isinstance(parent, kinds):
        parent = parent.parent
    return parent is not None


def count_by_chapter(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Sphinx has counted theorems, exercises and figures through the book; count them anew in each page."""
    for docname, kinds in env.toc_fignumbers.items():
        chapter = chapter_of(docname)
        for kind, numbers in kinds.items():
            counted = {name: (chapter, k) if chapter else (k,) for k, name in enumerate(numbers, start=1)}
            kinds[kind] = counted  # type: ignore[assignment]  # 6a is not an int, and Sphinx only joins them by dots
    return []


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_transform(NumberTitle)
    app.add_transform(LinkChapters)
    app.connect("env-get-updated", count_by_chapter, priority=900)  # after Sphinx's own
    return {"parallel_read_safe": True, "parallel_write_safe": True}
