"""SIDER: 1,427 drugs, and which of 27 kinds of side effects they have.

OGB's ``ogbg-molsider``: :func:`advdiff.datasets.molecules.load_molecules` says what a graph holds. The split is by
scaffold. Molecules have 1 to 492 atoms; 31 have no bond. This book was made with files that follow from MoleculeNet's
SIDER by OGB's own steps; if those of OGB's archive differ from them, a warning says so when they are first read.
"""

from __future__ import annotations

from advdiff.datasets.base import Dataset
from advdiff.datasets.molecules import LICENCE, METRIC, Counts, load_molecules, sources

__all__ = ["CITATION", "LICENCE", "METRIC", "SOURCES", "TITLE", "load"]

TITLE = "SIDER: side effects of drugs, from OGB"
CITATION = "Hu et al., Open Graph Benchmark, NeurIPS 2020; Wu et al., MoleculeNet, Chemical Science 2018"
COUNTS = Counts(graphs=1427, atoms=48006, bonds=50456, tasks=27, parts=(1141, 143, 143))
SOURCES = sources("molsider", "sider", derived=True)


def load() -> Dataset:
    """All molecules; see :mod:`advdiff.datasets.molsider`."""
    return load_molecules("molsider", SOURCES, COUNTS)
