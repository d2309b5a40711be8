"""Make recorded runs again and compare: the numbers of results/ are those that this code gives.

    python -m tools.recompute --count 12           of the runs that took at most a minute, drawn anew every day
    python -m tools.recompute --count 12 --seed 3  the same ones every time

Only runs on data that are drawn by the program, and by code whose plans are still the same, can be made again
anywhere. Metrics agree up to ``RELATIVE``: sums in another order lead to other last digits, which training enlarges.
"""

from __future__ import annotations

import argparse
import datetime
import random
import sys
from pathlib import Path

from advdiff.experiments import read
from advdiff.experiments.records import Record
from advdiff.experiments.sweep import execute

ROOT = Path(__file__).resolve().parents[1]
RELATIVE = 0.02


def candidates(folder: Path, seconds: float) -> list[Record]:
    files = [*folder.glob("synthetic*.jsonl"), *folder.glob("trial/*synthetic*.jsonl")]
    records = [record for path in sorted(files) for record in read(path)]
    return [
        record
        for record in records
        if record.plan.dataset == "synthetic"
        and record.outcome.status == "finished"
        and record.outcome.seconds <= seconds
    ]


def difference(record: Record, again: Record) -> str:
    """What came out otherwise; empty if nothing did."""
    if again.outcome.status != record.outcome.status:
        return f"it {again.outcome.status} instead of {record.outcome.status}"
    for name, was in record.outcome.metrics.items():
        now = again.outcome.metrics.get(name)
        if was is None or now is None or abs(now - was) > RELATIVE * abs(was):
            return f"{record.outcome.metric} on {name} is {now} instead of {was}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--count", type=int, default=12, help="how many runs (default 12)")
    parser.add_argument("--seconds", type=float, default=60.0, help="only runs that took at most so long (default 60)")
    parser.add_argument("--seed", type=int, default=datetime.date.today().toordinal(), help="of the choice")
    arguments = parser.parse_args()
    known = candidates(ROOT / "results", arguments.seconds)
    if not known:
        sys.exit("no record can be made again here")
    wrong = 0
    for record in random.Random(arguments.seed).sample(known, min(arguments.count, len(known))):
        found = difference(record, execute(record.plan, device="cpu", threads=1))
        wrong += bool(found)
        print(f"{record.plan.label()}: {found or 'as recorded'}", flush=True)
    sys.exit(f"{wrong} runs differ from their records" if wrong else 0)


if __name__ == "__main__":
    main()
