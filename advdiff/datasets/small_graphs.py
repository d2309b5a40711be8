r"""Many small graphs, as molecules are: random trees with a few rings, to try a model for graphs without a download.

Node features are standard normal. The label of a graph is y = 6 (mean over u of \|m_u\| − ½), where m_u is the mean of
the first feature over the neighbours of u: it can only be found along the edges. Training graphs have 8 to 16 nodes,
test graphs 17 to 25: the sizes of the paper's molecules, split by weight as there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from advdiff.datasets.base import Dataset

if TYPE_CHECKING:
    from torch_geometric.data import Data

METRIC = "mse"
SIZES = {"train": (8, 16), "valid": (8, 16), "test": (17, 25)}
CHANNELS = 4


def load(num_graphs: int = 128, seed: int = 0) -> Dataset:
    """``num_graphs`` graphs to train on, and a quarter of that number to validate and to test on.

    Args:
        num_graphs: at least 4.
        seed: of everything random.

    Example:
        >>> from advdiff.datasets import load
        >>> load("small_graphs", num_graphs=8).graphs("train")[0].num_nodes
        15
    """
    if num_graphs < 4:
        raise ValueError(f"num_graphs is {num_graphs}; it must be at least 4.")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must not be negative.")
    graphs = {}
    for stream, (name, (low, high)) in enumerate(SIZES.items()):
        dice = np.random.default_rng([seed, stream])
        count = num_graphs if name == "train" else num_graphs // 4
        graphs[name] = [_graph(int(dice.integers(low, high + 1)), dice) for _ in range(count)]
    options: dict[str, object] = {"num_graphs": num_graphs, "seed": seed}
    return Dataset("small_graphs", options, "graph", METRIC, CHANNELS, 1, graphs, ("train",), ("valid",), ("test",))


def _graph(num_nodes: int, dice: np.random.Generator) -> Data:
    """Each node hangs on one of the three before it; then a ring is closed for about every eighth node."""
    from torch_geometric.data import Data

    child = np.arange(1, num_nodes)
    parent = dice.integers(np.maximum(child - 3, 0), child)
    edges = {(int(u), int(v)) for u, v in zip(parent, child, strict=True)}
    for u in range(num_nodes - 4):
        if dice.random() < 1 / 8:
            edges.add((u, u + 4))
    one_way = torch.tensor(sorted(edges)).T
    edge_index = torch.cat([one_way, one_way.flip(0)], dim=1)
    x = torch.from_numpy(dice.standard_normal((num_nodes, CHANNELS))).float()
    source, target = edge_index
    total = torch.zeros(num_nodes).index_add(0, target, x[source, 0])
    neighbours = total / torch.bincount(target, minlength=num_nodes)
    y = 6 * (neighbours.abs().mean() - 0.5)
    return Data(x=x, edge_index=edge_index, y=y.view(1, 1))
