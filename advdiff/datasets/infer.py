"""What graphs have in common: their columns and classes, or a sentence that says in what they differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from advdiff.checks import check_choice, check_edge_index, has_values

if TYPE_CHECKING:
    from torch_geometric.data import Data

TASKS = ("node", "edge", "graph")
REGRESSION, CLASSIFICATION = ("mse", "rmse"), ("accuracy", "roc_auc")


def channels(environments: Mapping[str, Sequence[Data]], task: str, metric: str) -> tuple[int, int, int | None]:
    """``in_channels``, ``out_channels`` and ``edge_dim`` of all graphs; refuses those that do not fit together."""
    check_choice("task", task, TASKS)
    check_choice("metric", metric, (*REGRESSION, *CLASSIFICATION))
    common: tuple[int, int, int | None] | None = None
    classes = 0
    for name, graphs in environments.items():
        if not graphs:
            raise ValueError(f"environment {name!r} has no graphs.")
        for number, graph in enumerate(graphs):
            where = f"graph {number} of {name!r}"
            columns = _width(graph, "x", where)
            labels = _labels(graph, task, where)
            counted = _columns(labels, metric, where)
            if counted == 0:  # class numbers
                classes = max(classes, 2, int(labels.max()) + 1 if labels.numel() and has_values(labels) else 0)
            edge_dim = None if graph.get("edge_attr") is None else _width(graph, "edge_attr", where)
            found = (columns, counted, edge_dim)
            if common is not None and found != common:
                raise ValueError(f"{where} has {_told(found)}, and those before it have {_told(common)}.")
            common = found
    if common is None:
        raise ValueError("there are no environments; pass at least one with graphs to train on.")
    if metric == "roc_auc" and classes > 2:
        raise ValueError(f"roc_auc is for yes-or-no labels, and y holds {classes} classes; take accuracy.")
    return common[0], common[1] or classes, common[2]


def _told(found: tuple[int, int, int | None]) -> str:
    labels = f"{found[1]} columns of labels" if found[1] else "class numbers"
    return f"{found[0]} columns of x, {labels} and {found[2] or 'no'} columns of edge_attr"


def _width(graph: Data, key: str, where: str) -> int:
    value = graph.get(key)
    if not isinstance(value, Tensor) or value.dim() != 2:
        shape = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else "none"
        raise ValueError(f"{where} must have {key} with rows and columns; it has {shape}.")
    return value.size(1)


def _labels(graph: Data, task: str, where: str) -> Tensor:
    """The labels that count; there must be one row for everything that is asked for."""
    nodes = graph.x.size(0)
    edges, asked, y, mask = (graph.get(key) for key in ("edge_index", "edge_label_index", "y", "mask"))
    if edges is None or (task == "edge" and asked is None):
        raise ValueError(f"{where} has no {'edge_index' if edges is None else 'edge_label_index: the pairs to label'}.")
    check_edge_index(edges, nodes, f"edge_index of {where}")
    attributes = graph.get("edge_attr")
    if attributes is not None and len(attributes) != edges.size(1):
        raise ValueError(f"{where} has {edges.size(1)} edges, and edge_attr {len(attributes)} rows.")
    if task == "edge":
        check_edge_index(asked, nodes, f"edge_label_index of {where}")
    rows = {"node": nodes, "edge": asked.size(1) if asked is not None else 0, "graph": 1}[task]
    if not isinstance(y, Tensor) or y.dim() not in (1, 2) or y.size(0) != rows:
        shape = f"shape {tuple(y.shape)}" if isinstance(y, Tensor) else "none"
        raise ValueError(f"{where} must have y with {rows} rows for the task {task!r}; it has {shape}.")
    if mask is None:
        return y
    if mask.dtype != torch.bool or mask.shape != (rows,):
        raise ValueError(f"mask of {where} is {mask.dtype} of shape {tuple(mask.shape)}; it must be bool, [{rows}].")
    return y[mask] if has_values(y) else y


def _columns(labels: Tensor, metric: str, where: str) -> int:
    """Columns of the output that these labels ask for; 0 if they are numbers of classes."""
    columns = labels.size(1) if labels.dim() == 2 else 1
    if metric in REGRESSION:
        return columns
    values = has_values(labels) and labels.numel() > 0
    if labels.is_floating_point():
        known = labels[~labels.isnan()] if values else labels
        if values and not bool(((known == 0) | (known == 1)).all()):
            raise ValueError(f"y of {where} holds other numbers than 0, 1 and NaN; class numbers must be integers.")
        return columns
    if labels.dim() == 2 or labels.dtype == torch.bool:
        raise ValueError(
            f"y of {where} is {labels.dtype} of shape {tuple(labels.shape)}; class numbers must be integers of one "
            "dimension, and yes-or-no labels floating point."
        )
    if values and int(labels.min()) < 0:
        raise ValueError(f"y of {where} holds the class {int(labels.min())}; classes are numbered from 0.")
    return 0
