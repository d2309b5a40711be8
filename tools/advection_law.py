"""Predicted against measured best β at full size: write results/advection_law.jsonl, which chapter 6a shows.

    python -m tools.advection_law                       all parts, about half an hour on one core
    python -m tools.advection_law --parts linear study  these anew, the rows of the others are kept

The same command gives the same rows, up to rounding: everything random has a seed. The chapter redoes a part of them at
reduced size and compares.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from advdiff.atomic import replacing
from advdiff.datasets.causal.block_model import SHIFTS
from advdiff.experiments import advection_law, advection_study
from advdiff.experiments.advection_law import Row

FILE = Path("results/advection_law.jsonl")
SEEDS = range(5)
SETTINGS = (("block", "exponential"), ("block", "attention"), ("noisy", "exponential"), ("block", "inverse"))
# Solver, K, (w, k) and the values of β, around what the law says; each is trained on 500 nodes.
TRAINED = (
    ("exponential", 1, (0.5, 1), (0.0, 0.4, 0.7, 1.0, 1.5)),
    ("inverse", 1, (0.25, 1), (0.0, 0.25, 0.5, 0.8)),
    ("series", 1, (0.5, 1), (0.2, 0.5, 1.0)),
    ("exponential", 1, (0.25, 1), (0.0, 0.15, 0.3, 0.6)),
)


def linear() -> Iterator[list[Row]]:
    for shift in SHIFTS:
        for signal, solver in SETTINGS:
            for seed in SEEDS:
                step = 0.05 if solver == "inverse" else 0.1
                yield advection_law.linear_rows(shift, signal, solver, seed, step=step)


def series() -> Iterator[list[Row]]:
    for shift in SHIFTS:
        for seed in SEEDS:
            yield advection_law.series_rows(shift, seed)


def study() -> Iterator[list[Row]]:
    for shift in SHIFTS:
        for seed in range(2 * len(SEEDS)):
            yield advection_study.study_rows(shift, seed)


def trained() -> Iterator[list[Row]]:
    for solver, order, (share, power), betas in TRAINED:
        for beta in betas:
            for seed in SEEDS:
                yield [advection_law.trained_row(solver, beta, share, power, seed, 500, order=order)]


PARTS = {"linear": linear, "series": series, "study": study, "trained": trained}


def line(row: Row) -> str:
    """A row as JSON, numbers with four digits."""
    return json.dumps({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="parts to make anew")
    parser.add_argument("--file", type=Path, default=FILE)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    old = arguments.file.read_text(encoding="utf-8").splitlines() if arguments.file.exists() else []
    kept = {name: [text for text in old if json.loads(text)["kind"] == name] for name in PARTS}
    for name in arguments.parts:
        rows: list[str] = []
        for number, found in enumerate(PARTS[name](), start=1):
            rows += map(line, found)
            print(f"\r{name}: {number}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        kept[name] = rows
        with replacing(arguments.file) as file:
            file.write("".join(f"{text}\n" for name in PARTS for text in kept[name]).encode())


if __name__ == "__main__":
    main()
