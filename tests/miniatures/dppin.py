"""Twelve small dynamic networks: some files gzipped, most with the line ends of upstream, one out of order."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from tests.miniatures.mark import mark

NAMES = (
    *("Babu", "Breitkreutz", "Gavin", "Hazbun", "Ho", "Ito", "Krogan(LCMS)", "Krogan(MALDI)"),
    *("Lambert", "Tarassov", "Uetz", "Yu"),
)
STAMPS = 36


def network(number: int, seed: int = 0) -> tuple[np.ndarray, list[tuple[int, int, int, float]]]:
    """Values [N, 36] and the edges (u, v, stamp, weight) of a network; every stamp has at least four."""
    dice = np.random.default_rng([seed, number])
    nodes = 14 + 2 * number
    phase = dice.uniform(0, 2 * np.pi, (nodes, 1))
    values = np.exp(
        1 + np.sin(2 * np.pi * np.arange(STAMPS) / 12 + phase) + 0.1 * dice.standard_normal((nodes, STAMPS))
    )
    pairs = [(u, v) for u in range(nodes) for v in range(u + 1, nodes) if dice.random() < 0.3]
    edges = []
    for stamp in range(STAMPS):
        chosen = sorted(dice.choice(len(pairs), size=4 + int(dice.integers(len(pairs) - 3)), replace=False))
        edges += [(*pairs[pair], stamp, float(dice.uniform(0.2312, 0.9801))) for pair in chosen]
    return values.astype(np.float32), edges


def write(folder: Path, seed: int = 0) -> None:
    mark(folder)
    for number, name in enumerate(NAMES):
        values, edges = network(number, seed)
        proteins = [f"Y{name[:2].upper()}{node:03d}W" for node in range(len(values))]
        features = [
            ",".join([str(node), proteins[node], *(f"{value:.8g}" for value in values[node])])
            for node in range(len(values))
        ]
        dynamic = [f"{u},{v},{stamp},{weight!r}" for u, v, stamp, weight in edges]
        if name == "Ito":
            features.reverse()
            dynamic = [*reversed(dynamic), dynamic[0]]
        static = [f"{proteins[u]}\t{proteins[v]}\t1.5" for u, v in sorted({edge[:2] for edge in edges})]
        end = "\n" if name == "Yu" else "\r\n"
        place = folder / "dppin" / f"DPPIN-{name}"
        place.mkdir(parents=True, exist_ok=True)
        for file, lines in (("Node_Features", features), ("Dynamic_PPIN", dynamic), ("Static_PPIN", static)):
            content = "".join(line + end for line in lines).encode()
            if number % 2:
                (place / f"{file}.txt").write_bytes(content)
            else:
                (place / f"{file}.txt.gz").write_bytes(gzip.compress(content, mtime=0))
