r"""DPPIN: twelve dynamic networks of protein interactions in yeast, each made by one method of identification.

Protein i has an expression value x_i(t) at the stamps t = 0, …, 35 of three metabolic cycles. Two proteins are joined
at t if they interact and are active together then; the weight of the edge is the product of their probabilities to be
active and of the correlation of their values around t, between 0.23 and 0.98. A **snapshot** is a stamp t = 10, …, 35
with the ten values before it as features: 26 of each network, 312 in all. The environments are the networks.

==========  =======================================================================================================
``task``
==========  =======================================================================================================
``node``    the value of every protein at t; RMSE.
``edge``    the weight of every edge; RMSE.
``link``    which of as many edges as other pairs, drawn at random, are edges; ROC-AUC.
==========  =======================================================================================================

==============  ===================================================================================================
``graph``
==============  ===================================================================================================
``"current"``   the paper's: the graph of t. For links one half of the edges, drawn at random, is the graph and
                the other half is asked for, since a graph that holds the answers would give them away.
``"previous"``  the released code's: the graph of t − 1, whose weights are the targets of ``edge``. ``node`` and
                ``link`` ask for the values and the edges of t.
==============  ===================================================================================================

Values and targets are upstream's, neither scaled nor shifted: the RMSE is in units of expression. Values differ between
stamps by an order of magnitude, and so does the RMSE: the least squares fit on the released code's networks has a mean
test RMSE of 2.17 over all 26 stamps, and 0.788 over the two that the released code looks at, t = 28 and 29
(``snapshots="code"``). The paper's numbers are of the latter size.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from advdiff.checks import check_choice
from advdiff.datasets.base import Dataset
from advdiff.datasets.files import Source, damaged, locate, open_text, read_table, remember


class Network(NamedTuple):
    """What the whole network has (edges of all stamps), and the checksums of its two files."""

    nodes: int
    edges: int
    features: str
    dynamic: str


NETWORKS = {
    "Babu": Network(
        5003,
        111466,
        "fe55c49f6ce870b775de507a1fcda31fe8aac849821349d4fef35ed2042ab1b5",
        "098764402a49f1d7556d7e8931474f64e69ec49e9a238673c92df187d63c369c",
    ),
    "Breitkreutz": Network(
        869,
        39250,
        "5e553f8621c6c2b623f20310f9cdc5084c4171d98636c774352ac25eb76e14cb",
        "4700fe30b567fa1d9cac3e362082d8b6df6e444520c7ef20908daab53b2047d0",
    ),
    "Gavin": Network(
        2541,
        140040,
        "d01df78c02712377f8a16c68cf38b3661e904a583eabc98aae73641c864f6e27",
        "bd253335007fe392c4d2ad3bbc80788f009e3c747bbf729505e8c39e389602db",
    ),
    "Hazbun": Network(
        143,
        1959,
        "6e49806440a89e206bae2af72295183ba78439183cd914f29bb1ccc384aa4bd6",
        "561c15f2acb0d0df3a898a29933324017f15938e0e1e426ab8ceef95dfa1a20f",
    ),
    "Ho": Network(
        1548,
        42220,
        "0df0d09aa93851e6a38e4a90663d97d932dc7cf2e64aec1e729ed761852d550c",
        "5a08c5dcff8174c04c9b0d120af42bcf9706c80035405b29c0885f1eda51e012",
    ),
    "Ito": Network(
        2856,
        8638,
        "b581c8d05804e8712973ce06f5eb6ea3de5f78dc51ec0f617e5b155171ffd398",
        "6b3d1c61545e7ddef4c009b04f9da422b6f36e42fbf327032214ddcb8b5ea3bf",
    ),
    "Krogan(LCMS)": Network(
        2211,
        85113,
        "6907ebadb13dab29f53a37d77ec7a2ced72f36c16df6724ef5ca7a4e38da3102",
        "b4a332bbdfde942308360800cdc30e566963c5cff13ff224f547f84fcb6015d5",
    ),
    "Krogan(MALDI)": Network(
        2099,
        78297,
        "b924640487be3f02058bda63f369899e95d5855043042e6925f93933efeea883",
        "cacb24cfff80325bb993249c2f92f45850185111cce2eb6c106b5c36c1553f8c",
    ),
    "Lambert": Network(
        697,
        6654,
        "eb398fb85e73a21d89b6ffdd843e9a7c941febe9dde9bfa0ba3a0c72ddcf519d",
        "16dcb7edbdb3ce51a0ea6cab826314e24fd9561f5a1ee4b774154cde2666fc7e",
    ),
    "Tarassov": Network(
        1053,
        4826,
        "6b2ef2ac32f02eb74986326c5aa6b6ffdc8af7151abea35332ba072df7be3518",
        "0c6507a1143b5eda57cf3ddb34a62d8a21d069704d415d6df584454ad123dfa5",
    ),
    "Uetz": Network(
        922,
        2159,
        "1d8b804539715e84c9b5d0bb73b91ff372a8d0973b2245f70097d7a4404792b2",
        "2b0e592f8dd525d11dc0d8d2eb0c08e33be36b6e5a72b4b955936d06b36d4818",
    ),
    "Yu": Network(
        1163,
        3602,
        "756d860dc9a77684316bdfb014c647adf17f2c460e4c1a101f16d2ce3b17de9b",
        "b7d79ce9e7949b6950c22d228bc63a2baa6dd734d9d63b0cf67b4db466521395",
    ),
}

TITLE = "DPPIN: twelve dynamic networks of protein interactions"
LICENCE = "none stated; upstream asks to cite its paper"
CITATION = (
    "Fu and He, DPPIN: a biological repository of dynamic protein-protein interaction network data, IEEE Big Data 2022"
)
_UPSTREAM = "https://raw.githubusercontent.com/DongqiFu/DPPIN/6e7cecaa8f6bfe17b5abf398046c7ca1040c322e"
SOURCES = tuple(
    Source(
        path=f"dppin/DPPIN-{name}/{file}",
        url=f"{_UPSTREAM}/{quote(f'DPPIN-{name}/{file}')}",
        sha256=checksum,
        dataset="dppin",
    )
    for name, network in NETWORKS.items()
    for file, checksum in (("Node_Features.txt", network.features), ("Dynamic_PPIN.txt", network.dynamic))
)

STAMPS = 36
WINDOW = 10
TASKS = {"node": "rmse", "edge": "rmse", "link": "roc_auc"}
GRAPHS = ("current", "previous")
#: Stamps to be predicted.
SNAPSHOTS = {"all": tuple(range(WINDOW, STAMPS)), "code": (28, 29)}
#: Networks to train and to validate on; the others are tested on. The paper has 6, 1 and 5 of them, without their
#: names: here the released code's, and the two of its seven test networks that have the fewest proteins.
SPLITS = {
    "paper": (("Gavin", "Ho", "Hazbun", "Ito", "Breitkreutz", "Lambert"), ("Krogan(LCMS)",)),
    "code": (("Gavin", "Ho", "Hazbun", "Ito"), ("Krogan(LCMS)",)),
}


def load(task: str = "node", split: str = "paper", graph: str = "current", snapshots: str = "all") -> Dataset:
    """All networks, with labels for a task.

    Args:
        task: ``"node"``, ``"edge"`` or ``"link"``.
        split: ``"paper"``: 6 networks to train on, 1 to validate, 5 to test; ``"code"``: 4, 1 and 7.
        graph: ``"current"`` or ``"previous"``: the edges of t or of t − 1.
        snapshots: ``"all"`` 26 stamps, or the two of the released ``"code"``.

    Example:
        >>> load(task="edge").graphs("Uetz")[0]  # doctest: +SKIP
        Data(x=[922, 10], edge_index=[2, 124], y=[62, 1], stamp=10, edge_label_index=[2, 62])
    """
    check_choice("task", task, TASKS)
    check_choice("split", split, SPLITS)
    check_choice("graph", graph, GRAPHS)
    check_choice("snapshots", snapshots, SNAPSHOTS)
    paths = [locate(source) for source in SOURCES]
    arrays = remember("dppin", {}, paths, lambda: _parse(paths))
    environments = {}
    for number, name in enumerate(NETWORKS):
        own = {key: torch.from_numpy(arrays[f"{key}_{number}"]) for key in ("values", "pairs", "weights", "ends")}
        environments[name] = [
            _snapshot(own, stamp, task, graph == "previous", np.random.default_rng([number, stamp]))
            for stamp in SNAPSHOTS[snapshots]
        ]
    train, valid = SPLITS[split]
    return Dataset(
        name="dppin",
        options={"task": task, "split": split, "graph": graph, "snapshots": snapshots},
        task="node" if task == "node" else "edge",
        metric=TASKS[task],
        in_channels=WINDOW,
        out_channels=1,
        environments=environments,
        train=train,
        valid=valid,
        test=tuple(name for name in NETWORKS if name not in (*train, *valid)),
    )


def _parse(paths: list[Path]) -> dict[str, np.ndarray]:
    """For network k ``values_k`` [N, 36], ``pairs_k`` [2, M] u < v in the order of stamps, ``weights_k`` [M].

    The pairs of stamp t are those from ``ends_k[t]`` to ``ends_k[t + 1]``.
    """
    arrays = {}
    for number, name in enumerate(NETWORKS):
        features, dynamic = paths[2 * number : 2 * number + 2]
        values = _values(features)
        pairs, weights, ends = _edges(dynamic, len(values))
        # A hundred proteins and more are a real network, which must be complete.
        found, wanted = (len(values), len(weights)), NETWORKS[name][:2]
        if len(values) >= 100 and found != wanted:
            raise damaged(
                dynamic.parent, f"{found[0]} proteins and {found[1]} edges instead of {wanted[0]} and {wanted[1]}"
            )
        for key, array in (("values", values), ("pairs", pairs), ("weights", weights), ("ends", ends)):
            arrays[f"{key}_{number}"] = array
    return arrays


def _values(path: Path) -> np.ndarray:
    """Lines of id, name of the protein, and 36 values."""
    columns = (0, *range(2, 2 + STAMPS))
    try:
        with open_text(path) as file:
            table = np.loadtxt(file, delimiter=",", usecols=columns, ndmin=2)
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


def _snapshot(own: dict[str, Tensor], stamp: int, task: str, previous: bool, dice: np.random.Generator) -> Data:
    values = own["values"]

    def edges(t: int) -> tuple[Tensor, Tensor]:
        here = slice(int(own["ends"][t]), int(own["ends"][t + 1]))
        return own["pairs"][:, here], own["weights"][here]

    given, weights = edges(stamp - 1 if previous else stamp)
    labels: dict[str, Tensor] = {}
    if task == "node":
        labels["y"] = values[:, stamp, None].clone()
    elif task == "edge":
        labels["edge_label_index"], labels["y"] = given.clone(), weights[:, None].clone()
    else:
        links = edges(stamp)[0]
        others = _other_pairs(len(values), links, dice)
        if not previous:
            order = torch.from_numpy(dice.permutation(links.size(1)))
            half = links.size(1) // 2
            given, links = links[:, order[:half].sort().values], links[:, order[half:].sort().values]
        others = others[:, : links.size(1)]
        labels["edge_label_index"] = torch.cat([links, others], dim=1)
        labels["y"] = (torch.arange(links.size(1) + others.size(1)) < links.size(1)).float()[:, None]
    edge_index = torch.cat([given, given.flip(0)], dim=1)
    return Data(x=values[:, stamp - WINDOW : stamp].clone(), edge_index=edge_index, stamp=stamp, **labels)


def _other_pairs(nodes: int, links: Tensor, dice: np.random.Generator) -> Tensor:
    """As many pairs u < v as there are links (or as there are), each once and in random order, that are not links."""
    taken = (links[0] * nodes + links[1]).numpy()
    free = nodes * (nodes - 1) // 2 - len(taken)
    count = min(len(taken), free)
    chosen = np.empty(0, np.int64)
    if free < 4 * count:  # so few that most of them are needed: take from the list of all
        u, v = np.triu_indices(nodes, 1)
        chosen = np.setdiff1d(u * nodes + v, taken)
    while len(chosen) < count:
        u, v = np.sort(dice.integers(nodes, size=(2, 2 * count + 16)), axis=0)
        new = (u * nodes + v)[u < v]
        chosen = np.unique(np.concatenate([chosen, new[~np.isin(new, taken)]]))
    chosen = dice.permutation(chosen)[:count]
    return torch.from_numpy(np.stack([chosen // nodes, chosen % nodes]))
