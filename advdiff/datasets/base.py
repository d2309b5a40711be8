"""What every data set looks like: named environments of PyG graphs, some to train on and some to be tested on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True, eq=False)
class Dataset:
    """Graphs by environment, and which environment is for what.

    A graph holds ``x`` [N, in_channels], ``edge_index`` and labels ``y`` with one row per node, per column of
    ``edge_label_index`` or per graph, as the task says: [n, out_channels] numbers for regression, [n] class numbers,
    or [n, out_channels] of 0, 1 and NaN (unknown) for several yes-or-no labels. ``mask``, where there is one, tells
    which rows count. ``edge_weight`` and ``edge_attr`` are PyG's.

    Attributes:
        name: as in :func:`advdiff.datasets.load`.
        options: what it was loaded with; numbers and strings only.
        task: ``"node"``, ``"edge"`` or ``"graph"``.
        metric: ``"mse"``, ``"rmse"``, ``"accuracy"`` or ``"roc_auc"``.
        environments: name → graphs.
        train, valid, test: names of environments.
        edge_dim: columns of ``edge_attr``, or None.

    Example:
        >>> from advdiff.datasets import load
        >>> data = load("small_graphs", num_graphs=8)
        >>> data.task, data.metric, data.in_channels, data.out_channels
        ('graph', 'mse', 4, 1)
        >>> {name: len(graphs) for name, graphs in data.environments.items()}
        {'train': 8, 'valid': 2, 'test': 2}
    """

    name: str
    options: dict[str, object]
    task: str
    metric: str
    in_channels: int
    out_channels: int
    environments: dict[str, list[Data]]
    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    edge_dim: int | None = None

    def graphs(self, *names: str) -> list[Data]:
        """All graphs of the named environments."""
        for name in names:
            if name not in self.environments:
                raise ValueError(f"unknown environment {name!r}; choose one of: {', '.join(self.environments)}.")
        return [graph for name in names for graph in self.environments[name]]

    def __repr__(self) -> str:
        graphs = sum(len(part) for part in self.environments.values())
        chosen = ", ".join(f"{key}={value!r}" for key, value in self.options.items())
        return f"Dataset({self.name}{chosen and ': '}{chosen}; {len(self.environments)} environments, {graphs} graphs)"
