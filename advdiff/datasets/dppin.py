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

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from advdiff.checks import check_choice
from advdiff.datasets.base import Dataset
from advdiff.datasets.dppin_files import NETWORKS, SOURCES, STAMPS, read_networks
from advdiff.datasets.parsed_cache import remember

if TYPE_CHECKING:
    from torch_geometric.data import Data

TITLE = "DPPIN: twelve dynamic networks of protein interactions"
LICENCE = "none stated; upstream asks to cite its paper"
CITATION = (
    "Fu and He, DPPIN: a biological repository of dynamic protein-protein interaction network data, IEEE Big Data 2022"
)
WINDOW = 10
#: Task → metric.
METRIC = {"node": "rmse", "edge": "rmse", "link": "roc_auc"}
GRAPHS = ("current", "previous")
#: Stamps to be predicted.
SNAPSHOTS = {"all": tuple(range(WINDOW, STAMPS)), "code": (28, 29)}
#: Networks to train and to validate on; the others are tested on. The paper has 6, 1 and 5 of them, without their
#: names: here the released code's, and the two of its seven test networks that have the fewest proteins.
SPLITS = {
    "paper": (("Gavin", "Ho", "Hazbun", "Ito", "Breitkreutz", "Lambert"), ("Krogan(LCMS)",)),
    "code": (("Gavin", "Ho", "Hazbun", "Ito"), ("Krogan(LCMS)",)),
}
_VERSION = 1


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
    check_choice("task", task, METRIC)
    check_choice("split", split, SPLITS)
    check_choice("graph", graph, GRAPHS)
    check_choice("snapshots", snapshots, SNAPSHOTS)
    arrays = remember("dppin", SOURCES, read_networks, version=_VERSION)
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
        metric=METRIC[task],
        in_channels=WINDOW,
        out_channels=1,
        environments=environments,
        train=train,
        valid=valid,
        test=tuple(name for name in NETWORKS if name not in (*train, *valid)),
    )


def _snapshot(own: dict[str, Tensor], stamp: int, task: str, previous: bool, dice: np.random.Generator) -> Data:
    from torch_geometric.data import Data

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
