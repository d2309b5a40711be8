"""Every row about the paper is found in the paper: its section, its label and its words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from advdiff.claims import Claim
from tests.repository import the_paper
from tools import gather_claims

ROOT = Path(__file__).parents[2]
LATEX = r"""\section{One}\label{sec:one} A \emph{short} word~\citep{x} for \model. % and a comment
\subsection{Two} $\|\Delta \tilde{\mathbf A}\|_2$ is bounded, see Eqn.~\ref{eq} \section*{Thanks} nobody
\appendix \section{Proofs}\label{app} First \subsection{Lemma} done \section{More} end"""


def test_the_source_is_cut_into_numbered_sections():
    found = the_paper.sections(the_paper.without_comments(LATEX))
    assert sorted(found) == ["1", "1.1", "A", "A.1", "B"]
    assert "is bounded" in found["1.1"] and "is bounded" in found["1"] and "nobody" not in found["1"]
    assert r"\label{app}" in found["A"] and "done" in found["A.1"] and "end" in found["B"]


def test_words_are_freed_of_commands():
    words = the_paper.plain(the_paper.without_comments(LATEX))
    assert "A short word for AdvDIFFormer." in words and "comment" not in words
    assert "A 2 is bounded, see Eqn." in words


@pytest.fixture(scope="module")
def parts() -> dict[str, str]:
    if not the_paper.SOURCE.is_file():
        pytest.skip("the paper's source does not lie beside the project")
    return the_paper.sections(the_paper.read())


@pytest.fixture(scope="module")
def claims() -> list[Claim]:
    return [c for chapter in gather_claims.read_chapters(ROOT) for c in chapter.ledger.claims if c.of_the_paper]


def test_every_statement_of_the_paper_has_a_place(claims: list[Claim]) -> None:
    assert len(claims) > 80
    for claim in claims:
        assert re.match(r"(Section \d|Appendix [A-G])(\.\d+)*(,|$)", str(claim.place)), claim.number


def test_label_and_phrase_are_found_there(claims: list[Claim], parts: dict[str, str]) -> None:
    words = {number: the_paper.plain(latex) for number, latex in parts.items()}
    missing = []
    for claim in claims:
        number = str(claim.place).replace(",", "").split()[1]
        if f"\\label{{{claim.label}}}" not in parts[number.partition(".")[0]]:
            missing.append(f"{claim.number}: label {claim.label} in {number}")
        if the_paper.plain(str(claim.phrase)) not in words[number]:
            missing.append(f"{claim.number}: “{claim.phrase}” in {number}")
    assert not missing


# ------------------------------------------------------------------------- the page that goes through it line by line

PAGE = ROOT / "book" / "line_by_line.md"
THEORY = ("2", "3", "4", "A", "B", "C", "D")


def test_every_label_of_the_theory_is_at_home(parts: dict[str, str]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    labels = [label for number in THEORY for label in re.findall(r"\\label\{([^}]*)\}", parts[number])]
    assert len(labels) > 40
    assert [label for label in labels if f"| `{label}` |" not in page] == []


def test_every_statement_and_display_of_the_theory_has_a_row(parts: dict[str, str]) -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    counted = {"two displays": 2, "three displays": 3, "eight displays": 8}
    covered = sum(next((n for words, n in counted.items() if words in row), 1) for row in rows)
    displays = sum(parts[number].count(r"\begin{equation}") for number in THEORY)
    assert covered >= displays


def test_no_place_of_the_page_is_empty() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert len(rows) > 60
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 3 and all(cells), row
        assert row.startswith("| label |") or re.search(
            r"\]\(|\{prf:ref\}|\{eq\}|\{numref\}|below|as `|the same", row
        ), row
