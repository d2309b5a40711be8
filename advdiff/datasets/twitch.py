"""Twitch: the friendship networks of streamers in seven regions (the paper's Tables 1 and 6).

A model is trained on the German network, chosen on the British one and tested on the other five. Features are
multi-hot: games, places and habits of the streamer, 3,170 in all and about twenty per node, so ``x`` is a sparse matrix
(CSR). The label is whether the streamer declares the channel *mature*. The paper speaks of 2,545 features, as many as
the British network uses, and calls the label gender, which upstream's files do not hold.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from advdiff.datasets.base import Dataset
from advdiff.datasets.checksums import CONTENT
from advdiff.datasets.files import Source, damaged, open_text, read_table
from advdiff.datasets.parsed_cache import remember

if TYPE_CHECKING:
    from torch_geometric.data import Data

TITLE = "Twitch: friendships of streamers in seven regions"
LICENCE = "GPL-3.0 (of the MUSAE repository; none is stated for the data themselves)"
CITATION = "Rozemberczki, Allen and Sarkar, Multi-scale attributed node embedding, Journal of Complex Networks, 2021"

#: Environment → the name of the region in upstream's files.
REGIONS = {"DE": "DE", "ENGB": "ENGB", "ES": "ES", "FR": "FR", "PTBR": "PTBR", "RU": "RU", "TW": "ZHTW"}
NUM_FEATURES = 3170
METRIC = "roc_auc"
_URL = "https://raw.githubusercontent.com/benedekrozemberczki/MUSAE/master/input/"
_VERSION = 1


def _source(kind: str, environment: str, file: str) -> Source:
    size, sha256 = CONTENT[f"twitch/{file}"]
    suffix = file.rpartition(".")[2]
    snap = f"twitch/{environment}/musae_{environment}_{kind}.{suffix}"  # as the archive of SNAP names it
    return Source(f"twitch/{file}", _URL + file, sha256, size, dataset="twitch", also=(snap,))


def _sources(environment: str) -> tuple[Source, Source, Source]:
    region = REGIONS[environment]
    return (
        _source("edges", environment, f"edges/{region}_edges.csv"),
        _source("features", environment, f"features/{region}.json"),
        _source("target", environment, f"target/{region}_target.csv"),
    )


SOURCES: tuple[Source, ...] = tuple(source for name in REGIONS for source in _sources(name))


def load() -> Dataset:
    """Seven environments of one graph each: ``DE`` to train on, ``ENGB`` to validate, five to test on.

    ``x`` [N, 3170] is a sparse CSR matrix of zeros and ones, ``edge_index`` holds every friendship in both directions,
    ``y`` [N] is 1 for mature channels.
    """
    graphs = {}
    for name in REGIONS:
        graphs[name] = [_graph(remember("twitch", _sources(name), _read, version=_VERSION))]
    names = tuple(graphs)
    return Dataset("twitch", {}, "node", METRIC, NUM_FEATURES, 2, graphs, names[:1], names[1:2], names[2:])


def _graph(arrays: dict[str, np.ndarray]) -> Data:
    from torch_geometric.data import Data

    pointers, columns = (torch.from_numpy(arrays[key].astype(np.int64)) for key in ("pointers", "columns"))
    y = torch.from_numpy(arrays["mature"].astype(np.int64))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Sparse.*", category=UserWarning)
        x = torch.sparse_csr_tensor(pointers, columns, torch.ones(len(columns)), (len(y), NUM_FEATURES))
    return Data(x=x, edge_index=torch.from_numpy(arrays["edges"].astype(np.int64)), y=y)


def _read(edge_file: Path, feature_file: Path, target_file: Path) -> dict[str, np.ndarray]:
    mature = _read_target(target_file)
    pointers, columns = _read_features(feature_file, len(mature))
    return {
        "mature": mature,
        "pointers": pointers,
        "columns": columns,
        "edges": _read_edges(edge_file, len(mature)),
    }


def _read_target(path: Path) -> np.ndarray:
    """The label of every node. Rows are in no order, and a node may have several, if they agree."""
    with open_text(path) as file:
        names = file.readline().strip().split(",")
        rows = [line.rstrip("\n").split(",") for line in file if line.strip()]
    if not {"mature", "new_id"} <= set(names) or any(len(row) != len(names) for row in rows):
        raise damaged(path, "there is no column mature or new_id, or a line is cut off")
    labels: dict[int, bool] = {}
    where, what = names.index("new_id"), names.index("mature")
    for row in rows:
        if row[what] not in ("True", "False") or not row[where].isdigit():
            raise damaged(path, f"the line {','.join(row)!r} has no label")
        if labels.setdefault(int(row[where]), row[what] == "True") != (row[what] == "True"):
            raise damaged(path, f"node {row[where]} has two labels")
    if not labels or max(labels) != len(labels) - 1:
        raise damaged(path, f"its {len(labels)} nodes are not numbered 0, 1, 2, …")
    return np.array([labels[node] for node in range(len(labels))], dtype=np.bool_)


def _read_features(path: Path, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Row pointers and columns of the features. Lists that name a feature twice mean the set."""
    try:
        with open_text(path) as file:
            lists = json.load(file)
        rows = [sorted(set(lists[str(node)])) for node in range(num_nodes)]
    except (json.JSONDecodeError, TypeError) as error:
        raise damaged(path, error) from error
    except KeyError as error:
        raise damaged(path, f"node {error} has no list of features") from error
    if len(lists) != num_nodes:
        raise damaged(path, f"it has {len(lists)} nodes instead of {num_nodes}")
    columns = np.array([feature for row in rows for feature in row], dtype=np.int64)
    if columns.size and (columns.min() < 0 or columns.max() >= NUM_FEATURES):
        raise damaged(path, f"it names feature {columns.max()}, and there are {NUM_FEATURES}")
    pointers = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return pointers.astype(np.int32), columns.astype(np.int16)


def _read_edges(path: Path, num_nodes: int) -> np.ndarray:
    """The friendships [2, 2E], each in both directions and once, whichever way the file has them."""
    pairs = read_table(path, np.int64, header=1).reshape(-1, 2)
    if pairs.size and (pairs.min() < 0 or pairs.max() >= num_nodes):
        raise damaged(path, f"it names node {pairs.max()}, and there are {num_nodes}")
    keys = np.unique(np.concatenate([pairs[:, 0] * num_nodes + pairs[:, 1], pairs[:, 1] * num_nodes + pairs[:, 0]]))
    return np.stack([keys // num_nodes, keys % num_nodes]).astype(np.int32)
