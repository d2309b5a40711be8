"""The page of claims: squares and numbers lead somewhere, the filters do what they say, and links beat filters."""

from __future__ import annotations

import pytest

from tools import built_book
from tools.chromium import PHONE, Browser
from tools.gather_claims import MARKS, read_chapters

PAGE = "book/claims.html"
SHOWN = """
const seen = element => element.checkVisibility();
const rows = [...document.querySelectorAll("table.claims tbody tr")].filter(seen);
return {
  verdicts: rows.map(row => row.cells[4].innerText.trim()),
  places: rows.map(row => row.cells[1].innerText.trim()),
  headings: [...document.querySelectorAll("section:has(table.claims) > h2")].filter(seen).length,
  squares: document.querySelectorAll(".inline-svg a[href^='#claim-']:not(.left-out)").length,
  said: document.querySelector(".claims-filters output").value,
};
"""
CHOOSE = """
const select = document.querySelector(`.claims-filters [name=${arguments[0]}]`);
select.value = arguments[1];
select.dispatchEvent(new Event("change", { bubbles: true }));
"""
CLAIMS = [claim for chapter in read_chapters(built_book.ROOT) for claim in chapter.claims]


@pytest.fixture
def page(browser: Browser) -> Browser:
    browser.open(PAGE)
    return browser


def test_all_are_listed_before_a_choice(page: Browser) -> None:
    shown = page.run(SHOWN)
    assert len(shown["verdicts"]) == shown["squares"] == len(CLAIMS)
    assert shown["said"] == f"{len(CLAIMS)} of {len(CLAIMS)} claims"


def test_filters_by_verdict_place_and_speaker(page: Browser) -> None:
    page.run(CHOOSE, "verdict", "fails")
    fails, shown = [claim for claim in CLAIMS if claim.verdict == "fails"], page.run(SHOWN)
    assert shown["verdicts"] == [f"{MARKS['fails']} fails"] * len(fails) and shown["squares"] == len(fails)
    assert shown["headings"] == len({claim.number.partition(".")[0] for claim in fails})
    page.run(CHOOSE, "paper", "this book")
    own = [claim for claim in fails if not claim.of_the_paper]
    assert page.run(SHOWN)["said"] == f"{len(own)} of {len(CLAIMS)} claims"
    page.run(CHOOSE, "verdict", "")
    page.run(CHOOSE, "paper", "")
    page.run(CHOOSE, "section", "Section 3.4")
    places = page.run(SHOWN)["places"]
    assert places and all(place.startswith("Section 3.4") for place in places)
    page.open(f"{PAGE}{page.run('return location.search')}")
    assert page.run(SHOWN)["places"] == places, "the address keeps the choice"


def test_a_square_leads_to_its_claim_although_it_was_left_out(page: Browser) -> None:
    holds = next(claim for claim in CLAIMS if claim.verdict == "holds")
    page.run(CHOOSE, "verdict", "fails")
    page.run("location.hash = arguments[0]", f"claim-{holds.number.replace('.', '-')}")
    page.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert len(page.run(SHOWN)["verdicts"]) == len(CLAIMS)
    assert page.run("return document.querySelector('tr:has(:target)').cells[0].innerText.trim()") == holds.number


def test_a_claim_leads_to_its_evidence_and_back(page: Browser) -> None:
    number, name = CLAIMS[40].number, CLAIMS[40].number.replace(".", "-")
    evidence = page.run(
        f"return document.getElementById('claim-{name}').closest('tr').cells[0].querySelector('a').href"
    )
    page.open(evidence.removeprefix(f"{page.site}/"))
    said = page.run(
        f"const said = document.getElementById('evidence-{name}'); return [said.innerText, said.firstChild.href]"
    )
    assert said[0].startswith(f"{number} {MARKS[CLAIMS[40].verdict]} {CLAIMS[40].verdict}")
    assert said[1].endswith(f"/{PAGE}#claim-{name}")
    assert (
        page.run(f"const box = document.getElementById('evidence-{name}').getBoundingClientRect(); return box.top")
        < 1000
    )


def test_the_picture_is_named_and_wide_enough_to_be_read_on_a_phone(page: Browser) -> None:
    page.resize(*PHONE)
    svg = "document.querySelector('.inline-svg svg')"
    assert page.run(f"return {svg}.getBoundingClientRect().width") >= 600
    assert "chapter 5" in page.run(f"return {svg}.getAttribute('aria-label')")
