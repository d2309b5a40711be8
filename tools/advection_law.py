"""Predicted against measured best β at full size: write results/advection_law.jsonl, which chapter 6a shows.

    python -m tools.advection_law                       what is missing; about two hours on one core for all of it
    python -m tools.advection_law --again trained       the rows of this kind anew
    python -m tools.advection_law --processes 2         two tasks at a time
    python -m tools.advection_law --check 5             five tasks anew, drawn at random: are the rows what they were?

The plan is a list of tasks. A task is known by its key, the first fields of each of its rows, and its rows are written
as soon as they are there, so that a command that was interrupted goes on where it stood. The same task gives the same
rows, up to rounding: everything random has a seed. The chapter redoes a part of them at reduced size and compares.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import torch

from advdiff.atomic import locked, replacing
from advdiff.datasets.causal.block_model import SHIFTS
from advdiff.experiments import advection_law, advection_study, advection_trained
from advdiff.experiments.advection_law import Row
from advdiff.experiments.advection_world import POWERS, SHARES

FILE = Path("results/advection_law.jsonl")
KINDS = ("linear", "series", "study", "trained", "stopped")
SEEDS = range(5)
SETTINGS = (("block", "exponential"), ("block", "attention"), ("noisy", "exponential"), ("block", "inverse"))
# What is trained: signal, solver, the orders K, the shares w, the shifts. The inverse with attention needs β < θ, which
# the law leaves for w > 1/2. The series has no β to predict: one share is enough to see whether β matters.
TRAINED = (
    ("block", "exponential", (1,), SHARES[:3], SHIFTS),
    ("block", "inverse", (1,), SHARES[:2], SHIFTS),
    ("block", "series", POWERS, SHARES[1:2], SHIFTS),
    ("noisy", "exponential", (1,), SHARES[:3], SHIFTS[:1]),
    ("block", "exponential", (1,), SHARES[3:], SHIFTS),
)
#: The same models, stopped after a quarter of the epochs: does the best β depend on how long one trains?
STOPPED = 400
KEPT = ("nodes", "share", "power", "betas", "errors", "chosen", "epochs", "jacobi", "reachable", "measured")
Key = tuple[tuple[str, Any], ...]
Plan = dict[Key, Callable[[], list[Row]]]


def plan() -> Plan:
    """Every task by its key."""
    found: Plan = {}

    def add(make: Callable[[], list[Row]], **key: Any) -> None:
        found[tuple(key.items())] = make

    for shift in SHIFTS:
        for signal, solver in SETTINGS:
            step = 0.05 if solver == "inverse" else 0.1
            for seed in SEEDS:
                make = partial(advection_law.linear_rows, shift, signal, solver, seed, step=step)
                add(make, kind="linear", shift=shift, signal=signal, solver=solver, seed=seed)
    for shift in SHIFTS:
        for seed in SEEDS:
            add(partial(advection_law.series_rows, shift, seed), kind="series", shift=shift, seed=seed)
    for shift in SHIFTS:
        for seed in range(2 * len(SEEDS)):
            add(partial(advection_study.study_rows, shift, seed), kind="study", shift=shift, seed=seed)
    for signal, solver, orders, shares, shifts in TRAINED:
        for shift in shifts:
            for order in orders:
                for seed in SEEDS:
                    make = partial(advection_trained.trained_rows, shift, signal, solver, shares, seed, order=order)
                    key = {"kind": "trained", "shift": shift, "signal": signal, "solver": solver, "order": order}
                    key |= {"pure": shares[0] == 1, "seed": seed}
                    add(make, **key)
                    if solver != "series":
                        add(partial(_stopped, make, key), **key | {"kind": "stopped"})
    return {key: found[key] for kind in KINDS for key in found if dict(key)["kind"] == kind}


def _stopped(make: Callable[..., list[Row]], key: Row) -> list[Row]:
    return [key | {"kind": "stopped"} | {name: row[name] for name in KEPT} for row in make(most=STOPPED)]


def rounded(value: Any) -> Any:
    """Numbers with four digits, also within rows and lists."""
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    if isinstance(value, list):
        return [rounded(one) for one in value]
    return float(f"{value:.4g}") if isinstance(value, float) else value


def read(path: Path, keys: Iterable[Key]) -> dict[Key, list[Row]]:
    """The recorded rows by task; those of no task are left out."""
    found: dict[Key, list[Row]] = {key: [] for key in keys}
    names = {tuple(name for name, _ in key) for key in found}
    for text in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        row = json.loads(text)
        for some in names:
            key = tuple((name, row.get(name)) for name in some)
            if key in found:
                found[key].append(row)
    return {key: rows for key, rows in found.items() if rows}


def write(path: Path, keys: Iterable[Key], news: dict[Key, list[Row]]) -> None:
    """Put new rows among those of the file, in the order of the plan."""
    keys = list(keys)
    with locked(path):
        known = read(path, keys) | news
        with replacing(path) as file:
            for key in keys:
                file.writelines(f"{json.dumps(row)}\n".encode() for row in known.get(key, []))


def run(key: Key) -> tuple[Key, list[Row]]:
    """One task, in a process of its own."""
    torch.set_num_threads(1)
    return key, rounded(plan()[key]())


def same(one: Any, other: Any) -> bool:
    """Equal up to what rounding and another machine's last digits do to a minimum."""
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return math.isclose(one, other, rel_tol=5e-3, abs_tol=1e-6) if isinstance(one, float) else bool(one == other)


def check(path: Path, number: int) -> None:
    """Do some of the recorded tasks again and compare."""
    known = read(path, plan())
    for key in random.sample(sorted(known), min(number, len(known))):
        again = run(key)[1]
        wrong = {n for new, old in zip(again, known[key], strict=True) for n in old if not same(new.get(n), old[n])}
        print("as recorded:" if not wrong else f"differs in {sorted(wrong)}:", dict(key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--again", nargs="+", choices=KINDS, default=[], help="kinds to make anew")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="only these")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--check", type=int, default=0, metavar="TASKS", help="compare so many tasks with the file")
    parser.add_argument("--file", type=Path, default=FILE)
    given = parser.parse_args()
    if given.check:
        check(given.file, given.check)
        return
    keys = list(plan())
    known = read(given.file, keys)
    wanted = {key: dict(key)["kind"] for key in keys}
    todo = [k for k, kind in wanted.items() if kind in given.kinds and (k not in known or kind in given.again)]
    with ProcessPoolExecutor(given.processes) as pool:
        for number, task in enumerate(as_completed([pool.submit(run, key) for key in todo]), start=1):
            key, rows = task.result()
            write(given.file, keys, {key: rows})
            print(f"\r{number} of {len(todo)} tasks", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


if __name__ == "__main__":
    main()
