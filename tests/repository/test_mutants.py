"""The mistakes of ``tools/mutants.json`` can still be made, and what noticed each is written down."""

from __future__ import annotations

import ast
import json
import re

import pytest

from tools import mutate
from tools.mutation_run import ROOMS, ROOT, SUMMARY, Mutant, steps

MUTANTS = mutate.mutants()
FOUND = json.loads(SUMMARY.read_text(encoding="utf-8"))


def test_there_are_mutants_of_every_room() -> None:
    assert len(MUTANTS) >= 150 and {mutant.room for mutant in MUTANTS} == set(ROOMS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file[8:-3]}: {mutant.new.strip()[:40]}")
def test_a_mistake_can_still_be_made(mutant: Mutant) -> None:
    assert mutant.source.count(mutant.old) == 1, "bring tools/mutants.json up to date"
    changed = ast.parse(mutant.source.replace(mutant.old, mutant.new))
    assert ast.dump(changed) != ast.dump(ast.parse(mutant.source))


def test_all_were_tried() -> None:
    tried = [(each["file"], each["old"], each["new"]) for each in FOUND["mutants"]]
    assert tried == [(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS], "run `make mutants`"
    assert FOUND["tried"] == len(MUTANTS) == sum(room["tried"] for room in FOUND["rooms"].values())
    assert FOUND["killed"] == sum("by" in each for each in FOUND["mutants"])


def test_nearly_all_were_noticed_and_every_leak() -> None:
    assert FOUND["killed"] >= 0.97 * FOUND["tried"]
    assert all(each["reason"] and each["passed"] == 3 for each in FOUND["mutants"] if "by" not in each)
    leaks = [each for mutant, each in zip(MUTANTS, FOUND["mutants"], strict=True) if mutant.leak]
    assert len(leaks) >= 4 and all("by" in each for each in leaks)


def test_the_tests_that_noticed_are_there() -> None:
    for test in {each["by"].partition("[")[0] for each in FOUND["mutants"] if "::" in each.get("by", "")}:
        file, *_, name = test.split("::")
        defined = re.search(rf"\bdef {name}\b", (ROOT / file).read_text(encoding="utf-8")) or file.startswith("advdiff")
        assert defined, f"{test} has gone: try its mutants again"


def test_a_mutants_own_room_comes_first() -> None:
    near, far, slow = steps(Mutant("advdiff/nn/conv.py", "a", "b"))
    assert near.paths[:2] == ("tests/nn/test_conv.py", "tests/nn/test_conv_limits.py")
    assert {*near.paths} & {*far.paths} == set() and {*near.paths, *far.paths} == {*slow.paths}
    folders = {"/".join(path.split("/")[:2]) for path in slow.paths}
    assert {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))} == {
        *(folder for folder in folders if folder.startswith("tests/")), "tests/repository", "tests/browser"
    }  # fmt: skip
