"""Does a test notice if the library is changed in one place? Small mistakes, made one at a time in a scratch copy.

    python -m tools.mutate              try what has not been tried yet, and print the table
    python -m tools.mutate --table      only print it

``tools/mutants.json`` lists the mistakes: a file, a text that occurs in it once, and what to put in its place, with a
reason where no test can notice. Each is tried against the tests of its room alone, without data. What was found is kept
in ``_build/mutation.json``, so that an interrupted run goes on; what is in a changed file is tried again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "_build" / "mutation.json"
COPY = ROOT / "_build" / "mutation"
#: Room → folders of tests, the likeliest to notice first.
TESTS = {
    "theory": ["tests/theory"],
    "operators": ["tests/operators", "tests/propagation", "tests/nn"],
    "propagation": ["tests/propagation", "tests/operators"],
    "nn": ["tests/nn"],
    "datasets": ["tests/datasets"],
    "experiments": ["tests/experiments"],
    "results": ["tests/results", "tests/viz"],
}


@dataclass(frozen=True)
class Mutant:
    """A mistake; ``reason`` says why no test can notice, where that is so."""

    file: str
    old: str
    new: str
    reason: str = ""

    @property
    def room(self) -> str:
        return self.file.split("/")[1]

    def source(self, root: Path = ROOT) -> str:
        return (root / self.file).read_text(encoding="utf-8")

    @property
    def applies(self) -> bool:
        return (ROOT / self.file).exists() and self.source().count(self.old) == 1

    @property
    def key(self) -> str:
        """Of the mistake in this version of the file."""
        return hashlib.sha256("\0".join((self.file, self.old, self.new, self.source())).encode()).hexdigest()[:16]

    def tests(self) -> list[str]:
        """Files of tests, those named like the mutant's own first."""
        stem = Path(self.file).stem
        found = [path for folder in TESTS[self.room] for path in sorted((ROOT / folder).glob("test_*.py"))]
        found.sort(key=lambda path: (stem not in path.stem, TESTS[self.room].index(str(path.parent.relative_to(ROOT)))))
        return [str(path.relative_to(ROOT)) for path in found]


def mutants() -> list[Mutant]:
    return [Mutant(**each) for each in json.loads((ROOT / "tools/mutants.json").read_text(encoding="utf-8"))]


def copy_repository() -> None:
    shutil.rmtree(COPY, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, listed.split("\0")):
        if not name.startswith(("notebooks/", "book/")) and (ROOT / name).is_file():
            target = COPY / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)


def attempt(mutant: Mutant) -> dict[str, object]:
    """Make the mistake, run the tests until one fails, and undo it."""
    path, source = COPY / mutant.file, mutant.source()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ADVDIFF_")}
    environment |= {
        "PYTHONPATH": str(COPY),
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment["ADVDIFF_CACHE"] = str(COPY / "cache")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", "--timeout", "300"]
    began = time.monotonic()
    path.write_text(source.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        run = subprocess.run([*command, *mutant.tests()], cwd=COPY, env=environment, capture_output=True, text=True)
    finally:
        path.write_text(source, encoding="utf-8")
    said = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return {
        "file": mutant.file,
        "new": mutant.new,
        "killed": run.returncode != 0,
        "by": said[0].split(" - ")[0] if said else ("" if run.returncode == 0 else f"exit {run.returncode}"),
        "seconds": round(time.monotonic() - began, 1),
    }


def table(tried: list[tuple[Mutant, dict]]) -> str:
    lines = ["| room | tried | killed | no test can notice | survived |", "|---|---|---|---|---|"]
    for room in [*TESTS, "all"]:
        rows = [(mutant, each) for mutant, each in tried if room in (mutant.room, "all")]
        killed = sum(bool(each["killed"]) for _, each in rows)
        excused = sum(bool(mutant.reason) and not each["killed"] for mutant, each in rows)
        lines.append(f"| {room} | {len(rows)} | {killed} | {excused} | {len(rows) - killed - excused} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--table", action="store_true", help="try nothing")
    parser.add_argument("--room", choices=TESTS, help="only this one")
    arguments = parser.parse_args()
    found = json.loads(FOUND.read_text()) if FOUND.exists() else {}
    chosen = [mutant for mutant in mutants() if arguments.room in (None, mutant.room)]
    stale = [mutant for mutant in chosen if not mutant.applies]
    todo = [mutant for mutant in chosen if mutant.applies and mutant.key not in found]
    if todo and not arguments.table:
        copy_repository()
        for number, mutant in enumerate(todo, start=1):
            found[mutant.key] = each = attempt(mutant)
            FOUND.write_text(json.dumps(found, indent=1, ensure_ascii=False))
            print(f"{number}/{len(todo)} {'killed  ' if each['killed'] else 'SURVIVED'} {each['seconds']:6} s  "
                  f"{mutant.file}: {mutant.new[:80]}", flush=True)  # fmt: skip
    tried = [(mutant, found[mutant.key]) for mutant in chosen if mutant.applies and mutant.key in found]
    print(table(tried))
    for mutant, each in tried:
        if not each["killed"]:
            print(f"survived: {mutant.file}: {mutant.old}  →  {mutant.new}  ({mutant.reason or 'no reason given'})")
    for mutant in stale:
        print(f"the text is not there (any more): {mutant.file}: {mutant.old}")
    judged = [each for mutant, each in tried if not mutant.reason or each["killed"]]
    share = sum(bool(each["killed"]) for each in judged) / max(len(judged), 1)
    print(f"{len(tried)} of {len(chosen)} tried, {100 * share:.1f} % killed")


if __name__ == "__main__":
    main()
