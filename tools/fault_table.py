"""The table of tried and survived faults: printed from the last run of tests/faults, and compared with the README's.

python -m tools.fault_table            print it
python -m tools.fault_table --check    fail if something did not survive, or the README shows another one
python -m tools.fault_table --write    keep the run in tests/faults/tried.json, and put its table into the README
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNTS = ROOT / "_build" / "faults.json"
KEPT = ROOT / "tests" / "faults" / "tried.json"
README = ROOT / "README.md"
#: File of tests → what is tried there.
ROWS = {
    "objects": "public functions and all models, given lists, arrays, None, other tensors",
    "values": "NaN, ∞, huge, tiny and negative numbers; graph numbers that would fill the memory",
    "sparse": "sparse features with damaged indices",
    "stale_graphs": "writes that torch does not count, forks and threads, behind the memory of graphs",
    "files": "archives, arrays, tables and records with flipped bits or cut short",
    "commands": "the command where files are in the way or nobody reads on, and its workers when it is killed",
}
BEGIN, END = "<!-- faults -->", "<!-- end of faults -->"
#: Test → how much it tried, and how much of this survived.
Counts = dict[str, list[int]]


def table(counts: Counts) -> str:
    def row(text: str, tests: list[str]) -> str:
        tried, survived = (sum(counts[test][place] for test in tests) for place in (0, 1))
        return f"| {text} | {tried:,} | {survived:,} |"

    rows = [row(text, [test for test in counts if test.startswith(f"test_{name}.py::")]) for name, text in ROWS.items()]
    return "\n".join(["| what | tried | survived |", "|---|---|---|", *rows, row("all", list(counts))])


def with_table(text: str, made: str) -> str:
    """The README's text with this table in its place."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{made}\n{END}", text, flags=re.DOTALL)


def trouble(made: Counts, kept: Counts) -> list[str]:
    """What did not survive, and what is not as the README's run was. A test that was skipped here has no count."""
    found = [f"{test}: not survived" for test, (tried, survived) in made.items() if survived < tried]
    return found + [
        f"{test}: tries another number, or is new" for test in made if made[test][0] != kept.get(test, [0])[0]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="fail if the README shows another one")
    parser.add_argument("--write", action="store_true", help="keep the run, and put its table into the README")
    arguments = parser.parse_args()
    made = json.loads(COUNTS.read_text(encoding="utf-8"))
    print(table(made))
    if arguments.write:
        KEPT.write_text(COUNTS.read_text(encoding="utf-8"), encoding="utf-8")
        README.write_text(with_table(README.read_text(encoding="utf-8"), table(made)), encoding="utf-8")
    elif arguments.check and (found := trouble(made, json.loads(KEPT.read_text(encoding="utf-8")))):
        sys.exit("\n".join([*found, "if that was meant: python -m tools.fault_table --write"]))


if __name__ == "__main__":
    main()
