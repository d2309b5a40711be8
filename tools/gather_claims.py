"""Gather the claims of all chapters: write book/claims.md and its picture from the outputs of the notebooks.

    python -m tools.gather_claims             write both files
    python -m tools.gather_claims --check     write nothing; fail if a file would change

Every chapter ends with its ledger of claims. This reads the JSON that the executed notebooks hold beside the table, so
nothing on the page is typed by hand. `make notebooks` runs it, and a test compares the committed files with what it
would write.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from advdiff.claims import MIME_TYPE, MISPRINT, VERDICTS, Claim, Ledger
from tools import claims_picture

ROOT = Path(__file__).resolve().parent.parent
PAGE = Path("book/claims.md")
PICTURE = Path("book/images/claims.svg")

MARKS = {"holds": "✓", "holds with a condition": "◐", "gap in the proof": "△", "fails": "✗", "not decided": "?"}
COUNTED = tuple(verdict for verdict in VERDICTS if verdict != MISPRINT)

HEAD = """\
% Made by tools/gather_claims.py from the outputs of the notebooks. Change the chapter, then run `make notebooks`.

# Claims

{{cite:t}}`wu2025advdifformer` make statements that a reader can put to the test, and so does this book. Each of them
is recorded as a **claim** by the cell of a chapter that computed its evidence, and recording fails if the evidence does
not hold. This page gathers the claims of all chapters. It is made from their outputs, and the test-suite recomputes
those.

A statement of the paper has its place: the section, the LaTeX label there, and a few of the paper's own words, so that
you can look up what was said. [The paper, line by line](line_by_line.md) goes the other way, from the paper to the
book.

✓ **holds**
: as it stands, in every case that was tried, and with a proof where the chapter prints one.

◐ **holds with a condition**
: true once something is added that the statement does not say. The chapter says what, and shows a case in which it is
  missing.

△ **gap in the proof**
: the statement may be true, or is, but the proof given for it lacks a step.

✗ **fails**
: there is a counter-example, which the chapter shows beside the statement that does hold. Beside it stands the most
  charitable reading of the statement, and whether that fails too.

? **not decided**
: what was computed does not tell.

Misprints are on the page of [errata](errata.md) and are not counted here; those that a cell checked are left out of the
tables, so that some numbers are missing: {misprints}.
A verdict is about one sentence, not about the paper: a model may do well for other reasons than those given for it.

There are {total} claims. {paper} of them are statements of the paper: {paper_verdicts}. The other {own} are
statements of this book, most of them put in place of one that needs a condition, some of them guesses that a chapter
puts to the test: {own_verdicts}.

```{{figure}} images/{picture}
:name: fig-claims
:alt: {alt}
:class: inline-svg

All claims, one square each, chapter by chapter: ✓ holds, ◐ holds with a condition, △ gap in the proof, ✗ fails, ? not
decided. Full squares are statements of the paper, empty ones those of this book. A square leads to its claim, and the
number of a claim to the cell of the chapter that computed its evidence.
```
"""


class Chapter(NamedTuple):
    """The claims of one notebook and where they stand."""

    path: Path  # relative to the root of the repository
    title: str
    anchor: str  # of the section that holds the ledger
    ledger: Ledger

    @property
    def claims(self) -> list[Claim]:
        """The claims of the chapter that count; its misprints do not."""
        return [claim for claim in self.ledger.claims if claim.verdict != MISPRINT]


def _text(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


def _headings(cells: Iterable[dict[str, Any]]) -> list[str]:
    """The headings of Markdown cells, with their marks; code blocks may hold lines that only look like them."""
    markdown = "\n\n".join(_text(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    without_code = re.sub(r"^(`{3,}|~{3,}).*?^\1", "", markdown, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"^#+ .*$", without_code, flags=re.MULTILINE)


def read_chapter(path: Path, root: Path) -> Chapter:
    """The chapter in an executed notebook; exits with a message if its claims cannot be read."""
    name = path.relative_to(root)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    found = [
        (place, output["data"])
        for place, cell in enumerate(cells)
        for output in cell.get("outputs", [])
        if MIME_TYPE in output.get("data", {})
    ]
    if len(found) != 1:
        sys.exit(f"{name} shows {len(found)} ledgers of claims and should show one; execute it with `make notebooks`")
    place, data = found[0]
    try:
        ledger = Ledger.from_rows(data[MIME_TYPE])
    except ValueError as error:
        sys.exit(f"{name}: {error}")
    shown = {mime: _text(data[mime]) for mime in ("text/html", "text/plain")}
    if ledger._repr_mimebundle_() != {MIME_TYPE: data[MIME_TYPE], **shown}:
        sys.exit(f"{name}: the claims in JSON and those that are shown differ; execute it with `make notebooks`")
    if path.stem.partition("_")[0].lstrip("0") != str(ledger.chapter):
        sys.exit(f"{name} has the claims of chapter {ledger.chapter}")
    headings = _headings(cells[:place])
    if not headings:
        sys.exit(f"{name} has no heading above its claims")
    section = headings[-1].lstrip("# ")
    anchor = re.sub(r"[^\w\- ]", "", section.lower()).replace(" ", "-")
    return Chapter(name, headings[0].lstrip("# "), anchor, ledger)


def read_chapters(root: Path) -> list[Chapter]:
    return [read_chapter(path, root) for path in sorted(root.glob("notebooks/[0-9]*.ipynb"))]


def markdown(text: str) -> str:
    """The text with everything escaped that Markdown, HTML or MyST could take for markup."""
    escaped = re.sub(r"([\\`*_{}\[\]<>#|$&~!@%])", r"\\\1", " ".join(text.split()))
    return re.sub(r"^([-+=:(]|\d+[.)](?= |$))", lambda match: match[1][:-1] + "\\" + match[1][-1], escaped)


def count(claims: Iterable[Claim]) -> Counter[str]:
    return Counter(claim.verdict for claim in claims)


def in_words(counts: Counter[str]) -> str:
    """Counts as a clause: "8 hold, 15 hold with a condition and 7 fail"; verdicts that do not occur are left out."""
    plural = {"holds": "hold", "holds with a condition": "hold with a condition", "fails": "fail"}
    plural |= {"gap in the proof": "have a gap in the proof", "not decided": "are not decided"}
    single = {"gap in the proof": "has a gap in the proof", "not decided": "is not decided"}
    *first, last = [
        f"{counts[verdict]} {single.get(verdict, verdict) if counts[verdict] == 1 else plural[verdict]}"
        for verdict in COUNTED
        if counts[verdict]
    ] or ["none"]
    return f"{', '.join(first)} and {last}" if first else last


def link(chapter: Chapter) -> str:
    return f"../{chapter.path.as_posix()}#{chapter.anchor}"


def summary(chapters: Sequence[Chapter]) -> str:
    """Counts by verdict, one row per chapter, then by who says it."""
    claims = [claim for chapter in chapters for claim in chapter.claims]
    groups = [
        (f"[{c.ledger.chapter} {markdown(c.title)}](#claims-of-chapter-{c.ledger.chapter})", c.claims) for c in chapters
    ]
    groups += [
        ("*statements of the paper*", [claim for claim in claims if claim.of_the_paper]),
        ("*statements of this book*", [claim for claim in claims if not claim.of_the_paper]),
        ("**all**", claims),
    ]
    lines = [
        "| | " + " | ".join(f"{MARKS[verdict]} {verdict}" for verdict in COUNTED) + " | all |",
        "|---|" + "---:|" * (len(COUNTED) + 1),
    ]
    for name, members in groups:
        counts = count(members)
        numbers = [str(counts[verdict]) for verdict in COUNTED] + [str(len(members))]
        lines.append(f"| {name} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def where(claim: Claim) -> str:
    """Place, words and label in the paper, or the chapter that says it."""
    if not claim.of_the_paper:
        return markdown(str(claim.source))
    return f"{markdown(str(claim.place))}: “{markdown(str(claim.phrase))}” (`{claim.label}`)"


def charitable(claim: Claim) -> list[str]:
    """The paragraph with the most charitable reading, in the cell of what was measured."""
    return [] if claim.charitable is None else ["", f"    *Charitably:* {markdown(claim.charitable)}"]


def table(chapter: Chapter) -> str:
    """The claims of one chapter, each with a label of its own."""
    lines = [
        f"(claims-of-chapter-{chapter.ledger.chapter})=",
        f"## {chapter.ledger.chapter} {markdown(chapter.title)}",
        "",
        f"Tested in [chapter {chapter.ledger.chapter}]({link(chapter)}).",
        "",
        "````{list-table}",
        ":header-rows: 1",
        ":widths: 6 20 28 33 13",
        ":class: claims",
        "",
        "* - no.",
        "  - where",
        "  - claim",
        "  - measured",
        "  - verdict",
    ]
    for claim in chapter.claims:
        lines += [
            f"* - (claim-{(name := claim.number.replace('.', '-'))})=",
            "",
            f"    {{ref}}`{claim.number} <evidence-{name}>`",
            f"  - {where(claim)}",
            f"  - {markdown(claim.statement)}",
            f"  - {markdown(claim.measured)}",
            *charitable(claim),
            f"  - {MARKS[claim.verdict]} **{claim.verdict}**",
        ]
    return "\n".join([*lines, "````"])


def page(chapters: Sequence[Chapter]) -> str:
    """The text of book/claims.md."""
    claims = [claim for chapter in chapters for claim in chapter.claims]
    paper = [claim for claim in claims if claim.of_the_paper]
    own = [claim for claim in claims if not claim.of_the_paper]
    alt = "; ".join(f"chapter {c.ledger.chapter}: {in_words(count(c.claims))}" for c in chapters)
    head = HEAD.format(
        total=len(claims),
        paper=len(paper),
        paper_verdicts=in_words(count(paper)),
        own=len(own),
        own_verdicts=in_words(count(own)),
        misprints=", ".join(c.number for chapter in chapters for c in chapter.ledger.claims if c.verdict == MISPRINT),
        picture=PICTURE.name,
        alt=f"A chart with one square per claim. {alt[:1].upper()}{alt[1:]}.",
    )
    return "\n\n".join([head.rstrip("\n"), summary(chapters), *map(table, chapters)]) + "\n"


def files(root: Path) -> dict[Path, str]:
    """What the two files should hold, by their paths relative to the root."""
    chapters = read_chapters(root)
    if not chapters:
        sys.exit(f"no notebooks in {root / 'notebooks'}")
    rows = [(f"{chapter.ledger.chapter} {chapter.title}", chapter.claims) for chapter in chapters]
    return {PAGE: page(chapters), PICTURE: claims_picture.draw(rows)}


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Write book/claims.md from the claims of all chapters.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file would change")
    check = parser.parse_args(arguments).check
    stale = []
    for name, text in files(root).items():
        path = root / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")
    for name in stale:
        print(f"{name}: {'not what the notebooks say; run `make notebooks`' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
