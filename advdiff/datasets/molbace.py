"""BACE: 1,513 molecules, and whether they inhibit the human β-secretase 1.

OGB's ``ogbg-molbace``: :func:`advdiff.datasets.molecules.load_molecules` says what a graph holds. The split is by
scaffold: test molecules have frameworks of rings that training never saw. The share of inhibitors is 0.40 in training,
0.86 in validation and 0.53 in test.
"""

from __future__ import annotations

from advdiff.datasets.base import Dataset
from advdiff.datasets.molecules import LICENCE, METRIC, Counts, load_molecules, sources

__all__ = ["CITATION", "LICENCE", "METRIC", "SOURCES", "TITLE", "load"]

TITLE = "BACE: inhibitors of β-secretase, from OGB"
CITATION = "Hu et al., Open Graph Benchmark, NeurIPS 2020; Wu et al., MoleculeNet, Chemical Science 2018"
COUNTS = Counts(graphs=1513, atoms=51577, bonds=55768, tasks=1, parts=(1210, 151, 152))
SOURCES = sources("molbace", "bace")


def load() -> Dataset:
    """All molecules; see :mod:`advdiff.datasets.molbace`."""
    return load_molecules("molbace", SOURCES, COUNTS)
