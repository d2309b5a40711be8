"""OGB's molecules (``ogbg-mol*``): the reader of their csv files, shared by the data sets.

An atom has nine integers and a bond three, each the place of a value in a list of OGB's (atomic number, chirality,
degree, …). Models take numbers whose size means something, so each integer becomes a one-hot block: 174 columns for an
atom, 13 for a bond.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from advdiff.datasets.base import Dataset
from advdiff.datasets.checksums import CONTENT
from advdiff.datasets.files import Source, damaged, is_made_up, open_text, read_table
from advdiff.datasets.parsed_cache import remember

if TYPE_CHECKING:
    from torch_geometric.data import Data

#: Lengths of OGB's lists for atomic number, chirality, degree, formal charge, hydrogens, radical electrons,
#: hybridisation, aromatic, in a ring.
ATOM_CATEGORIES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
#: Kind of bond, stereochemistry, conjugated.
BOND_CATEGORIES = (5, 6, 2)
PARTS = ("train", "valid", "test")
LICENCE = "MIT"
METRIC = "roc_auc"
FILES = (
    "mapping/mol.csv",
    *(
        f"raw/{name}.csv"
        for name in ("num-node-list", "num-edge-list", "node-feat", "edge", "edge-feat", "graph-label")
    ),
    *(f"split/scaffold/{part}.csv" for part in PARTS),
)
_VERSION = 2


@dataclass(frozen=True)
class Counts:
    """What the whole data set has; bonds are counted once."""

    graphs: int
    atoms: int
    bonds: int
    tasks: int
    parts: tuple[int, int, int]


def sources(name: str, archive: str, derived: bool = False) -> tuple[Source, ...]:
    """The files of OGB's archive; ``derived`` if the checksums that we have are not of OGB's own."""
    found = []
    for file in FILES:
        path = f"ogb_mol/ogbg_{name}/{file}"
        size, sha256 = CONTENT[path]
        url = f"https://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download/{archive}.zip"
        found.append(Source(path, url, sha256, size, f"{archive}/{file}.gz", derived=derived, dataset=name))
    return tuple(found)


def load_molecules(name: str, files: Sequence[Source], counts: Counts) -> Dataset:
    """The data set, split by scaffold, as OGB splits it.

    A graph has ``x`` [N, 174], ``edge_index`` with both directions of bond k as edges 2k and 2k + 1, ``edge_attr``
    [E, 13], ``y`` [1, tasks] of 0, 1 and NaN (unknown), and its ``smiles``.
    """
    arrays = remember(name, files, partial(_parse, counts), version=_VERSION)
    graphs = _graphs(arrays)
    environments = {part: [graphs[number] for number in arrays[part]] for part in PARTS}
    return Dataset(
        name=name,
        options={},
        task="graph",
        metric=METRIC,
        in_channels=sum(ATOM_CATEGORIES),
        out_channels=arrays["label"].shape[1],
        environments=environments,
        train=("train",),
        valid=("valid",),
        test=("test",),
        edge_dim=sum(BOND_CATEGORIES),
    )


def one_hot(categories: Tensor, sizes: Sequence[int]) -> Tensor:
    """[n, len(sizes)] integers → [n, Σ sizes] zeros and ones, one block per column.

    Example:
        >>> one_hot(torch.tensor([[0, 2], [1, 0]]), (2, 3))
        tensor([[1., 0., 0., 0., 1.],
                [0., 1., 1., 0., 0.]])
    """
    first = torch.tensor([0, *accumulate(sizes)][:-1])
    return torch.zeros(len(categories), sum(sizes)).scatter_(1, categories.long() + first, 1.0)


def _parse(counts: Counts, *files: Path) -> dict[str, np.ndarray]:
    """The files as arrays, checked against each other and, but for miniatures, against the counts."""
    paths = dict(zip(FILES, files, strict=True))
    tables = {
        Path(name).stem: read_table(path) for name, path in paths.items() if "mol" not in name and "label" not in name
    }
    parts = {part: tables[part].reshape(-1) for part in PARTS}
    atoms, bonds = (tables[name].reshape(-1) for name in ("num-node-list", "num-edge-list"))
    label, smiles = _labels(paths["raw/graph-label.csv"]), _smiles(paths["mapping/mol.csv"])

    def expect(file: str, found: object, wanted: object, what: str) -> None:
        if found != wanted:
            raise damaged(paths[file], f"it has {found} {what} instead of {wanted}")

    graphs = len(atoms)
    expect("raw/num-edge-list.csv", len(bonds), graphs, "graphs")
    expect("raw/graph-label.csv", len(label), graphs, "graphs")
    expect("mapping/mol.csv", len(smiles), graphs, "graphs")
    features = {}
    for key, sizes, rows in (("node-feat", ATOM_CATEGORIES, atoms.sum()), ("edge-feat", BOND_CATEGORIES, bonds.sum())):
        table = tables[key] if tables[key].size else np.empty((0, len(sizes)), np.int64)
        expect(f"raw/{key}.csv", table.shape, (int(rows), len(sizes)), "rows and columns")
        if table.size and (table.min() < 0 or (table >= sizes).any()):
            raise damaged(paths[f"raw/{key}.csv"], "a feature is not in OGB's list")
        features[key] = table.astype(np.uint8)
    edge = tables["edge"] if tables["edge"].size else np.empty((0, 2), np.int64)
    expect("raw/edge.csv", edge.shape, (int(bonds.sum()), 2), "rows and columns")
    if edge.size and (edge.min() < 0 or (edge >= np.repeat(atoms, bonds)[:, None]).any()):
        raise damaged(paths["raw/edge.csv"], "a bond has an end that is no atom of its graph")
    if not np.array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(graphs)):
        raise damaged(paths["split/scaffold/train.csv"], "train, valid and test do not hold every graph once")
    sizes = (len(parts["train"]), len(parts["valid"]), len(parts["test"]))
    found = Counts(graphs, int(atoms.sum()), int(bonds.sum()), label.shape[1], sizes)
    if found != counts and not is_made_up(files[0]):
        raise damaged(files[0].parents[1], f"it holds {found} instead of {counts}")
    return {
        "atoms": atoms,
        "bonds": bonds,
        "atom_features": features["node-feat"],
        "bond_features": features["edge-feat"],
        "edge": edge,
        "label": label,
        "smiles": smiles,
        **parts,
    }


def _labels(path: Path) -> np.ndarray:
    """[graphs, tasks]; an empty cell, which may be the whole line, is NaN."""
    with open_text(path) as file:
        lines = file.read().splitlines()
    known = {"": np.nan, "0": 0.0, "1": 1.0, "0.0": 0.0, "1.0": 1.0, "nan": np.nan}
    try:
        return np.array([[known[cell.strip()] for cell in line.split(",")] for line in lines], dtype=np.float32)
    except KeyError as error:
        raise damaged(path, f"the label {error} is neither 0 nor 1 nor empty") from error
    except ValueError as error:
        raise damaged(path, error) from error


def _smiles(path: Path) -> np.ndarray:
    with open_text(path) as file:
        rows = list(csv.DictReader(file))
    if not rows or "smiles" not in rows[0]:
        raise damaged(path, "it has no column smiles")
    return np.array([row["smiles"] for row in rows])


def _graphs(arrays: dict[str, np.ndarray]) -> list[Data]:
    from torch_geometric.data import Data

    atom = one_hot(torch.from_numpy(arrays["atom_features"]), ATOM_CATEGORIES)
    bond = one_hot(torch.from_numpy(arrays["bond_features"]), BOND_CATEGORIES).repeat_interleave(2, dim=0)
    edge = torch.from_numpy(arrays["edge"])
    edge = torch.stack([edge, edge.flip(1)], dim=1).view(-1, 2).T
    label = torch.from_numpy(arrays["label"])
    atoms = pairwise([0, *accumulate(arrays["atoms"].tolist())])
    edges = pairwise([0, *accumulate((2 * arrays["bonds"]).tolist())])
    graphs = []
    for number, (nodes, ends) in enumerate(zip(atoms, edges, strict=True)):
        graphs.append(
            Data(
                x=atom[slice(*nodes)].clone(),
                edge_index=edge[:, slice(*ends)].contiguous(),
                edge_attr=bond[slice(*ends)].clone(),
                y=label[number : number + 1].clone(),
                smiles=str(arrays["smiles"][number]),
            )
        )
    return graphs
