"""``advdiff bench``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    bench = commands.add_parser(
        "bench", help="time the solvers side by side with the same model written as the pseudo-code reads"
    )
    bench.add_argument("--quick", action="store_true", help="small graphs only, under a minute")
    bench.add_argument("--no-scaling", action="store_true", help="leave out the scaling curves")
    bench.add_argument("--out", type=Path, default=Path("results/bench"), help="folder of bench.json and bench.png")
    bench.set_defaults(run=_bench)


def _bench(options: argparse.Namespace) -> int:
    from tqdm import tqdm

    from advdiff.bench import report, suite
    from advdiff.experiments.machine import keep_freed_memory

    keep_freed_memory()
    rows, scaling = [], []
    with tqdm(suite.rows(options.quick), desc="bench", unit="row", file=sys.stderr) as progress:
        for row in progress:
            rows.append(row)
            tqdm.write(report.line(row), file=sys.stdout)
    if not options.no_scaling:
        with tqdm(suite.scaling(options.quick), desc="scaling", unit="point", file=sys.stderr) as progress:
            scaling.extend(progress)
    report.write_json(options.out / "bench.json", rows, scaling)
    if scaling:
        report.draw(options.out / "bench.png", scaling)
    print(f"written to {options.out}")
    missed = [row for row in rows if row.verdict == "missed"]
    print(f"{sum(row.verdict == 'met' for row in rows)} bars met, {len(missed)} missed")
    return 0
