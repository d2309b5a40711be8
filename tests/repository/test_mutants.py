"""The mistakes of ``tools/mutants.json`` can still be made, and are tried with the nearest tests first."""

from __future__ import annotations

import ast

import pytest

from tools import mutate
from tools.mutation_run import ROOMS, ROOT, Mutant, steps

MUTANTS = mutate.mutants()


def test_there_are_mutants_of_every_room() -> None:
    assert len(MUTANTS) >= 150 and {mutant.room for mutant in MUTANTS} == set(ROOMS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.file[8:-3]}: {mutant.new.strip()[:40]}")
def test_a_mistake_can_still_be_made(mutant: Mutant) -> None:
    assert mutant.source.count(mutant.old) == 1, "bring tools/mutants.json up to date"
    changed = ast.parse(mutant.source.replace(mutant.old, mutant.new))
    assert ast.dump(changed) != ast.dump(ast.parse(mutant.source))


def test_a_mutants_own_room_comes_first() -> None:
    near, far, slow = steps(Mutant("advdiff/nn/conv.py", "a", "b"))
    assert {*near.paths[:2]} == {"tests/nn/test_conv.py", "tests/nn/test_conv_limits.py"}
    assert {*near.paths} & {*far.paths} == set() and {*near.paths, *far.paths} == {*slow.paths}
    folders = {"/".join(path.split("/")[:2]) for path in slow.paths}
    assert {f"tests/{path.name}" for path in (ROOT / "tests").iterdir() if any(path.glob("test_*.py"))} == {
        *(folder for folder in folders if folder.startswith("tests/")), "tests/repository", "tests/browser"
    }  # fmt: skip
