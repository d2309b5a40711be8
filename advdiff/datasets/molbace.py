"""BACE: 1,513 molecules, and whether they inhibit the human β-secretase 1.

OGB's ``ogbg-molbace``: :func:`advdiff.datasets.molecules.load_molecules` says what a graph holds. The split is by
scaffold: test molecules have frameworks of rings that training never saw. The share of inhibitors is 0.40 in training,
0.86 in validation and 0.53 in test.
"""

from __future__ import annotations

from advdiff.datasets.base import Dataset
from advdiff.datasets.molecules import LICENCE, Counts, load_molecules, sources

__all__ = ["CITATION", "LICENCE", "SOURCES", "TITLE", "load"]

TITLE = "BACE: inhibitors of β-secretase, from OGB"
CITATION = "Hu et al., Open Graph Benchmark, NeurIPS 2020; Wu et al., MoleculeNet, Chemical Science 2018"
COUNTS = Counts(graphs=1513, atoms=51577, bonds=55768, tasks=1, parts=(1210, 151, 152))
SOURCES = sources(
    "molbace",
    "bace",
    (
        "b60661da634240472d147509f7d56330e1f3179115e84b69350e9df5827e67d4",
        "55c445b5e1996c4a851f767d9e9ed78877bf610264d4f5c7298c664efac5363f",
        "c9dc641ff3ceb2dcd7f96ee2d968bb4600ed77558e03ac1017ddb15202ee799a",
        "dcfc96f0df2646d515d7636a4a86b4a31696e55f23112b86385efd784238c1d4",
        "3732c3ab775f538f72bc6ce34d7ae2197c17fa60b9fe4dde9214e57f898e5d20",
        "7112014bf6c2efd6c6743b771176d0a2ba0ca52cc3deb0d6498d074dd470b78e",
        "abb5e7c9c7a6287d49e7b9485616f7a7e70082a8518d0e73ffe3f50f5323772f",
        "a24de5dcd7874cf237df7909764962b2955f20f06032979f5e6601e95e8a6b20",
        "e21ea95f290d4935770b3a1c20be83368d87889c49fec35fba82a513b75c5641",
        "0550528017cc81d18355b1cc679af7f49dab8175c8a680958e542413a5f7397a",
    ),
)


def load() -> Dataset:
    """All molecules; see :mod:`advdiff.datasets.molbace`."""
    return load_molecules("molbace", SOURCES, COUNTS)
