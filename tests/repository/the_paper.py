"""The paper's LaTeX source, where it lies beside the project, cut into sections and freed of its commands."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[3] / "shared" / "paper" / "advdifformer.tex"
_MACROS = {r"\modelinv": "AdvDIFFormer-i", r"\modelser": "AdvDIFFormer-s", r"\model": "AdvDIFFormer"}
_HEADING = re.compile(r"\\((?:sub)*)section(\*?)\{")


def without_comments(latex: str) -> str:
    """LaTeX without what follows a per cent sign."""
    return re.sub(r"(?<!\\)%.*", "", latex)


def plain(latex: str) -> str:
    r"""The words of a piece of LaTeX, in this order of steps:

    the paper's three names of its models are written out; \cite, \ref, \label and their kin vanish with their
    arguments; of every other command only the name vanishes, so that \emph{x} leaves x; the signs { } $ ~ & ^ _ vanish;
    white space becomes single spaces, and none stands before a comma, a full stop or a closing bracket.
    """
    for name, words in _MACROS.items():
        latex = re.sub(re.escape(name) + r"(?![a-zA-Z])", words, latex)
    latex = re.sub(r"~?\\(citep|citet|cite|eqref|ref|label|url|includegraphics)(\[[^]]*\])?\{[^}]*\}", " ", latex)
    latex = re.sub(r"\\[a-zA-Z]+\*?|\\.", " ", latex)
    words = " ".join(re.sub(r"[{}$~&^_]", " ", latex).split())
    return re.sub(r" ([,.)])", r"\1", words)


def sections(latex: str) -> dict[str, str]:
    """The source of each numbered section by its number, "3.2" or "B.4", with its subsections."""
    appendix = latex.index(r"\appendix")
    headings = list(_HEADING.finditer(latex))
    counter, lettered, found = [0, 0, 0], False, {}
    for k, heading in enumerate(headings):
        if heading[2]:  # \section* has no number
            continue
        depth = heading[0].count("sub")
        if heading.start() > appendix and not lettered:
            counter, lettered = [0, 0, 0], True
        counter = [*counter[:depth], counter[depth] + 1, *[0] * (2 - depth)]
        first = chr(64 + counter[0]) if lettered else str(counter[0])
        after = (h.start() for h in headings[k + 1 :] if h[0].count("sub") <= depth)
        number = ".".join([first, *map(str, counter[1 : depth + 1])])
        found[number] = latex[heading.start() : next(after, len(latex))]
    return found


def read() -> str:
    """The whole source, without its comments."""
    return without_comments(SOURCE.read_text(encoding="utf-8"))
