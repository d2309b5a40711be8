"""The verdicts of all chapters in a second place, so that none is turned over by an edit and ``make notebooks`` alone.

python -m tools.verdicts             fail and say what differs
python -m tools.verdicts --accept    take the chapters' verdicts over into tests/repository/verdicts.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tools.gather_claims import ROOT, read_chapters

ACCEPTED = ROOT / "tests" / "repository" / "verdicts.json"


def verdicts(root: Path = ROOT) -> dict[str, dict[str, str]]:
    """Chapter → statement → verdict."""
    return {
        chapter.path.stem: {claim.statement: claim.verdict for claim in chapter.ledger.claims}
        for chapter in read_chapters(root)
    }


def differences(root: Path = ROOT) -> list[str]:
    """What was accepted and is said otherwise now, or is not said any more, or is new."""
    accepted, found = json.loads(ACCEPTED.read_text(encoding="utf-8")), []
    for chapter, now in verdicts(root).items():
        then = accepted.get(chapter, {})
        for statement in {**then, **now}:
            if then.get(statement) != now.get(statement):
                found.append(f"{chapter}: {statement[:90]}: was {then.get(statement)}, is {now.get(statement)}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--accept", action="store_true", help="the chapters are right")
    if parser.parse_args().accept:
        ACCEPTED.write_text(json.dumps(verdicts(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    elif found := differences():
        sys.exit("\n".join([*found, "if these are meant: python -m tools.verdicts --accept"]))


if __name__ == "__main__":
    main()
