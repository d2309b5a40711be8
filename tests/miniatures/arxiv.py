"""240 papers of the years 1971 to 2020, in the layout of OGB's archive, with OGB's features and the stand-in.

Pitfalls of the real files: nodes in no order of time; citations in one direction, a few of them mutual; papers that
cite a later one; papers without a citation in their own year's graph; a text of which nothing is known (a zero row).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.miniatures.mark import mark
from tests.miniatures.twitch import put

NODES, CLASSES, FEATURES = 240, 40, 128
YEARS = (1971, 2013, 2014, 2015, 2017, 2018, 2019, 2020)


def write(folder: Path, seed: int = 0) -> None:
    mark(folder)
    dice = np.random.default_rng([seed, 100])
    year = np.concatenate([YEARS, dice.choice(YEARS[1:], NODES - len(YEARS))])[dice.permutation(NODES)]
    label = dice.integers(0, 6, NODES)
    label[0] = CLASSES - 1
    centres = dice.standard_normal((CLASSES, FEATURES))
    x = centres[label] + 2 * dice.standard_normal((NODES, FEATURES))

    pairs: set[tuple[int, int]] = set()
    while len(pairs) < 3 * NODES:
        u, v = map(int, dice.choice(NODES - 1, 2, replace=False))  # the last paper has no citations
        if (year[u] >= year[v] or dice.random() < 0.1) and (label[u] == label[v] or dice.random() < 0.2):
            pairs.add((u, v))
    pairs |= {(v, u) for u, v in sorted(pairs)[:5]}

    base = folder / "ogbn_arxiv"
    tables = {"edge": sorted(pairs), "node-label": label[:, None], "node_year": year[:, None]}
    tables |= {"num-node-list": [[NODES]], "num-edge-list": [[len(pairs)]]}
    for name, table in tables.items():
        put(base / "raw" / f"{name}.csv", "".join(f"{','.join(map(str, row))}\n" for row in table), zipped=True)
    rows = "".join(f"{','.join(f'{value:.6f}' for value in row)}\n" for row in x)
    put(base / "raw" / "node-feat.csv", rows, zipped=True)
    scale = np.float32(np.abs(x).max() / 127)
    q = np.round(x / scale).astype(np.int8)
    q[3] = 0
    (base / "standin").mkdir(parents=True, exist_ok=True)
    np.savez_compressed(base / "standin" / "text_feat_128_int8.npz", q=q, scale=scale)
