"""HAM: 1,987 annotations of 1,180 molecules, and which bonds an expert cut to group the atoms.

Nodes are heavy atoms; each bond is to be called cut (1) or not (0). A graph has ``x`` [N, 22]: one-hot element (16),
number of bonds (0 to 4) and whether the atom is in a ring; ``edge_attr`` [E, 5]: one-hot kind of bond (single,
aromatic, double, triple) and whether it is in a ring. Upstream's files hold elements and kinds of bonds; the rest
follows from the graph. ``edge_label_index`` [2, M] holds each bond once, with ``y`` [M, 1]. For drawing, a graph keeps
its ``smiles``, whose heavy atoms are in the order of the nodes, the expert's ``group`` of each atom, ``mass``, and the
``file`` of the annotation.

Annotations are ordered by relative molecular mass, ties by the name of the file: the lightest 70 % train, the next 15 %
validate, the heaviest are tested. A molecule that several experts annotated has one mass, so its annotations stay
together, but for the ties at the two cuts. Experts disagree, so nobody reaches an accuracy of 1.
"""

from __future__ import annotations

import hashlib
import json
import re
from importlib import import_module
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import torch

from advdiff.datasets.archives import read_members
from advdiff.datasets.base import Dataset
from advdiff.datasets.files import DamagedDataError, MissingDataError, Source, damaged, is_made_up
from advdiff.datasets.molecules import PARTS, one_hot
from advdiff.datasets.parsed_cache import remember

if TYPE_CHECKING:
    from torch_geometric.data import Data

TITLE = "HAM: molecules with the groups of atoms that experts chose"
LICENCE = "CC0 1.0"
CITATION = "Li et al., Graph neural network based coarse-grained mapping prediction, Chemical Science 2020"
SOURCES = (
    Source(
        path="ham/HAM_data.tar",
        url="https://github.com/rochesterxugroup/HAM_dataset/archive/f672889.tar.gz",
        dataset="ham",
        also=("ham/data", "ham/master.zip", "ham/HAM_dataset-master.zip"),
    ),
)

ELEMENTS = ("C", "N", "O", "S", "F", "Cl", "Br", "I", "Si", "P", "B", "Se", "Sn", "K", "Ru", "Fe")
BOND_TYPES = (1.0, 1.5, 2.0, 3.0)
ATOM_CATEGORIES = (len(ELEMENTS), 5)  # and a ring
BOND_CATEGORIES = (len(BOND_TYPES),)  # and a ring
METRIC = "accuracy"
#: Of names and contents of all annotations in the order of their names: upstream's archives come in several forms.
_ANNOTATIONS = "166164012774474e8f9788a981dc40d4a8084cda116a0512c1fc9710ecae5ab3"
#: Bytes that all annotations may have: five times upstream's.
_LARGEST = 16 << 20
_VERSION = 2
_MEMBER = re.compile(r"(^|/)data/[^/]+\.json$")


def load() -> Dataset:
    """All annotations, split by mass; see :mod:`advdiff.datasets.ham`."""
    arrays = remember("ham", SOURCES, _parse, version=_VERSION)
    graphs = _graphs(arrays)
    order = np.lexsort((arrays["name"], arrays["mass"]))
    first, second = len(order) * 70 // 100, len(order) * 15 // 100
    cuts = [0, first, first + second, len(order)]
    environments = {
        part: [graphs[number] for number in order[slice(*ends)]]
        for part, ends in zip(PARTS, pairwise(cuts), strict=True)
    }
    return Dataset(
        name="ham",
        options={},
        task="edge",
        metric=METRIC,
        in_channels=sum(ATOM_CATEGORIES) + 1,
        out_channels=1,
        environments=environments,
        train=("train",),
        valid=("valid",),
        test=("test",),
        edge_dim=sum(BOND_CATEGORIES) + 1,
    )


def _files(path: Path) -> dict[str, bytes]:
    """Name and content of the annotations in a folder or an archive, in the order of their names."""
    if path.is_dir():
        found = {file.name: file.read_bytes() for file in path.glob("*.json")}
    else:
        found = {Path(name).name: content for name, content in read_members(path, _MEMBER.search, _LARGEST)}
    return dict(sorted(found.items()))


def _parse(path: Path) -> dict[str, np.ndarray]:
    """All annotations, one after the other in flat arrays."""
    files = _files(path)
    columns: dict[str, list[Any]] = {}
    for file, content in files.items():
        try:
            found = _annotation(json.loads(content))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise damaged(path / file, error) from error
        for key, values in {"name": [file], **found}.items():
            columns.setdefault(key, []).extend(values)
    if not columns:
        raise damaged(path, "it holds no data/*.json")
    digest = hashlib.sha256(b"".join(name.encode() + b"\n" + content + b"\n" for name, content in files.items()))
    if digest.hexdigest() != _ANNOTATIONS and not is_made_up(path):
        raise damaged(path, f"its {len(files)} annotations are not upstream's")
    arrays = {key: np.array(values) for key, values in columns.items()}
    arrays["mass"] = _masses(arrays["smiles"].tolist())
    return arrays


def _annotation(entry: dict[str, Any]) -> dict[str, list[Any]]:
    nodes = sorted(entry["nodes"], key=lambda node: node["id"])
    if [node["id"] for node in nodes] != list(range(len(nodes))):
        raise ValueError("atoms are not numbered 0, 1, 2, …")
    bonds = [(edge["source"], edge["target"]) for edge in entry["edges"]]
    graph = nx.Graph(bonds)
    graph.add_nodes_from(range(len(nodes)))
    if len(graph) > len(nodes):
        raise ValueError("a bond has an end that is no atom")
    if graph.number_of_edges() < len(bonds):
        raise ValueError("a bond is listed twice")
    group = [node["cg"] for node in nodes]
    bridges = {frozenset(bond) for bond in nx.bridges(graph)}
    bond_ring = [frozenset(bond) not in bridges for bond in bonds]
    in_rings = {u for bond, ring in zip(bonds, bond_ring, strict=True) if ring for u in bond}
    return {
        "smiles": [entry["smiles"]],
        "atoms": [len(nodes)],
        "bonds": [len(bonds)],
        "element": [_place("element", node["element"], ELEMENTS) for node in nodes],
        "degree": [graph.degree[u] for u in range(len(nodes))],
        "atom_ring": [u in in_rings for u in range(len(nodes))],
        "group": group,
        "bond": [end for bond in bonds for end in bond],
        "bond_type": [_place("bondtype", edge["bondtype"], BOND_TYPES) for edge in entry["edges"]],
        "bond_ring": bond_ring,
        "cut": [group[u] != group[v] for u, v in bonds],
    }


def _place(what: str, value: object, known: tuple[object, ...]) -> int:
    if value not in known:
        raise ValueError(f"{what} {value!r} is not one of {', '.join(map(str, known))}")
    return known.index(value)


def _masses(smiles: list[str]) -> np.ndarray:
    """Relative molecular masses, hydrogens included."""
    try:
        chemistry, descriptors = (import_module(f"rdkit.{name}") for name in ("Chem", "Chem.Descriptors"))
    except ImportError as error:
        raise MissingDataError("the masses of ham's molecules need RDKit: `pip install rdkit`.") from error
    found: dict[str, float] = {}
    for each in dict.fromkeys(smiles):
        molecule = chemistry.MolFromSmiles(each)
        if molecule is None:
            raise DamagedDataError(f"RDKit cannot read the molecule {each!r} of ham.")
        found[each] = float(descriptors.MolWt(molecule))
    return np.array([found[each] for each in smiles])


def _graphs(arrays: dict[str, np.ndarray]) -> list[Data]:
    from torch_geometric.data import Data

    element, degree, group = (torch.from_numpy(arrays[key]) for key in ("element", "degree", "group"))
    atom_ring, bond_ring, cut = (torch.from_numpy(arrays[key]).float() for key in ("atom_ring", "bond_ring", "cut"))
    categories = torch.stack([element, degree.clamp(max=ATOM_CATEGORIES[1] - 1)], dim=1)
    x = torch.cat([one_hot(categories, ATOM_CATEGORIES), atom_ring[:, None]], dim=1)
    kind = one_hot(torch.from_numpy(arrays["bond_type"])[:, None], BOND_CATEGORIES)
    bond_features = torch.cat([kind, bond_ring[:, None]], dim=1)
    bond = torch.from_numpy(arrays["bond"]).view(-1, 2).T
    nodes = pairwise([0, *accumulate(arrays["atoms"].tolist())])
    edges = pairwise([0, *accumulate(arrays["bonds"].tolist())])
    graphs = []
    for number, (own_nodes, own_edges) in enumerate(zip(nodes, edges, strict=True)):
        atoms, bonds = slice(*own_nodes), slice(*own_edges)
        ends = bond[:, bonds].contiguous()
        graphs.append(
            Data(
                x=x[atoms].clone(),
                edge_index=torch.cat([ends, ends.flip(0)], dim=1),
                edge_attr=bond_features[bonds].repeat(2, 1),
                edge_label_index=ends,
                y=cut[bonds, None].clone(),
                group=group[atoms].clone(),
                smiles=str(arrays["smiles"][number]),
                file=str(arrays["name"][number]),
                mass=float(arrays["mass"][number]),
            )
        )
    return graphs
