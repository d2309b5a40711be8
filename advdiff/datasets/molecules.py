"""OGB's molecules (``ogbg-mol*``): the reader of their csv files, shared by the data sets.

An atom has nine integers and a bond three, each the place of a value in a list of OGB's (atomic number, chirality,
degree, …). Models take numbers whose size means something, so each integer becomes a one-hot block: 174 columns for an
atom, 13 for a bond.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from advdiff.datasets.base import Dataset
from advdiff.datasets.files import DamagedDataError, Source, damaged, locate, open_text, read_table, remember

#: Lengths of OGB's lists for atomic number, chirality, degree, formal charge, hydrogens, radical electrons,
#: hybridisation, aromatic, in a ring.
ATOM_CATEGORIES = (119, 5, 12, 12, 10, 6, 6, 2, 2)
#: Kind of bond, stereochemistry, conjugated.
BOND_CATEGORIES = (5, 6, 2)
PARTS = ("train", "valid", "test")
LICENCE = "MIT"
FILES = (
    "mapping/mol.csv",
    *(
        f"raw/{name}.csv"
        for name in ("num-node-list", "num-edge-list", "node-feat", "edge", "edge-feat", "graph-label")
    ),
    *(f"split/scaffold/{part}.csv" for part in PARTS),
)


@dataclass(frozen=True)
class Counts:
    """What the whole data set has; bonds are counted once."""

    graphs: int
    atoms: int
    bonds: int
    tasks: int
    parts: tuple[int, int, int]


def sources(name: str, archive: str, checksums: Sequence[str] = ()) -> tuple[Source, ...]:
    """The files of OGB's archive; ``checksums`` of their contents, in the order of ``FILES``, where known."""
    return tuple(
        Source(
            path=f"ogb_mol/ogbg_{name}/{file}",
            url=f"http://snap.stanford.edu/ogb/data/graphproppred/csv_mol_download/{archive}.zip",
            sha256=checksums[number] if checksums else None,
            member=f"{archive}/{file}.gz",
            dataset=name,
        )
        for number, file in enumerate(FILES)
    )


def load_molecules(name: str, files: Sequence[Source], counts: Counts) -> Dataset:
    """The data set, split by scaffold, as OGB splits it.

    A graph has ``x`` [N, 174], ``edge_index`` with both directions of bond k as edges 2k and 2k + 1, ``edge_attr``
    [E, 13], ``y`` [1, tasks] of 0, 1 and NaN (unknown), and its ``smiles``.
    """
    paths = [locate(source) for source in files]
    arrays = remember(name, {}, paths, lambda: _parse(dict(zip(FILES, paths, strict=True))))
    _check(name, arrays, counts)
    graphs = _graphs(arrays)
    environments = {part: [graphs[number] for number in arrays[part]] for part in PARTS}
    return Dataset(
        name=name,
        options={},
        task="graph",
        metric="roc_auc",
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


def _parse(paths: dict[str, Path]) -> dict[str, np.ndarray]:
    """The files as arrays, checked against each other."""
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
    try:
        return np.array([[float(cell or "nan") for cell in line.split(",")] for line in lines], dtype=np.float32)
    except ValueError as error:
        raise damaged(path, error) from error


def _smiles(path: Path) -> np.ndarray:
    with open_text(path) as file:
        rows = list(csv.DictReader(file))
    if not rows or "smiles" not in rows[0]:
        raise damaged(path, "it has no column smiles")
    return np.array([row["smiles"] for row in rows])


def _check(name: str, arrays: dict[str, np.ndarray], counts: Counts) -> None:
    """Files of a thousand molecules and more are the real ones, and must be complete."""
    parts = tuple(len(arrays[part]) for part in PARTS)
    sums = int(arrays["atoms"].sum()), int(arrays["bonds"].sum())
    found = Counts(len(arrays["atoms"]), *sums, arrays["label"].shape[1], parts)  # type: ignore[arg-type]
    if found.graphs >= 1000 and found != counts:
        raise DamagedDataError(f"the files of {name} are not upstream's: they hold {found} instead of {counts}.")


def _graphs(arrays: dict[str, np.ndarray]) -> list[Data]:
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
