"""What noticed each mutant is written down: nearly all were noticed, and every leak."""

from __future__ import annotations

import json
import re

from tools import mutate
from tools.mutation_run import ROOT, SUMMARY

MUTANTS = mutate.mutants()
FOUND = json.loads(SUMMARY.read_text(encoding="utf-8"))


def test_the_summary_is_of_mutants_that_are_listed() -> None:
    listed = [(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS]
    tried = [(each["file"], each["old"], each["new"]) for each in FOUND["mutants"]]
    assert tried == [each for each in listed if each in tried], (
        "run `make mutants`, then: python -m tools.mutate --write"
    )
    assert FOUND["listed"] == len(listed)
    assert FOUND["tried"] == len(tried) == sum(room["tried"] for room in FOUND["rooms"].values())
    assert FOUND["killed"] == sum("by" in each for each in FOUND["mutants"])


def test_nearly_all_that_were_tried_were_noticed_and_every_leak() -> None:
    assert FOUND["killed"] >= 0.97 * FOUND["tried"]
    survived = [each for each in FOUND["mutants"] if "by" not in each]
    assert all(each["reason"] or each["passed"] < 3 for each in survived), "write the missing test, or the reason"
    leaks = {(mutant.file, mutant.new) for mutant in MUTANTS if mutant.leak}
    tried = [each for each in FOUND["mutants"] if (each["file"], each["new"]) in leaks]
    assert len(tried) >= 4 and all("by" in each for each in tried)


def test_the_tests_that_noticed_are_there() -> None:
    for test in {each["by"].partition("[")[0] for each in FOUND["mutants"] if "::" in each.get("by", "")}:
        file, *_, name = test.split("::")
        defined = re.search(rf"\bdef {name}\b", (ROOT / file).read_text(encoding="utf-8")) or file.startswith("advdiff")
        assert defined, f"{test} has gone: try its mutants again"
