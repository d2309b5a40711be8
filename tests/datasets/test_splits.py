"""Who trains, who chooses and who is tested, decided from the raw files alone: nothing of a test may leak.

The loaders are not asked for anything but their graphs: names, years, masses and numbers of the parts come from the
paper and from the files as upstream ships them.
"""

from __future__ import annotations

import csv
import gzip
import json
import tarfile
from itertools import chain, combinations, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from advdiff.datasets import Dataset, load
from tests import miniatures
from tests.miniatures import dppin as small_dppin

PARTS = ("train", "valid", "test")


def text(path: Path) -> str:
    zipped = path.with_name(path.name + ".gz")
    return gzip.decompress(zipped.read_bytes()).decode() if zipped.exists() else path.read_text()


def rows(path: Path) -> list[list[str]]:
    return [line.split(",") for line in text(path).splitlines()]


def roles(data: Dataset) -> dict[str, tuple[str, ...]]:
    assert set(data.environments) == {*data.train, *data.valid, *data.test}
    assert len(data.environments) == len([*data.train, *data.valid, *data.test]), "no environment has two roles"
    return {part: getattr(data, part) for part in PARTS}


# Twitch: the region decides


def test_twitch(data_folder: Path) -> None:
    miniatures.write("twitch", data_folder)
    data = load("twitch")
    files = {"train": ["DE"], "valid": ["ENGB"], "test": ["ES", "FR", "PTBR", "RU", "ZHTW"]}
    for part, names in roles(data).items():
        for name, region in zip(names, files[part], strict=True):
            (graph,) = data.graphs(name)
            head, *lines = rows(data_folder / f"twitch/target/{region}_target.csv")
            mature = {int(line[head.index("new_id")]): line[head.index("mature")] == "True" for line in lines}
            assert graph.y.tolist() == [int(mature[node]) for node in range(len(mature))], (part, region)
            assert "mask" not in graph, "all of a region belongs to one part"
            # The features are those of the file, and nothing else: no column holds the label.
            lists = json.loads(text(data_folder / f"twitch/features/{region}.json"))
            dense = graph.x.to_dense()
            assert all(set(dense[int(node)].nonzero()[:, 0].tolist()) == set(own) for node, own in lists.items())
            pairs = {frozenset(map(int, line)) for line in rows(data_folder / f"twitch/edges/{region}_edges.csv")[1:]}
            assert {frozenset(edge) for edge in graph.edge_index.T.tolist()} == pairs


# Arxiv: the year decides

YEARS = {"train": [(0, 2014)], "valid": [(2015, 2017)], "test": [(2018, 2018), (2019, 2019), (2020, 2020)]}


@pytest.fixture
def arxiv(data_folder: Path) -> dict[str, np.ndarray]:
    miniatures.write("arxiv", data_folder)
    raw = data_folder / "ogbn_arxiv/raw"
    return {
        name: np.array(rows(raw / f"{name}.csv"), float) for name in ("edge", "node_year", "node-label", "node-feat")
    }


@pytest.mark.parametrize("network", ["growing", "whole"])
def test_arxiv_asks_for_papers_of_its_own_years_only(arxiv: dict[str, np.ndarray], network: str) -> None:
    data = load("arxiv", network=network)
    year, label = arxiv["node_year"][:, 0], arxiv["node-label"][:, 0]
    asked: dict[str, set[int]] = {}
    for part, names in roles(data).items():
        for name, (first, last) in zip(names, YEARS[part], strict=True):
            (graph,) = data.graphs(name)
            asked[name] = set(graph.node[graph.mask].tolist())
            assert asked[name] == set(np.flatnonzero((year >= first) & (year <= last)).tolist())
            assert np.array_equal(graph.y, label[graph.node])
            np.testing.assert_allclose(graph.x, arxiv["node-feat"][graph.node], rtol=1e-6)
    assert all(not a & b for a, b in combinations(asked.values(), 2))
    assert set().union(*asked.values()) == set(range(len(year)))


@pytest.mark.parametrize("edges", ["undirected", "directed"])
def test_arxiv_knows_nothing_of_later_papers(arxiv: dict[str, np.ndarray], edges: str) -> None:
    data = load("arxiv", edges=edges)
    year, citations = arxiv["node_year"][:, 0], arxiv["edge"].astype(int)
    for part, names in roles(data).items():
        for name, (_, last) in zip(names, YEARS[part], strict=True):
            (graph,) = data.graphs(name)
            assert year[graph.node].max() <= last and len(graph.y) == len(graph.x) == (year <= last).sum()
            joined = graph.node[graph.edge_index].numpy()
            assert year[joined].max() <= last, "no edge leads to a later paper"
            known = {(u, v) for u, v in citations.tolist() if max(year[u], year[v]) <= last}
            both = known | {(v, u) for u, v in known}
            assert set(map(tuple, joined.T.tolist())) == (known if edges == "directed" else both)
    assert (year[citations].max(axis=1) > 2014).any(), "the miniature has something to leak"


# DPPIN: the name of the network decides

REST = ("Babu", "Krogan(MALDI)", "Tarassov", "Uetz", "Yu")
NETWORKS = {
    "paper": (("Gavin", "Ho", "Hazbun", "Ito", "Breitkreutz", "Lambert"), ("Krogan(LCMS)",), REST),
    "code": (("Gavin", "Ho", "Hazbun", "Ito"), ("Krogan(LCMS)",), (*REST, "Breitkreutz", "Lambert")),
}


@pytest.mark.parametrize("split", NETWORKS)
@pytest.mark.parametrize("task", ["node", "edge", "link"])
def test_dppin(data_folder: Path, split: str, task: str) -> None:
    miniatures.write("dppin", data_folder)
    data = load("dppin", split=split, task=task)
    for part, names in zip(PARTS, NETWORKS[split], strict=True):
        assert sorted(roles(data)[part]) == sorted(names)
    for name in data.environments:
        lines = rows(data_folder / f"dppin/DPPIN-{name}/Node_Features.txt")
        values = np.array(sorted((int(line[0]), *map(float, line[2:])) for line in lines))[:, 1:].astype(np.float32)
        for graph, stamp in zip(data.graphs(name), range(10, 36), strict=True):
            # The ten stamps before, the last of them the one before: nothing of the stamp itself, or later.
            np.testing.assert_allclose(graph.x, values[:, stamp - 10 : stamp], rtol=1e-6)
            assert set(graph.keys()) - {"edge_label_index"} == {"x", "edge_index", "y", "stamp"}
            if task == "node":
                np.testing.assert_allclose(graph.y[:, 0], values[:, stamp], rtol=1e-6)


@pytest.mark.parametrize("graph", ["current", "previous"])
def test_dppin_gives_no_link_away(data_folder: Path, graph: str) -> None:
    miniatures.write("dppin", data_folder)
    for name, snapshots in load("dppin", task="link", graph=graph).environments.items():
        edges = small_dppin.network(small_dppin.NAMES.index(name))[1]
        for snapshot in snapshots:
            then = {(u, v) for u, v, stamp, _ in edges if stamp == snapshot.stamp}
            before = {(u, v) for u, v, stamp, _ in edges if stamp == snapshot.stamp - 1}
            shown = {tuple(sorted(pair)) for pair in snapshot.edge_index.T.tolist()}
            asked = list(map(tuple, snapshot.edge_label_index.T.tolist()))
            assert [pair in then for pair in asked] == (snapshot.y[:, 0] == 1).tolist()
            assert shown == before if graph == "previous" else shown < then and not shown & set(asked)


# HAM: the mass decides


def test_ham(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rdkit")
    from rdkit.Chem import Descriptors, MolFromSmiles

    monkeypatch.setattr("tests.miniatures.ham.MOLECULES", 100)  # so that a per cent is more than one of them
    miniatures.write("ham", data_folder)
    with tarfile.open(data_folder / "ham/HAM_data.tar.gz") as archive:
        entries = {Path(each.name).name: json.load(archive.extractfile(each)) for each in archive}  # type: ignore[arg-type]
    masses = {name: Descriptors.MolWt(MolFromSmiles(entry["smiles"])) for name, entry in entries.items()}
    ordered = sorted(entries, key=lambda name: (masses[name], name))
    first, second = int(0.7 * len(ordered)), int(0.15 * len(ordered))
    cuts = (ordered[:first], ordered[first : first + second], ordered[first + second :])
    expected = dict(zip(PARTS, cuts, strict=True))
    data = load("ham")
    assert roles(data) == {part: (part,) for part in PARTS}
    for part in PARTS:
        assert [graph.file for graph in data.graphs(part)] == expected[part]
    heaviest, lightest = ([limit(masses[name] for name in expected[part]) for part in PARTS] for limit in (max, min))
    assert heaviest[0] <= lightest[1] and heaviest[1] <= lightest[2] and lightest[0] < heaviest[2]
    # A bond is cut or not by the groups, of which the features must know nothing.
    for graph in data.graphs(*PARTS):
        nodes = sorted(entries[graph.file]["nodes"], key=lambda node: node["id"])
        cut = [nodes[u]["cg"] != nodes[v]["cg"] for u, v in graph.edge_label_index.T.tolist()]
        assert graph.y[:, 0].bool().tolist() == cut
    twins = {}
    for graph in data.graphs(*PARTS):
        other = twins.setdefault(graph.smiles, graph)
        assert torch.equal(graph.x, other.x) and torch.equal(graph.edge_attr, other.edge_attr)
    assert any(not torch.equal(graph.y, twins[graph.smiles].y) for graph in data.graphs(*PARTS))


# Molecules of OGB: the files of the scaffold split decide


@pytest.mark.parametrize("name", ["molbace", "molsider"])
def test_molecules(data_folder: Path, name: str) -> None:
    miniatures.write(name, data_folder)
    folder = data_folder / f"ogb_mol/ogbg_{name}"
    table = list(csv.DictReader(text(folder / "mapping/mol.csv").splitlines()))
    lines = text(folder / "raw/graph-label.csv").splitlines()
    labels = [[float(cell or "nan") for cell in line.split(",")] for line in lines]
    atoms = [int(line) for (line,) in rows(folder / "raw/num-node-list.csv")]
    starts = np.cumsum([0, *atoms])
    elements = [int(line[0]) for line in rows(folder / "raw/node-feat.csv")]
    data = load(name)
    assert roles(data) == {part: (part,) for part in PARTS}
    numbers = {part: [int(line) for (line,) in rows(folder / f"split/scaffold/{part}.csv")] for part in PARTS}
    assert sorted(chain(*numbers.values())) == list(range(len(table)))
    for part in PARTS:
        for number, graph in zip(numbers[part], data.graphs(part), strict=True):
            assert graph.smiles == table[number]["smiles"] and graph.num_nodes == atoms[number]
            assert graph.x[:, :119].argmax(1).tolist() == elements[starts[number] : starts[number + 1]]
            assert np.array_equal(graph.y[0], labels[number], equal_nan=True)
            assert set(graph.keys()) == {"x", "edge_index", "edge_attr", "y", "smiles"} and graph.x.size(1) == 174


# Data that are drawn


def test_synthetic() -> None:
    data = load("synthetic", shift="block", num_nodes=300)
    assert roles(data) == {"train": ("#1",), "valid": ("#2",), "test": tuple(f"#{k}" for k in range(3, 13))}
    graphs = data.graphs(*data.environments)
    assert [int(graph.block.max()) + 1 for graph in graphs] == list(range(5, 17)), "graph #k has 4 + k blocks"
    for graph in graphs:  # the features are a function of the latent alone: the same nodes, whatever the graph
        assert torch.equal(graph.x, graphs[0].x) and torch.equal(graph.latent, graphs[0].latent)
    edges = [set(map(tuple, graph.edge_index.T.tolist())) for graph in graphs]
    for before, after in pairwise(edges):  # drawn anew: as many common edges as two independent draws have
        assert len(before & after) < 0.2 * len(after)
    assert all(not torch.equal(a.y, b.y) for a, b in combinations(graphs, 2))


def test_small_graphs() -> None:
    data = load("small_graphs", num_graphs=64)
    assert roles(data) == {part: (part,) for part in PARTS}
    sizes = {part: [graph.num_nodes for graph in data.graphs(part)] for part in PARTS}
    assert {part: len(own) for part, own in sizes.items()} == {"train": 64, "valid": 16, "test": 16}
    assert max(sizes["train"]) <= 16 and max(sizes["valid"]) <= 16 and min(sizes["test"]) >= 17
    seen = [tuple(graph.x.flatten().tolist()) for graph in data.graphs(*PARTS)]
    assert len(set(seen)) == len(seen), "no graph is in two parts, or twice in one"
