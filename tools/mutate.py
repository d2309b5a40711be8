"""Does a test notice if the library is changed in one place? Small mistakes, made one at a time in a scratch copy.

    python -m tools.mutate              try what has not been tried yet, and print the table
    python -m tools.mutate --near       only with the tests of each mutant's own room
    python -m tools.mutate --table      only print it
    python -m tools.mutate --write      print it, and write tools/mutants_found.json; to be committed

``tools/mutants.json`` lists the mistakes: a file, a text that occurs in it once, and what to put in its place; with a
reason where no test can notice, and ``leak`` where test data would leak into training or into a choice.

The tests are those of ``make unit`` but for tests/repository, which looks at texts, this list among them. Tests judge a
mutant after they have passed on the library as it is. Each mutant gets a copy of the repository, as it was at the
start, without the data: first the tests of its room, the likeliest to notice in front; if these do not notice, all
others; the slow ones last. A test that takes longer than ``PATIENCE`` has noticed, since the slowest on the library as
it is takes less than a quarter of it. What was found is appended to ``_build/mutants.jsonl``, so that an interrupted
run goes on; with that, and with what was committed, only a mutant in a changed file is tried again, and one that
survived without a reason after a change of the tests.
"""

from __future__ import annotations

import argparse
import json
import sys

from tools.mutation_run import ROOMS, ROOT, SUMMARY, Mutant, known, try_all

LISTED = ROOT / "tools" / "mutants.json"


def mutants() -> list[Mutant]:
    return [Mutant(**each) for each in json.loads(LISTED.read_text(encoding="utf-8"))]


def summary(tried: list[tuple[Mutant, dict]]) -> dict:
    """What is committed: what noticed each mutant, or how far it came, and why."""
    rooms = {}
    for room in ROOMS:
        rows = [each for mutant, each in tried if mutant.room == room]
        rooms[room] = {"tried": len(rows), "killed": sum("by" in each for each in rows)}
    return {
        "listed": len(mutants()),
        "tried": len(tried),
        "killed": sum("by" in each for _, each in tried),
        "rooms": rooms,
        "mutants": [
            {"key": mutant.key, "file": mutant.file, "old": mutant.old, "new": mutant.new}
            | ({} if "by" in each else {"reason": mutant.reason})
            | {name: each[name] for name in ("by", "passed", "tests") if name in each}
            for mutant, each in tried
        ],
    }


def table(found: dict) -> str:
    lines = ["| room | tried | killed |", "|---|---|---|"]
    lines += [f"| {room} | {row['tried']} | {row['killed']} |" for room, row in found["rooms"].items()]
    share = 100 * found["killed"] / max(found["tried"], 1)
    lines.append(f"| all | {found['tried']} of {found['listed']} | {found['killed']} ({share:.1f} %) |")
    for each in found["mutants"]:
        if "by" not in each:
            lines.append(f"survived: {each['file']}: {each['old']} → {each['new']} ({each['reason'] or 'no reason'})")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--near", action="store_true", help="only with the tests of each mutant's own room")
    parser.add_argument("--table", action="store_true", help="try nothing")
    parser.add_argument("--write", action="store_true", help="try nothing, and write what was found")
    parser.add_argument("--rooms", choices=ROOMS, nargs="+", default=ROOMS, help="only these, in this order")
    arguments = parser.parse_args()
    chosen = [mutant for room in arguments.rooms for mutant in mutants() if mutant.room == room]
    stale = [mutant for mutant in chosen if not mutant.applies]
    if stale:
        sys.exit("\n".join(f"this text is not once in {mutant.file}: {mutant.old}" for mutant in stale))
    found = known() if arguments.table or arguments.write else try_all(chosen, arguments.near)
    tried = [mutant for mutant in mutants() if mutant in chosen and mutant.key in found]
    made = summary([(mutant, found[mutant.key]) for mutant in tried])
    print(table(made))
    if arguments.write:
        SUMMARY.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
