"""Digests of the recorded results, so that a number that was altered is noticed where the data are absent, too.

    python -m tools.digests            write results/digests.json; to be committed with new records
    python -m tools.digests --check    fail where a file is not what it was

Records are only ever appended. So the digest of a file of records is that of its first lines, as many as there were,
and the file may grow (as results/trial does while the trial runs) without becoming another one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from pathlib import Path

from advdiff.atomic import replacing

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"


def digest(path: Path, lines: int | None = None) -> dict[str, int | str]:
    """Lines and SHA-256 of a file, or of as many lines of it."""
    content = path.read_bytes().splitlines(keepends=True)
    kept = content[:lines]
    return {"lines": len(kept), "sha256": hashlib.sha256(b"".join(kept)).hexdigest()}


def files(folder: Path) -> list[Path]:
    return sorted(
        path for path in folder.rglob("*") if path.suffix in (".json", ".jsonl") and path.name != "digests.json"
    )


def wrong(folder: Path = RESULTS) -> list[str]:
    """What is not as it was, in one sentence each."""
    known = json.loads((folder / "digests.json").read_text(encoding="utf-8"))
    found = []
    for name, was in known.items():
        path = folder / name
        grows = path.suffix == ".jsonl"
        if not path.exists():
            found.append(f"{name} is gone")
        elif digest(path, was["lines"] if grows else None) != was:
            found.append(f"{name} was altered in its first {was['lines']} lines")
    new = {str(path.relative_to(folder)) for path in files(folder)} - set(known)
    return found + [f"{name} has no digest" for name in sorted(new)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail where something is not what it was")
    if parser.parse_args().check:
        if found := wrong():
            sys.exit("\n".join([*found, "if that was meant: python -m tools.digests"]))
        return
    made = {str(path.relative_to(RESULTS)): digest(path) for path in files(RESULTS)}
    with replacing(RESULTS / "digests.json") as file:
        file.write((json.dumps(made, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
