"""A Sphinx extension: the search of the book answers with sections, definitions and terms, not with pages.

What Sphinx finds is a page, with an excerpt of its source: TeX, names of buttons, code. Here every section is an entry,
and so is every theorem, definition, exercise, word of the glossary, claim and name of the library, with its own text in
plain letters. The entries are written to `_static/search_entries.js`, which only the page of the search loads, from a
file, too; `book/_static/search.js` looks through them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

from tools.tex_words import tex_words

FILE = "search_entries.js"
# Words that mean the same to who searches. Hyphens, plurals, -ise and -ize, -our and -or need no entry.
SYNONYMS = (
    ("oversmoothing", "over smoothing"),
    ("homophily", "homophilic"),
    ("heterophily", "heterophilic"),
    ("advection", "advective"),
    ("diffusion", "diffusive"),
    ("exponential", "expm", "matrix exp"),
    ("resolvent", "inverse"),
    ("attention", "transformer"),
    ("message passing", "gnn", "graph neural network"),
    ("out of distribution", "ood", "shift"),
    ("perturbation", "variation"),
    ("ablation", "ablate"),
    ("reproduce", "reproducibility", "protocol"),
    ("installation", "install"),
    ("learning rate", "lr"),
)
# Not text of the book: code, what cells printed, pictures, and what stands elsewhere in the index.
_SKIPPED = (
    nodes.literal_block,
    nodes.doctest_block,
    nodes.raw,
    nodes.comment,
    nodes.substitution_definition,
    addnodes.desc,
    addnodes.toctree,
    addnodes.glossary,
)
LONGEST_FORMULA = 60  # letters; an excerpt is for reading


class Entry(NamedTuple):
    """One place of the book that a search can lead to."""

    kind: str
    title: str
    page: str  # its title
    address: str  # relative to the root of the book
    text: str


def words_of(node: nodes.Node) -> str:
    """The text of a node in plain letters, without what is not text."""
    if isinstance(node, nodes.Text):
        return node.astext()
    if isinstance(node, (nodes.math, nodes.math_block)):
        formula = tex_words(node.astext())
        shown = formula if len(formula) <= LONGEST_FORMULA else "…"
        return shown if isinstance(node, nodes.math) else f" {shown} "
    if not isinstance(node, nodes.Element) or isinstance(node, _SKIPPED) or _is_section(node) or _entry_kind(node):
        return ""
    if {"cell_input", "verdicts"} & set(node.get("classes", [])):
        return ""
    inner = "".join(words_of(child) for child in node.children)
    if isinstance(node, (nodes.superscript, nodes.subscript)):
        return f"{'^' if isinstance(node, nodes.superscript) else '_'}({inner})"
    return inner if isinstance(node, nodes.Inline) else f"{inner} "


def _is_section(node: nodes.Node) -> bool:
    """Whether it has a heading; the text of a theorem is a section without one."""
    return isinstance(node, nodes.section) and isinstance(node.next_node(), nodes.title)


def _entry_kind(node: nodes.Node) -> str:
    """theorem, definition, …, exercise: blocks with a number of their own."""
    if not isinstance(node, nodes.Element):
        return ""
    if "claims" in node.get("classes", []):
        return "claim"
    return str(node.get("realtype") or ("exercise" if node.tagname.startswith("exercise_") else ""))


def _clean(text: str) -> str:
    return re.sub(r" ([,;:)]|\.(?= |$))", r"\1", " ".join(text.split()))


def _own_words(element: nodes.Element) -> str:
    return _clean("".join(words_of(child) for child in element.children if not isinstance(child, nodes.title)))


def _title(element: nodes.Element) -> str:
    title = element.next_node(nodes.title)
    return _clean("".join(words_of(child) for child in title.children)) if title is not None else ""


def entries(doctree: nodes.document, numbers: dict[str, dict[str, Any]]) -> Iterator[tuple[str, str, str, str]]:
    """Kind, title, anchor and text of every entry of a page; ``numbers`` are those of its theorems and exercises."""
    for depth, section in enumerate(doctree.findall(_is_section)):
        yield "section" if depth else "page", _title(section), section["ids"][0] if depth else "", _own_words(section)
    for block in doctree.findall(nodes.Element):
        kind = _entry_kind(block)
        if kind == "claim":
            for row in list(block.findall(nodes.row))[1:]:  # below the head
                number, _, statement, measured, verdict = (_clean(words_of(cell)) for cell in row.children)
                anchor = f"claim-{number.replace('.', '-')}"
                yield "claim", f"Claim {number}: {verdict}", anchor, f"{statement}. Measured: {measured}"
        elif kind and block["ids"]:
            found = numbers.get(block.get("countertype", kind), {}).get(block["ids"][0])
            name = " ".join([kind.capitalize(), *([".".join(map(str, found))] if found else [])])
            given = _title(block).strip(" ()")
            yield kind, f"{name} ({given})" if given else name, block["ids"][0], _own_words(block)
    for item in doctree.findall(nodes.definition_list_item):
        term = item.next_node(nodes.term)
        if term is not None and term["ids"] and isinstance(item.parent.parent, addnodes.glossary):
            meaning = _clean("".join(words_of(child) for child in item.children if not isinstance(child, nodes.term)))
            yield "term", _clean(words_of(term)), term["ids"][0], meaning
    for signature in doctree.findall(addnodes.desc_signature):
        content = signature.parent.next_node(addnodes.desc_content)
        first = content.next_node(nodes.paragraph) if content is not None else None
        if signature["ids"]:
            yield "code", signature["ids"][0], signature["ids"][0], _clean(words_of(first)) if first is not None else ""


def gather(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.name != "html":
        return
    page, address = _title(doctree), app.builder.get_target_uri(docname)
    numbers: dict[str, dict[str, Any]] = app.env.toc_fignumbers.get(docname, {})
    for kind, title, anchor, text in entries(doctree, numbers):
        _ENTRIES.append(Entry(kind, title, page, f"{address}#{anchor}" if anchor else address, text))


_ENTRIES: list[Entry] = []


def add_script(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if pagename == "search":
        app.add_css_file("search.css")
        app.add_js_file(FILE, loading_method="defer")
        app.add_js_file("search.js", loading_method="defer")


def finish(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        text = json.dumps({"synonyms": SYNONYMS, "entries": _ENTRIES}, ensure_ascii=False, separators=(",", ":"))
        (Path(app.outdir) / "_static" / FILE).write_text(f"window.bookSearch = {text};\n", encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("doctree-resolved", gather)
    app.connect("html-page-context", add_script)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": False}  # the entries lie in this process
