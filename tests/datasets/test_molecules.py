"""OGB's molecules: features, labels and split, from small files and from the real ones."""

import gzip
import os
import shutil

import pytest
import torch
from torch_geometric.data import Batch

from advdiff.datasets import load, molbace, molsider
from advdiff.datasets.files import MINIATURE, DamagedDataError, MissingDataError, find
from advdiff.datasets.molecules import ATOM_CATEGORIES, BOND_CATEGORIES, one_hot
from tests.miniatures import molbace as small_bace
from tests.miniatures import molsider as small_sider

MODULES = {"molbace": (molbace, small_bace, 1), "molsider": (molsider, small_sider, 27)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("ADVDIFF_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ADVDIFF_CACHE", str(tmp_path / "cache"))
    for _, miniature, _ in MODULES.values():
        miniature.write(tmp_path / "data")
    return tmp_path / "data" / "ogb_mol"


def lines(folder, name, file):
    return gzip.decompress((folder / f"ogbg_{name}" / f"{file}.csv.gz").read_bytes()).decode().splitlines()


def in_the_order_of_the_files(data, folder):
    numbers = {part: map(int, lines(folder, data.name, f"split/scaffold/{part}")) for part in data.environments}
    found = {n: g for part, own in numbers.items() for n, g in zip(own, data.graphs(part), strict=True)}
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("name", MODULES)
def test_graphs_by_hand(folder, name):
    data, tasks = load(name), MODULES[name][2]
    assert (data.task, data.metric, data.out_channels) == ("graph", "roc_auc", tasks)
    assert (data.in_channels, data.edge_dim) == (174, 13) == (sum(ATOM_CATEGORIES), sum(BOND_CATEGORIES))
    atoms, bonds, labels = (iter(lines(folder, name, f"raw/{file}")) for file in ("node-feat", "edge", "graph-label"))
    kinds, counts = iter(lines(folder, name, "raw/edge-feat")), lines(folder, name, "raw/num-edge-list")
    graphs = in_the_order_of_the_files(data, folder)
    for graph, count in zip(graphs, counts, strict=True):
        place = [0, *torch.tensor(ATOM_CATEGORIES).cumsum(0).tolist()]
        for row in graph.x:
            ones = row.nonzero().flatten().tolist()
            assert [one - first for one, first in zip(ones, place, strict=False)] == [*map(int, next(atoms).split(","))]
        assert graph.num_edges == 2 * int(count)
        for bond in range(int(count)):
            u, v = map(int, next(bonds).split(","))
            assert graph.edge_index[:, 2 * bond : 2 * bond + 2].tolist() == [[u, v], [v, u]]
            ones = [one.nonzero().flatten().tolist() for one in graph.edge_attr[2 * bond : 2 * bond + 2]]
            kind, stereo, conjugated = map(int, next(kinds).split(","))
            assert ones == 2 * [[kind, 5 + stereo, 11 + conjugated]]
        cells = [float(cell or "nan") for cell in next(labels).split(",")]
        assert torch.equal(graph.y.nan_to_num(nan=-1), torch.tensor([cells]).nan_to_num(nan=-1))
    assert graphs[7].num_nodes == 1 and graphs[7].num_edges == 0
    assert bool(graphs[20].y[0, 0].isnan())
    assert [len(data.graphs(part)) for part in ("train", "valid", "test")] == [32, 4, 4]
    assert graphs[0].smiles in lines(folder, name, "mapping/mol")[1]
    batch = Batch.from_data_list(graphs)
    assert batch.y.shape == (40, tasks) and batch.edge_attr.size(0) == batch.num_edges


def test_one_hot():
    assert one_hot(torch.empty(0, 3), BOND_CATEGORIES).shape == (0, 13)
    rows = one_hot(torch.tensor([[4, 5, 1], [0, 0, 0]]), BOND_CATEGORIES)
    assert rows.sum(1).tolist() == [3, 3] and rows[0].nonzero().flatten().tolist() == [4, 10, 12]


def test_plain_files_are_read_too(folder):
    before = load("molbace").graphs("train")
    for path in list((folder / "ogbg_molbace").rglob("*.gz")):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    for one, other in zip(before, load("molbace").graphs("train"), strict=True):
        assert torch.equal(one.x, other.x) and torch.equal(one.edge_index, other.edge_index)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("raw/num-edge-list", lambda text: text[:-1], "39 graphs instead of 40"),
        ("raw/graph-label", lambda text: text[:-1], "39 graphs instead of 40"),
        ("mapping/mol", lambda text: text[:-1], "39 graphs instead of 40"),
        ("mapping/mol", lambda text: ["Class,molecule", *text[1:]], "no column smiles"),
        ("raw/node-feat", lambda text: text[:-1], "rows and columns"),
        ("raw/node-feat", lambda text: ["119,0,0,0,0,0,0,0,0", *text[1:]], "not in OGB's list"),
        ("raw/edge", lambda text: ["0,99", *text[1:]], "no atom of its graph"),
        ("raw/edge-feat", lambda text: text[:-1], "rows and columns"),
        ("split/scaffold/train", lambda text: text[:-1], "every graph once"),
    ],
)
def test_damaged_files(folder, file, change, message):
    path = folder / "ogbg_molbace" / f"{file}.csv.gz"
    text = "".join(line + "\n" for line in change(lines(folder, "molbace", file)))
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(DamagedDataError, match=message):
        load("molbace")


@pytest.mark.parametrize("cell", ["7", "-1", "0.5", "yes", "inf"])
@pytest.mark.parametrize("name", MODULES)
def test_labels_are_yes_no_or_unknown(folder, name, cell):
    path = folder / f"ogbg_{name}" / "raw/graph-label.csv.gz"
    first, *rest = lines(folder, name, "raw/graph-label")
    path.write_bytes(gzip.compress("\n".join([",".join([cell, *first.split(",")[1:]]), *rest, ""]).encode()))
    with pytest.raises(DamagedDataError, match=f"the label '{cell}' is neither 0 nor 1 nor empty"):
        load(name)


def test_without_the_mark_files_must_be_upstreams(folder):
    (folder.parent / MINIATURE).unlink()
    with pytest.raises(DamagedDataError, match=r"mol.csv.gz is damaged .*its SHA-256 is .* instead of b60661da6342"):
        load("molbace")
    # Of SIDER, upstream's own bytes are not known: other ones are told, and must have the right numbers.
    with pytest.warns(UserWarning, match="differs from the file that this book was made with"):
        with pytest.raises(DamagedDataError, match=r"ogbg_molsider is damaged .*graphs=40.* instead of .*graphs=1427"):
            load("molsider")


def test_a_missing_file(folder, monkeypatch):
    def no_network(url, file):
        raise ConnectionError("no network in tests")

    monkeypatch.setattr("advdiff.datasets.download._receive", no_network)
    shutil.rmtree(folder / "ogbg_molsider" / "raw")
    with pytest.raises(MissingDataError, match="num-node-list"):
        load("molsider")


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "nodes", "bonds", "parts", "without"),
    [
        ("molbace", (10, 97), (10, 101), [1210, 151, 152], 0),
        ("molsider", (1, 492), (0, 505), [1141, 143, 143], 31),
    ],
)
def test_the_real_molecules(name, nodes, bonds, parts, without):
    if not os.environ.get("ADVDIFF_DATA") or any(find(source) is None for source in MODULES[name][0].SOURCES):
        pytest.skip(f"the files of {name} are not in $ADVDIFF_DATA")
    data = load(name)
    graphs = data.graphs("train", "valid", "test")
    sizes, edges = [graph.num_nodes for graph in graphs], [graph.num_edges // 2 for graph in graphs]
    assert ((min(sizes), max(sizes)), (min(edges), max(edges))) == (nodes, bonds)
    assert [len(data.graphs(part)) for part in ("train", "valid", "test")] == parts
    assert edges.count(0) == without
    labels = [torch.cat([graph.y for graph in data.graphs(part)]) for part in ("train", "valid", "test")]
    assert not any(bool(part.isnan().any()) for part in labels)
    if name == "molbace":
        assert [round(float(part.mean()), 3) for part in labels] == [0.397, 0.861, 0.533]
    else:
        rates = torch.cat(labels).mean(0)
        assert (round(float(rates.min()), 3), round(float(rates.max()), 3)) == (0.015, 0.924)
        assert all(bool((part.mean(0) > 0).all() and (part.mean(0) < 1).all()) for part in labels[1:])
