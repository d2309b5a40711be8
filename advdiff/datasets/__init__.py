"""Graphs and data sets: one file per data set, all loaded by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType

from advdiff.checks import check_choice
from advdiff.datasets.base import Dataset
from advdiff.datasets.files import is_miniature

__all__ = ["DATASETS", "Dataset", "is_miniature", "load", "metric_of"]

#: Each is a module of this package with a function ``load`` and its ``METRIC``; imported when it is asked for.
DATASETS = ("synthetic", "small_graphs", "twitch", "arxiv", "dppin", "ham", "molbace", "molsider")


def load(name: str, **options: object) -> Dataset:
    """The data set of that name, for example ``load("synthetic", shift="homophily")``.

    Example:
        >>> from advdiff.datasets import load
        >>> data = load("synthetic", shift="block", num_nodes=200)
        >>> data.train, data.valid, data.test[0], data.test[-1]
        (('#1',), ('#2',), '#3', '#12')
        >>> data.graphs("#1")
        [Data(x=[200, 4], edge_index=[2, 1138], y=[200, 1], latent=[200], block=[200])]
    """
    data: Dataset = _module(name, options).load(**options)
    return data


def metric_of(name: str, **options: object) -> str:
    """The metric that ``load(name, **options)`` would have, without loading anything.

    Example:
        >>> from advdiff.datasets import metric_of
        >>> metric_of("arxiv", features="text"), metric_of("dppin"), metric_of("dppin", task="link")
        ('accuracy', 'rmse', 'roc_auc')
    """
    module = _module(name, options)
    metric: str | Mapping[str, str] = module.METRIC
    if isinstance(metric, str):
        return metric
    task = str(options.get("task", inspect.signature(module.load).parameters["task"].default))
    check_choice("task", task, metric)
    return metric[task]


def _module(name: str, options: Mapping[str, object]) -> ModuleType:
    """The module of a data set, whose ``load`` must know all the options."""
    check_choice("data set", name, DATASETS)
    module = import_module(f"advdiff.datasets.{name}")
    known = inspect.signature(module.load).parameters
    for option in options:
        if option not in known:
            raise ValueError(f"{name} has no option {option!r}; its options are: {', '.join(known)}.")
    return module
