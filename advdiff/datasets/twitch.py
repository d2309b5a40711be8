"""Twitch: the friendship networks of streamers in seven regions (the paper's Tables 1 and 6).

A model is trained on the German network, chosen on the British one and tested on the other five. Features are
multi-hot: games, places and habits of the streamer, 3,170 in all and about twenty per node, so ``x`` is a sparse matrix
(CSR). The label is whether the streamer declares the channel *mature*. The paper speaks of 2,545 features, as many as
the British network uses, and calls the label gender, which upstream's files do not hold.
"""

from __future__ import annotations

import json
import warnings
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from advdiff.datasets.base import Dataset
from advdiff.datasets.files import Source, damaged, is_verbatim, locate, open_text, read_table, remember

if TYPE_CHECKING:
    from torch_geometric.data import Data

TITLE = "Twitch: friendships of streamers in seven regions"
LICENCE = "GPL-3.0 (of the MUSAE repository; none is stated for the data themselves)"
CITATION = "Rozemberczki, Allen and Sarkar, Multi-scale attributed node embedding, Journal of Complex Networks, 2021"

#: Environment → the name of the region in upstream's files.
REGIONS = {"DE": "DE", "ENGB": "ENGB", "ES": "ES", "FR": "FR", "PTBR": "PTBR", "RU": "RU", "TW": "ZHTW"}
NUM_FEATURES = 3170
#: Environment → nodes, friendships, mature streamers, features in use and largest degree of upstream's files.
COUNTS = {
    "DE": (9498, 153138, 5742, 2514, 4259),
    "ENGB": (7126, 35324, 3888, 2545, 720),
    "ES": (4648, 59382, 1360, 2148, 1022),
    "FR": (6549, 112666, 2414, 2275, 2040),
    "PTBR": (1912, 31299, 661, 1449, 767),
    "RU": (4385, 37304, 1075, 2224, 1229),
    "TW": (2772, 63462, 1088, 1288, 1375),
}

_URL = "https://raw.githubusercontent.com/benedekrozemberczki/MUSAE/master/input/"
_KNOWN = {
    "edges/DE_edges.csv": (1499865, "54feaf3e3e70a485fe07f8611e4d2677841b97f77b8358204bcf4a48cc884d86"),
    "features/DE.json": (1167905, "7b39c42570f05cd46017c765df8d8a1bc03f19787c3eb0f9684f50a52476ae3a"),
    "target/DE_target.csv": (338721, "2188f58a093bb9db363d3eaf7c3a52c2adc8ff6b23cbcb4f53875f87061c0321"),
    "edges/ENGB_edges.csv": (342162, "5ea4d7f7267454e9523577eb2a9b4dcb7a22dd660a548240f01b815d08e0e3cc"),
    "features/ENGB.json": (893931, "d55948bd911ab28e0a89c4946562d5a8b363b9a7e4216e1a4986f37c74caa777"),
    "target/ENGB_target.csv": (253352, "e9d51399878216d2dd662b0a152b602cccde7b5cbb8452cb91d9379f64114443"),
    "edges/ES_edges.csv": (563757, "17801d2cc45fc4909a431ce7a190c0565d4af87b0548ca7705cf2bef7da4c884"),
    "features/ES.json": (545027, "dec4b672183f9cb04524ee605b763cc14244ed88eb766147a3f954e9abe30d59"),
    "target/ES_target.csv": (165932, "f843427bae58289100e78c6c211fa4a1ae0d5fbf2c665841df9e390b00dcffb5"),
    "edges/FR_edges.csv": (1090900, "9924263f7e8edaa7278dcbc37bd90c8712cb0ea1726d85e054a5588b7959f887"),
    "features/FR.json": (781777, "490ff6a0afb0838fea1696980b14b3fcb9e8932d18e1f5172f066e45d97daa46"),
    "target/FR_target.csv": (234662, "dd0a9e7ba565cbb95ae66003892709742bd08c26387656e3e235fc25205663b4"),
    "edges/PTBR_edges.csv": (275216, "b72d93a3c8a82883771a2f3822fce229885fa0d40367fb105c0535fb36c773b9"),
    "features/PTBR.json": (229853, "5012dee29ca3ae57cbdb4f46279506e3b87ff79d8c43affcafd7576acb21f960"),
    "target/PTBR_target.csv": (67878, "ecba7d1287e72ae7c3f42c922be475283288c0c67346245c72109690460444bd"),
    "edges/RU_edges.csv": (351398, "fd307587a550289f746056ea12a7336171ab2053c9e08c42dba77499126ca5b2"),
    "features/RU.json": (545943, "7767f5d6fdb405cc5cd4267bd3dd0371cbd585ef3f3bec6b5d156880fe42e30a"),
    "target/RU_target.csv": (158570, "db7617528355be994352e491e7b25d060fed466d0d81c09cadd90fa10f15c071"),
    "edges/ZHTW_edges.csv": (581894, "47c986023f1f434f76026ddfb3ab544be24849011400c99402083d06d3dfa017"),
    "features/ZHTW.json": (305776, "9508cc55f4b891018f278df4cec40d622aba2b04c1bca9451fd9e8ce11321c7b"),
    "target/ZHTW_target.csv": (99672, "65b75f23be40140d2e326813c3f81419f1a94aa1091acfc0279f0403be8165f7"),
}
_VERSION = 1


def _source(kind: str, environment: str, file: str) -> Source:
    size, sha256 = _KNOWN[file]
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
        paths = [locate(source) for source in _sources(name)]
        arrays = remember("twitch", {"region": name}, paths, partial(_read, name, *paths), _VERSION)
        graphs[name] = [_graph(arrays)]
    names = tuple(graphs)
    return Dataset("twitch", {}, "node", "roc_auc", NUM_FEATURES, 2, graphs, names[:1], names[1:2], names[2:])


def _graph(arrays: dict[str, np.ndarray]) -> Data:
    from torch_geometric.data import Data

    pointers, columns = (torch.from_numpy(arrays[key].astype(np.int64)) for key in ("pointers", "columns"))
    y = torch.from_numpy(arrays["mature"].astype(np.int64))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*Sparse.*", category=UserWarning)
        x = torch.sparse_csr_tensor(pointers, columns, torch.ones(len(columns)), (len(y), NUM_FEATURES))
    return Data(x=x, edge_index=torch.from_numpy(arrays["edges"].astype(np.int64)), y=y)


def _read(name: str, edge_file: Path, feature_file: Path, target_file: Path) -> dict[str, np.ndarray]:
    mature = _read_target(target_file)
    pointers, columns = _read_features(feature_file, len(mature))
    edges = _read_edges(edge_file, len(mature))
    if is_verbatim(_sources(name)[2], target_file):
        degree = np.bincount(edges[0], minlength=1).max()
        found = (len(mature), edges.shape[1] // 2, int(mature.sum()), len(np.unique(columns)), int(degree))
        if found != COUNTS[name]:
            wrong = (
                f"nodes, edges, mature nodes, features in use and largest degree of {name} "
                f"are {found} instead of {COUNTS[name]}"
            )
            raise damaged(edge_file if found[1] != COUNTS[name][1] else feature_file, wrong)
    return {"mature": mature, "pointers": pointers, "columns": columns, "edges": edges}


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
