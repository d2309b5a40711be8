"""Seven regions of 40 to 64 streamers, as MUSAE ships them.

Pitfalls of the real files: rows of the target in no order; two users of FR twice; feature lists that repeat an index;
each friendship in one direction only. Also a user without features and one without friends; every other region gzipped.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np

from tests.miniatures.mark import mark

REGIONS = ("DE", "ENGB", "ES", "FR", "PTBR", "RU", "ZHTW")
NUM_FEATURES = 3170


def write(folder: Path, seed: int = 0) -> None:
    mark(folder)
    for number, region in enumerate(REGIONS):
        dice = np.random.default_rng([seed, number])
        nodes = 64 - 4 * number
        mature = dice.random(nodes) < 0.4 + 0.2 * (number == 0)
        files = {
            f"edges/{region}_edges.csv": _edges(mature, dice),
            f"features/{region}.json": _features(mature, dice),
            f"target/{region}_target.csv": _target(mature, dice, repeat=(7, 3) if region == "FR" else ()),
        }
        for name, text in files.items():
            put(folder / "twitch" / name, text, zipped=number % 2 == 0)


def put(path: Path, text: str, zipped: bool) -> None:
    """Write a text as it is or gzipped, and then with the ending that says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if zipped:
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    else:
        path.write_text(text, encoding="utf-8")


def _edges(mature: np.ndarray, dice: np.random.Generator) -> str:
    """A tree over all but the last user, who has no friends; then some more friends, rather of the same kind."""
    nodes = len(mature)
    pairs = {(int(dice.integers(child)), child) for child in range(1, nodes - 1)}
    while len(pairs) < 3 * nodes:
        u, v = sorted(map(int, dice.choice(nodes - 1, 2, replace=False)))
        if mature[u] == mature[v] or dice.random() < 0.3:
            pairs.add((u, v))
    lines = [f"{v},{u}" if dice.random() < 0.5 else f"{u},{v}" for u, v in sorted(pairs)]
    return "\n".join(["from,to", *(lines[i] for i in dice.permutation(len(lines)))]) + "\n"


def _features(mature: np.ndarray, dice: np.random.Generator) -> str:
    lists = {}
    for node in dice.permutation(len(mature)):
        own = dice.integers(0, 20, 6) + (20 if mature[node] else 0)  # what tells them apart
        row = [*map(int, own), *map(int, dice.integers(0, NUM_FEATURES, 4))]
        lists[str(node)] = [] if node == 5 else [*row, row[0]]
    lists["0"].append(NUM_FEATURES - 1)
    return json.dumps(lists)


def _target(mature: np.ndarray, dice: np.random.Generator, repeat: tuple[int, ...]) -> str:
    lines = ["id,days,mature,views,partner,new_id"]
    for node in [*map(int, dice.permutation(len(mature))), *repeat]:
        name, days, views = (int(dice.integers(1, high)) for high in (10**8, 3000, 10**5))
        lines.append(f"{name},{days},{bool(mature[node])},{views},False,{node}")
    return "\n".join(lines) + "\n"
