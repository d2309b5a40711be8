"""The page of all claims is what the notebooks say: nobody typed it, nobody forgot to make it anew."""

from __future__ import annotations

import html
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml

from advdiff.claims import MIME_TYPE, MISPRINT, VERDICTS, Claim, Ledger
from tools import gather_claims
from tools.gather_claims import PAGE, PICTURE, Chapter

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def chapters() -> list[Chapter]:
    return gather_claims.read_chapters(ROOT)


@pytest.fixture(scope="module")
def claims(chapters: list[Chapter]) -> list[Claim]:
    return [claim for chapter in chapters for claim in chapter.claims]


def notebook(path: Path, ledger: Ledger, title: str = "A chapter", *, text: str | None = None, copies: int = 1) -> None:
    """A notebook with as little as the tool needs."""
    data = ledger._repr_mimebundle_() | ({} if text is None else {"text/plain": text})
    output = {"output_type": "execute_result", "data": data}
    cells = [
        {"cell_type": "markdown", "source": [f"# {title}\n", "\n", "```python\n", "# not a heading\n", "```\n"]},
        {"cell_type": "markdown", "source": "## What holds, and what does not\n\nThe ledger:"},
        {"cell_type": "code", "source": "ledger", "outputs": [output] * copies},
        {"cell_type": "markdown", "source": "## Exercises"},
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")


def ledger_of(chapter: int, **changes: str) -> Ledger:
    ledger = Ledger(chapter)
    paper = {"place": "Section 1", "label": "sec:one", "phrase": "as is"}
    if changes.get("verdict") == "fails":
        paper["charitable"] = "c"
    texts = {"statement": "a", "measured": "b", "verdict": "holds"} | ({} if "source" in changes else paper) | changes
    ledger.record(**texts, evidence=True)  # type: ignore[arg-type]
    return ledger


# ------------------------------------------------------------------------------------------ the committed page


@pytest.mark.parametrize("name", [PAGE, PICTURE], ids=str)
def test_committed_file_is_what_the_tool_writes(name: Path) -> None:
    written = gather_claims.files(ROOT)[name]
    assert (ROOT / name).read_text(encoding="utf-8") == written, (
        "run `make notebooks` or `python -m tools.gather_claims`"
    )


def test_there_are_enough_claims_and_each_has_a_verdict(claims: list[Claim]) -> None:
    assert len(claims) >= 35
    assert {claim.verdict for claim in claims} <= set(VERDICTS)
    for claim in claims:
        assert claim.statement and claim.where and claim.measured, claim.number


def test_misprints_are_in_the_errata_and_not_on_the_page(chapters: list[Chapter]) -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    misprints = [c for chapter in chapters for c in chapter.ledger.claims if c.verdict == MISPRINT]
    assert misprints and all(claim.of_the_paper for claim in misprints)
    assert f"some numbers are missing: {', '.join(claim.number for claim in misprints)}." in page
    errata = (ROOT / "book" / "errata.md").read_text(encoding="utf-8")
    checked = re.findall(r"\*\*Checked\*\* by a cell of chapter (\w+), (\S+) of its ledger; a misprint", errata)
    assert sorted(number for _, number in checked) == sorted(claim.number for claim in misprints)
    for claim in misprints:
        assert f"(claim-{claim.number.replace('.', '-')})=" not in page, claim.number


@pytest.mark.parametrize("name", ["errata.md", "line_by_line.md", "the_proof.md"])
def test_other_pages_link_to_claims_that_count(name: str, claims: list[Claim]) -> None:
    links = re.findall(r"\[[^\]]*?([\w.]+)\]\((claim-[\w-]+)\)", (ROOT / "book" / name).read_text(encoding="utf-8"))
    counted = {claim.number for claim in claims if claim.verdict != MISPRINT}
    assert links
    for number, target in links:
        assert target == f"claim-{number.replace('.', '-')}" and number in counted, (name, number, target)


def test_numbers_are_unique_and_every_notebook_has_claims(chapters: list[Chapter], claims: list[Claim]) -> None:
    assert len({claim.number for claim in claims}) == len(claims)
    assert {ROOT / chapter.path for chapter in chapters} == set((ROOT / "notebooks").glob("[0-9]*.ipynb"))


def test_every_claim_stands_on_the_page(claims: list[Claim]) -> None:
    page = (ROOT / PAGE).read_text(encoding="utf-8")
    for claim in claims:
        assert page.count(f"(claim-{claim.number.replace('.', '-')})=\n") == 1
    assert page.startswith("% Made by tools/gather_claims.py")


def test_make_notebooks_gathers_the_claims() -> None:
    target = (ROOT / "Makefile").read_text(encoding="utf-8").split("\nnotebooks: ")[1].split("\n\n")[0]
    assert target.index("tools.execute_notebooks") < target.index("tools.gather_claims")


@pytest.mark.slow
def test_a_verdict_in_the_json_alone_that_changes_fails_nbval(tmp_path: Path) -> None:
    pytest.importorskip("nbval")
    source = "from advdiff.claims import Ledger\nledger = Ledger(1)\n" + (
        "ledger.record('a', source='this chapter', measured='b', verdict='holds', evidence=True)\nledger"
    )
    data = ledger_of(1, source="this chapter")._repr_mimebundle_()

    def nbval() -> subprocess.CompletedProcess[str]:
        output = nbformat.v4.new_output("execute_result", data, execution_count=1)
        cell = nbformat.v4.new_code_cell(source, execution_count=1, outputs=[output])
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "01_first.ipynb")
        command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q", "-p", "no:cacheprovider"]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        command += ["-c", os.devnull, "--rootdir", str(tmp_path), "01_first.ipynb"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, check=False)

    assert nbval().returncode == 0
    data[MIME_TYPE][0]["verdict"] = "fails"
    changed = nbval()
    assert changed.returncode == 1 and f"mismatch '{MIME_TYPE}'" in changed.stdout


def test_every_output_has_a_type_that_the_book_can_show() -> None:
    shown = {"text/html", "image/png", "application/vnd.jupyter.widget-view+json"}
    for path in (ROOT / "notebooks").glob("[0-9]*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                types = set(output.get("data", {"text/html": ""})) - {"text/plain"}
                assert not types or types & shown, f"{path.name}: {', '.join(sorted(types))}"


# --------------------------------------------------------------------------------------------------- the tool


def test_a_changed_ledger_makes_the_check_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notebooks" / "01_first.ipynb"
    notebook(path, ledger_of(1))
    assert gather_claims.main(["--check"], tmp_path) == 1
    assert not (tmp_path / PAGE).exists()
    assert gather_claims.main([], tmp_path) == 0
    assert gather_claims.main(["--check"], tmp_path) == 0

    notebook(path, ledger_of(1, verdict="fails"))
    capsys.readouterr()
    assert gather_claims.main(["--check"], tmp_path) == 1
    assert "claims.md: not what the notebooks say" in capsys.readouterr().out
    assert gather_claims.main([], tmp_path) == 0
    assert gather_claims.main(["--check"], tmp_path) == 0


def test_a_new_chapter_appears(tmp_path: Path) -> None:
    notebook(tmp_path / "notebooks" / "01_first.ipynb", ledger_of(1), "First")
    notebook(tmp_path / "notebooks" / "12_later.ipynb", ledger_of(12, source="this chapter"), "Later & <last>")
    page, picture = gather_claims.files(tmp_path).values()
    assert "../notebooks/12_later.ipynb#what-holds-and-what-does-not" in page
    assert "There are 2 claims" in page and "1 of them are statements of the paper: 1 holds" in page
    names = [text.text for text in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert names[-1] == "12 Later & <last>"


@pytest.mark.parametrize(
    ("name", "ledger", "options", "message"),
    [
        ("01_a.ipynb", ledger_of(1), {"copies": 0}, "shows 0 ledgers"),
        ("01_a.ipynb", ledger_of(1), {"copies": 2}, "shows 2 ledgers"),
        ("01_a.ipynb", ledger_of(1), {"text": "1.1  FAILS"}, "those that are shown differ"),
        ("02_a.ipynb", ledger_of(1), {}, "has the claims of chapter 1"),
        ("01_a.ipynb", Ledger(1), {}, "holds no claims"),
    ],
    ids=["no ledger", "two ledgers", "two versions", "other chapter", "empty"],
)
def test_a_notebook_without_clear_claims_is_named(
    name: str, ledger: Ledger, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    notebook(tmp_path / "notebooks" / name, ledger, **options)
    with pytest.raises(SystemExit, match=f"{name}.*{message}"):
        gather_claims.files(tmp_path)


LIKE_MARKUP = [
    "‖ΔA‖₂ | x_u * y_v $z$ `code` <b>bold</b> [link](url) ![image](url) {math}`x` {{sub}} \\ & &lt; ~~no~~",
    *("- minus", "+ plus", "1. first", "1) first", "#2 to #12", "# heading", "% comment", "> quote", "***", "==="),
    *("(target)=", ": definition", "+++", "```{note}", ":::{note}"),
]


def test_no_text_is_taken_for_markup(claims: list[Claim]) -> None:
    config = pytest.importorskip("myst_parser.config.main").MdParserConfig
    create = pytest.importorskip("myst_parser.parsers.mdit").create_md_parser
    renderer = pytest.importorskip("markdown_it.renderer").RendererHTML
    book = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["parse"]["myst_enable_extensions"]
    parser = create(config(enable_extensions=set(book)), renderer)
    for text in [
        *LIKE_MARKUP,
        *(text for claim in claims for text in (claim.statement, claim.where, claim.measured, claim.charitable or "c")),
    ]:
        shown = html.unescape(parser.render(f"- {gather_claims.markdown(text)}"))
        assert shown == f"<ul>\n<li>{text}</li>\n</ul>\n"
