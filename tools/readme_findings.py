"""What the book found, in three lines of the README, made from the claims in the outputs of the notebooks.

python -m tools.readme_findings            write the lines
python -m tools.readme_findings --check    write nothing; fail if they would change
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.gather_claims import ROOT, Chapter, count, in_words, markdown, read_chapters

START, END = "<!-- made by tools/readme_findings.py -->", "<!-- end -->"
# How the statements begin whose measurements the README shows.
SHOWN = {
    "Stability": "Local diffusion with D^-1/2 A D^-1/2 varies by at most",
    "The lever": "The lever is β",
}


def findings(chapters: Sequence[Chapter]) -> str:
    """The three lines: two claims of the book with what was measured, and the count of the paper's."""
    lines = []
    for title, beginning in SHOWN.items():
        found = [(c, claim) for c in chapters for claim in c.claims if claim.statement.startswith(beginning)]
        if len(found) != 1:
            raise ValueError(f"{len(found)} claims begin with {beginning!r}; name one of them in SHOWN.")
        ((chapter, claim),) = found
        link = f"[claim {claim.number}]({chapter.path.as_posix()}#{chapter.anchor})"
        measured = markdown(claim.measured.partition(";")[0])
        lines.append(f"- **{title}.** {markdown(claim.statement)}: {claim.verdict} ({measured}; {link}).")
    paper = [claim for chapter in chapters for claim in chapter.claims if claim.of_the_paper]
    lines.append(
        f"- **The paper.** Of {len(paper)} of its statements {in_words(count(paper))} ([all claims](book/claims.md)). "
        "What it says about trained models is decided by runs under [one protocol](book/protocol.md), "
        "which `make trial` makes."
    )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Write what the book found into the README.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the README would change")
    check = parser.parse_args(arguments).check
    path = root / "README.md"
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"{path.name} lacks the lines {START} and {END}; put them where the findings belong.")
    new = f"{before}{START}\n{findings(read_chapters(root))}\n{END}{after}"
    if new != text and not check:
        path.write_text(new, encoding="utf-8", newline="\n")
    if new != text:
        print(f"README.md: {'not what the notebooks say; run `make notebooks`' if check else 'written'}")
    return int(check and new != text)


if __name__ == "__main__":
    sys.exit(main())
