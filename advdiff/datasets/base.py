"""What every data set looks like: named environments of PyG graphs, some to train on and some to be tested on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from advdiff.checks import has_values
from advdiff.datasets.infer import channels

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: Role → what PyG calls its mask.
_MASKS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}


@dataclass(frozen=True, eq=False)
class Dataset:
    """Graphs by environment, and which environment is for what.

    A graph holds ``x`` [N, in_channels], ``edge_index`` and labels ``y`` with one row per node, per column of
    ``edge_label_index`` or per graph, as the task says: [n, out_channels] numbers for regression, [n] class numbers,
    or [n, out_channels] of 0, 1 and NaN (unknown) for several yes-or-no labels. ``mask``, where there is one, tells
    which rows count. ``edge_weight`` and ``edge_attr`` are PyG's.

    Graphs of your own become a data set by :meth:`from_graphs`, one graph with masks by :meth:`from_masks`.

    Attributes:
        name: as in :func:`advdiff.datasets.load`.
        options: what it was loaded with; numbers and strings only.
        task: ``"node"``, ``"edge"`` or ``"graph"``.
        metric: ``"mse"``, ``"rmse"``, ``"accuracy"`` or ``"roc_auc"``; this is the one place that says it.
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

    @classmethod
    def from_graphs(
        cls,
        environments: Mapping[str, Sequence[Data]],
        *,
        task: str,
        metric: str,
        train: Sequence[str] = ("train",),
        valid: Sequence[str] = ("valid",),
        test: Sequence[str] | None = None,
        name: str = "custom",
    ) -> Dataset:
        """A data set of your own graphs, which must agree in their columns.

        The number of classes is one more than the largest class in any environment.

        Args:
            environments: name → graphs.
            task: ``"node"``, ``"edge"`` or ``"graph"``: what a row of ``y`` belongs to.
            metric: ``"mse"``, ``"rmse"``, ``"accuracy"`` or ``"roc_auc"``.
            train, valid, test: names of environments, none of them twice; by default the environment of that name,
                which need not be there for ``test``.
            name: for tables and records.

        Example:
            >>> import torch
            >>> from torch_geometric.data import Data
            >>> from advdiff.datasets import Dataset
            >>> ring = torch.tensor([[0, 1, 2], [1, 2, 0]])
            >>> graphs = [Data(x=torch.rand(3, 5), edge_index=ring, y=torch.tensor([k % 2])) for k in range(6)]
            >>> parts = {"train": graphs[:4], "valid": graphs[4:5], "new": graphs[5:]}
            >>> data = Dataset.from_graphs(parts, task="graph", metric="accuracy", test=["new"], name="rings")
            >>> data, data.in_channels, data.out_channels, data.edge_dim
            (Dataset(rings; 3 environments, 6 graphs), 5, 2, None)
        """
        graphs = {key: list(part) for key, part in environments.items()}
        roles = {"train": tuple(train), "valid": tuple(valid)}
        roles["test"] = tuple(test) if test is not None else ("test",) * ("test" in graphs)
        for role, names in roles.items():
            for each in names:
                if each not in graphs:
                    have = ", ".join(graphs) or "none"
                    raise ValueError(f"there is no environment {each!r} for {role}; the environments are: {have}.")
            if not names and role != "test":
                raise ValueError(f"{role} names no environment; pass {role}=(…) with at least one.")
        named = [each for names in roles.values() for each in names]
        for each in named:
            if named.count(each) > 1:
                raise ValueError(f"environment {each!r} has two roles; train, valid and test must not share any.")
        in_channels, out_channels, edge_dim = channels(graphs, task, metric)
        return cls(
            name=name,
            options={},
            task=task,
            metric=metric,
            in_channels=in_channels,
            out_channels=out_channels,
            environments=graphs,
            edge_dim=edge_dim,
            **roles,
        )

    @classmethod
    def from_masks(cls, data: Data, *, metric: str = "accuracy", name: str = "custom") -> Dataset:
        """One graph whose nodes are split by ``train_mask``, ``val_mask`` and ``test_mask``, as in PyG's data sets.

        It becomes three environments that share the graph and differ in ``mask``: in training all nodes and edges are
        seen, and the labels of the training nodes only.

        Example:
            >>> import torch
            >>> from torch_geometric.data import Data
            >>> from advdiff.datasets import Dataset
            >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
            >>> masks = dict(zip(("train_mask", "val_mask", "test_mask"), torch.eye(3).bool()))
            >>> data = Dataset.from_masks(Data(x=torch.rand(3, 2), edge_index=path, y=torch.tensor([0, 1, 1]), **masks))
            >>> data.environments["valid"][0].mask, data.out_channels
            (tensor([False,  True, False]), 2)
        """
        masks = {role: data.get(key) for role, key in _MASKS.items()}
        environments: dict[str, list[Data]] = {}
        taken = torch.zeros(data.num_nodes or 0, dtype=torch.bool)
        for role, mask in masks.items():
            if mask is None:
                raise ValueError(f"the graph has no {_MASKS[role]}; it needs {', '.join(_MASKS.values())}.")
            if mask.dtype != torch.bool or mask.shape != taken.shape:
                raise ValueError(
                    f"{_MASKS[role]} is {mask.dtype} of shape {tuple(mask.shape)}; it must be torch.bool of shape "
                    f"{tuple(taken.shape)}: of several splits, pass one."
                )
            taken = taken.to(mask.device)
            if has_values(mask) and bool((taken & mask).any()):
                raise ValueError("the masks overlap; a node must be in one of train_mask, val_mask and test_mask only.")
            taken = taken | mask
            graph = copy(data)
            for key in _MASKS.values():
                del graph[key]
            graph.mask = mask
            environments[role] = [graph]
        return cls.from_graphs(environments, task="node", metric=metric, name=name)

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
