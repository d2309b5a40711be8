"""Graphs and data sets: one file per data set, all loaded by name."""

from __future__ import annotations

import inspect
from importlib import import_module

from advdiff.checks import check_choice
from advdiff.datasets.base import Dataset
from advdiff.datasets.files import is_miniature

__all__ = ["DATASETS", "Dataset", "is_miniature", "load"]

#: Each is a module of this package with a function ``load``; imported when it is asked for, as PyG is slow to import.
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
    check_choice("data set", name, DATASETS)
    loader = import_module(f"advdiff.datasets.{name}").load
    known = inspect.signature(loader).parameters
    for option in options:
        if option not in known:
            raise ValueError(f"{name} has no option {option!r}; its options are: {', '.join(known)}.")
    data: Dataset = loader(**options)
    return data
