"""The table of tried and survived faults: printed from the last run of tests/faults, and compared with the README's.

python -m tools.fault_table            print it
python -m tools.fault_table --check    fail if the README shows another one
python -m tools.fault_table --write    put it into the README
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COUNTS = ROOT / "_build" / "faults.json"
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


def table(counts: dict[str, list[int]]) -> str:
    rows = [f"| {text} | {counts[name][0]:,} | {counts[name][1]:,} |" for name, text in ROWS.items() if name in counts]
    total = [sum(row[place] for row in counts.values()) for place in (0, 1)]
    head = ["| what | tried | survived |", "|---|---|---|"]
    return "\n".join([*head, *rows, f"| all | {total[0]:,} | {total[1]:,} |"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="fail if the README shows another one")
    parser.add_argument("--write", action="store_true", help="put it into the README")
    arguments = parser.parse_args()
    made = table(json.loads(COUNTS.read_text(encoding="utf-8")))
    print(made)
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    wanted = re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n{made}\n{END}", text, flags=re.DOTALL)
    if arguments.write:
        readme.write_text(wanted, encoding="utf-8")
    elif arguments.check and text != wanted:
        sys.exit("the README shows another table: python -m tools.fault_table --write")


if __name__ == "__main__":
    main()
