"""DPPIN's files: which networks there are, and their values and edges as arrays."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import numpy as np

from advdiff.datasets.checksums import CONTENT
from advdiff.datasets.files import DamagedDataError, Source, damaged, open_text, read_table

NETWORKS = (
    *("Babu", "Breitkreutz", "Gavin", "Hazbun", "Ho", "Ito", "Krogan(LCMS)", "Krogan(MALDI)"),
    *("Lambert", "Tarassov", "Uetz", "Yu"),
)
STAMPS = 36
_UPSTREAM = "https://raw.githubusercontent.com/DongqiFu/DPPIN/6e7cecaa8f6bfe17b5abf398046c7ca1040c322e"


def _source(file: str) -> Source:
    size, sha256 = CONTENT[f"dppin/{file}"]
    return Source(f"dppin/{file}", f"{_UPSTREAM}/{quote(file)}", sha256, size, dataset="dppin")


#: Values and edges of each network in turn.
SOURCES = tuple(
    _source(f"DPPIN-{name}/{file}") for name in NETWORKS for file in ("Node_Features.txt", "Dynamic_PPIN.txt")
)


def read_networks(*paths: Path) -> dict[str, np.ndarray]:
    """What the files of ``SOURCES`` hold; the pairs of network k at stamp t are those from ``ends_k[t]`` on.

    For network k ``values_k`` [N, 36], ``pairs_k`` [2, M] u < v in the order of stamps, ``weights_k`` [M] and
    ``ends_k`` [37]: the pairs of stamp t end where those of t + 1 begin.
    """
    arrays: dict[str, np.ndarray] = {}
    for number, (features, dynamic) in enumerate(zip(paths[::2], paths[1::2], strict=True)):
        values = _values(features)
        pairs, weights, ends = _edges(dynamic, len(values))
        for key, array in (("values", values), ("pairs", pairs), ("weights", weights), ("ends", ends)):
            arrays[f"{key}_{number}"] = array
    return arrays


def _values(path: Path) -> np.ndarray:
    """Lines of id, name of the protein, and 36 values."""
    columns = (0, *range(2, 2 + STAMPS))
    try:
        with open_text(path) as file:
            table = np.loadtxt(file, delimiter=",", usecols=columns, ndmin=2)
    except DamagedDataError:
        raise
    except ValueError as error:
        raise damaged(path, error) from error
    table = table[np.argsort(table[:, 0], kind="stable")]
    if not np.array_equal(table[:, 0], np.arange(len(table))):
        raise damaged(path, "the ids of the proteins are not 0, 1, 2, …")
    if not np.isfinite(table).all():
        raise damaged(path, "a value is not finite")
    return table[:, 1:].astype(np.float32)


def _edges(path: Path, nodes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lines of u, v, stamp and weight."""
    table = read_table(path, np.float64)
    if table.size and table.shape[1] != 4:
        raise damaged(path, f"its lines have {table.shape[1]} columns instead of 4")
    table = table.reshape(-1, 4)
    ends, stamp = np.sort(table[:, :2].astype(np.int64), axis=1), table[:, 2].astype(np.int64)
    if len(table) and (ends.min() < 0 or ends.max() >= nodes or (ends[:, 0] == ends[:, 1]).any()):
        raise damaged(path, f"an edge does not join two of the {nodes} proteins")
    if len(table) and (stamp.min() < 0 or stamp.max() >= STAMPS or not np.isfinite(table).all()):
        raise damaged(path, f"a stamp is not in 0 to {STAMPS - 1}, or a weight is not finite")
    _, first = np.unique((stamp * nodes + ends[:, 0]) * nodes + ends[:, 1], return_index=True)
    begins = np.searchsorted(stamp[first], np.arange(STAMPS + 1))
    return np.ascontiguousarray(ends[first].T), table[first, 3].astype(np.float32), begins
