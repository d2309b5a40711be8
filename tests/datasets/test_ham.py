"""The annotated molecules: labels, split by mass, and the three forms in which the files come."""

import hashlib
import json
import os
import shutil

import networkx as nx
import pytest
import torch
from torch_geometric.data import Batch
from torch_geometric.utils import to_networkx

pytest.importorskip("rdkit")

from rdkit import Chem
from rdkit.Chem.Descriptors import MolWt

from advdiff.datasets import load
from advdiff.datasets.files import MINIATURE, DamagedDataError, MissingDataError, find
from advdiff.datasets.ham import BOND_TYPES, ELEMENTS, SOURCES
from tests.miniatures import ham as miniature


@pytest.fixture
def folder(data_folder):
    return data_folder


def graphs_of(data):
    return [graph for part in data.environments.values() for graph in part]


def test_a_graph_by_hand(folder):
    miniature.write(folder)
    data = load("ham")
    entries = miniature.annotations()
    assert len(graphs_of(data)) == len(entries)
    for graph in graphs_of(data):
        entry = entries[graph.file]
        nodes = sorted(entry["nodes"], key=lambda node: node["id"])
        assert [ELEMENTS[number] for number in graph.x[:, :16].argmax(1)] == [node["element"] for node in nodes]
        assert graph.group.tolist() == [node["cg"] for node in nodes]
        ends = [[edge["source"], edge["target"]] for edge in entry["edges"]]
        assert graph.edge_label_index.T.tolist() == ends
        assert graph.y[:, 0].tolist() == [float(nodes[u]["cg"] != nodes[v]["cg"]) for u, v in ends]
        assert graph.is_undirected() and graph.num_edges == 2 * len(ends)
        kinds = [BOND_TYPES[number] for number in graph.edge_attr[:, :4].argmax(1)]
        assert kinds == 2 * [edge["bondtype"] for edge in entry["edges"]]
        drawn = to_networkx(graph, to_undirected=True)
        assert graph.x[:, 16:21].argmax(1).tolist() == [degree for _, degree in sorted(drawn.degree)]
        rings = {u for ring in nx.cycle_basis(drawn) for u in ring}
        assert graph.x[:, 21].tolist() == [float(u in rings) for u in range(graph.num_nodes)]
        assert graph.edge_attr[:, 4].tolist() == [
            float(u in rings and v in rings) for u, v in graph.edge_index.T.tolist()
        ]
        molecule = Chem.MolFromSmiles(graph.smiles)
        assert [atom.GetSymbol() for atom in molecule.GetAtoms()] == [node["element"] for node in nodes]
        assert graph.mass == pytest.approx(MolWt(molecule))
    assert (data.task, data.metric, data.in_channels, data.edge_dim, data.out_channels) == (
        "edge",
        "accuracy",
        22,
        5,
        1,
    )
    assert graph.x.size(1) == 22 and graph.edge_attr.size(1) == 5


def test_the_split_is_by_mass(folder):
    miniature.write(folder)
    data = load("ham")
    sizes = [len(data.graphs(part)) for part in ("train", "valid", "test")]
    assert sizes == [36 * 70 // 100, 36 * 15 // 100, 36 - 25 - 5]
    places = [(graph.mass, graph.file) for graph in graphs_of(data)]
    assert places == sorted(places)


def test_the_forms_are_equal(folder):
    found = []
    for form in ("tar", "folder", "zip"):
        shutil.rmtree(folder, ignore_errors=True)
        miniature.write(folder, form=form)
        found.append(graphs_of(load("ham")))
    for one, *others in zip(*found, strict=True):
        for other in others:
            assert one.file == other.file and torch.equal(one.x, other.x) and torch.equal(one.y, other.y)


def test_molecules_can_be_batched(folder):
    miniature.write(folder)
    batch = Batch.from_data_list(graphs_of(load("ham")))
    assert len(batch.y) == batch.edge_label_index.size(1) == batch.num_edges // 2
    assert torch.equal(
        batch.y[:, 0] > 0, batch.group[batch.edge_label_index[0]] != batch.group[batch.edge_label_index[1]]
    )
    assert len(batch.smiles) == batch.num_graphs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nodes": []}, "no atom"),
        ({"edges": [{"source": 0, "target": 99, "bondtype": 1.0}]}, "no atom"),
        (
            {"edges": [{"source": 0, "target": 1, "bondtype": 1.0}, {"source": 1, "target": 0, "bondtype": 1.0}]},
            "twice",
        ),
        ({"nodes": [{"id": 1, "cg": 0, "element": "C"}]}, "numbered"),
        ({"edges": [{"source": 0, "target": 1, "bondtype": 7.0}]}, "bondtype 7.0 is not one of"),
        ({"smiles": "C1"}, "cannot read the molecule"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_damaged_annotations(folder, change, message):
    miniature.write(folder, form="folder")
    file = sorted((folder / "ham" / "data").iterdir())[3]
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(DamagedDataError, match=message):
        load("ham")


def test_damaged_archives(folder, monkeypatch):
    miniature.write(folder)
    archive = folder / "ham" / "HAM_data.tar.gz"
    content = archive.read_bytes()
    archive.write_bytes(content[: len(content) // 2])
    with pytest.raises(DamagedDataError, match=r"HAM_data\.tar\.gz is damaged"):
        load("ham")
    archive.write_bytes(b"<html>not found</html>")
    with pytest.raises(DamagedDataError, match=r"HAM_data\.tar\.gz is damaged"):
        load("ham")
    archive.write_bytes(content)
    assert len(graphs_of(load("ham"))) == 36
    archive.unlink()
    (folder / "ham" / "data").mkdir()
    with pytest.raises(DamagedDataError, match="no data"):
        load("ham")


@pytest.mark.parametrize("form", ["tar", "folder", "zip"])
def test_without_the_mark_annotations_must_be_upstreams(folder, form, monkeypatch):
    miniature.write(folder, form=form)
    (folder / MINIATURE).unlink()
    with pytest.raises(DamagedDataError, match="its 36 annotations are not upstream's"):
        load("ham")
    files = sorted((name, json.dumps(entry).encode()) for name, entry in miniature.annotations().items())
    known = hashlib.sha256(b"".join(name.encode() + b"\n" + content + b"\n" for name, content in files)).hexdigest()
    monkeypatch.setattr("advdiff.datasets.ham._ANNOTATIONS", known)
    assert len(graphs_of(load("ham"))) == 36


def test_an_archive_that_would_fill_the_memory(folder, monkeypatch):
    miniature.write(folder, form="zip")
    monkeypatch.setattr("advdiff.datasets.ham._LARGEST", 10_000)
    with pytest.raises(DamagedDataError, match=r"master\.zip is damaged .*json would expand to"):
        load("ham")


def test_without_rdkit(folder, monkeypatch):
    miniature.write(folder)
    monkeypatch.setitem(__import__("sys").modules, "rdkit.Chem.Descriptors", None)
    with pytest.raises(MissingDataError, match="pip install rdkit"):
        load("ham")


@pytest.mark.data
@pytest.mark.skipif(
    not os.environ.get("ADVDIFF_DATA") or find(SOURCES[0]) is None, reason="the files of ham are not in $ADVDIFF_DATA"
)
def test_the_real_annotations():
    data = load("ham")
    graphs = graphs_of(data)
    assert [len(data.graphs(part)) for part in ("train", "valid", "test")] == [1390, 298, 299]
    assert len({graph.smiles for graph in graphs}) == 1180
    assert (min(graph.num_nodes for graph in graphs), max(graph.num_nodes for graph in graphs)) == (8, 25)
    assert (min(len(graph.y) for graph in graphs), max(len(graph.y) for graph in graphs)) == (7, 29)
    cut = torch.cat([graph.y for graph in graphs])
    assert (len(cut), int(cut.sum())) == (32949, 13648) and all(bool(graph.y.any()) for graph in graphs)
    ranges = [(round(part[0].mass, 2), round(part[-1].mass, 2)) for part in data.environments.values()]
    assert ranges == [(108.18, 273.34), (273.34, 311.14), (311.14, 762.94)]
    train, valid, test = ({graph.smiles for graph in part} for part in data.environments.values())
    assert (len(train & valid), len(valid & test), len(train & test)) == (2, 1, 0)
