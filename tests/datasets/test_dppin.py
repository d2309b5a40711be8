"""The protein networks: counts, what is known when, and what is asked for."""

import gzip
import os

import numpy as np
import pytest
import torch

from advdiff.datasets import load
from advdiff.datasets.dppin import NETWORKS, SOURCES
from advdiff.datasets.files import MINIATURE, DamagedDataError, MissingDataError, find
from tests.miniatures import dppin as miniature


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dppin")
    miniature.write(folder)
    return folder


@pytest.fixture
def mini(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("ADVDIFF_DATA", str(folder))
    monkeypatch.setenv("ADVDIFF_CACHE", str(tmp_path / "cache"))
    return folder


def test_the_environments_are_the_networks(mini):
    data = load("dppin")
    assert tuple(data.environments) == miniature.NAMES == tuple(NETWORKS)
    assert (len(data.train), len(data.valid), len(data.test)) == (6, 1, 5)
    assert {*data.train, *data.valid, *data.test} == set(NETWORKS)
    assert all(len(graphs) == 26 for graphs in data.environments.values())
    code = load("dppin", split="code", snapshots="code")
    assert code.train == ("Gavin", "Ho", "Hazbun", "Ito") and code.valid == ("Krogan(LCMS)",) and len(code.test) == 7
    assert [graph.stamp for graph in code.graphs("Yu")] == [28, 29]
    assert data.in_channels == 10 and data.out_channels == 1 and data.edge_dim is None


@pytest.mark.parametrize("graph", ["current", "previous"])
@pytest.mark.parametrize("name", ["Babu", "Ito", "Yu"])  # gzipped, out of order with a repeated line, other line ends
def test_features_and_targets_by_hand(mini, name, graph):
    values, edges = miniature.network(miniature.NAMES.index(name))
    node, edge = (load("dppin", task=task, graph=graph).graphs(name) for task in ("node", "edge"))
    for number, stamp in enumerate(range(10, 36)):
        assert (node[number].stamp, node[number].num_nodes) == (stamp, len(values))
        assert np.allclose(node[number].x, values[:, stamp - 10 : stamp])
        assert np.allclose(node[number].y[:, 0], values[:, stamp])
        shown = stamp - (graph == "previous")
        wanted = {(u, v): weight for u, v, t, weight in edges if t == shown}
        pairs = list(map(tuple, edge[number].edge_label_index.T.tolist()))
        assert dict(zip(pairs, edge[number].y[:, 0].tolist(), strict=True)) == pytest.approx(wanted)
        for each in (node[number], edge[number]):
            both = sorted(map(tuple, each.edge_index.T.tolist()))
            assert both == sorted([*wanted, *((v, u) for u, v in wanted)])


@pytest.mark.parametrize("graph", ["current", "previous"])
def test_links_are_never_given_away(mini, graph):
    data = load("dppin", task="link", graph=graph)
    assert data.metric == "roc_auc" and data.task == "edge"
    for number, name in enumerate(miniature.NAMES):
        at = [set() for _ in range(36)]
        for u, v, stamp, _ in miniature.network(number)[1]:
            at[stamp].add((u, v))
        for snapshot in data.graphs(name):
            asked = list(map(tuple, snapshot.edge_label_index.T.tolist()))
            positive = {pair for pair, label in zip(asked, snapshot.y[:, 0].tolist(), strict=True) if label}
            present = at[snapshot.stamp]
            given = {(u, v) for u, v in snapshot.edge_index.T.tolist() if u < v}
            assert len(set(asked)) == len(asked) and all(u < v for u, v in asked)
            assert not (set(asked) - positive) & present
            others = snapshot.num_nodes * (snapshot.num_nodes - 1) // 2 - len(present)
            assert len(asked) - len(positive) == min(len(positive), others)
            if graph == "current":
                assert not given & positive and given | positive == present and 0 <= len(positive) - len(given) <= 1
            else:
                assert positive == present and given == at[snapshot.stamp - 1]
    again = load("dppin", task="link", graph=graph)
    for name in miniature.NAMES:
        for one, other in zip(data.graphs(name), again.graphs(name), strict=True):
            assert torch.equal(one.edge_label_index, other.edge_label_index)


def test_snapshots_can_be_batched(mini):
    from torch_geometric.data import Batch

    batch = Batch.from_data_list(load("dppin", task="edge").graphs("Uetz", "Yu"))
    assert batch.edge_label_index.max() < batch.num_nodes and len(batch.y) == batch.edge_label_index.size(1)
    assert torch.equal(batch.batch[batch.edge_label_index[0]], batch.batch[batch.edge_label_index[1]])


@pytest.mark.parametrize("option", ["task", "split", "graph", "snapshots"])
def test_bad_options(option):
    with pytest.raises(ValueError, match="choose one of"):
        load("dppin", **{option: "other"})


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("Dynamic_PPIN.txt", "0,1,3\r\n", "3 columns instead of 4"),
        ("Dynamic_PPIN.txt", "0,99,3,0.5\r\n", "does not join two of the 20 proteins"),
        ("Dynamic_PPIN.txt", "0,1,36,0.5\r\n", "stamp"),
        ("Dynamic_PPIN.txt", "0,1,3,nan\r\n", "not finite"),
        ("Node_Features.txt", "0,Y," + ",".join(["1"] * 35) + "\r\n", "not in upstream's format"),
        ("Node_Features.txt", "1,Y," + ",".join(["1"] * 36) + "\r\n", "ids of the proteins"),
    ],
)
def test_damaged_files(data_folder, file, text, message):
    miniature.write(data_folder)
    (data_folder / "dppin" / "DPPIN-Hazbun" / file).write_text(text)
    with pytest.raises(DamagedDataError, match=message):
        load("dppin")


def test_without_the_mark_files_must_be_upstreams(data_folder):
    miniature.write(data_folder)
    (data_folder / MINIATURE).unlink()
    with pytest.raises(DamagedDataError, match=r"Node_Features.txt.gz is damaged .*its SHA-256 is"):
        load("dppin")


def test_missing_and_truncated_files(data_folder, monkeypatch):
    miniature.write(data_folder)
    zipped = data_folder / "dppin" / "DPPIN-Gavin" / "Dynamic_PPIN.txt.gz"
    content = zipped.read_bytes()
    zipped.write_bytes(content[: len(content) // 2])
    with pytest.raises(DamagedDataError, match=r"Dynamic_PPIN\.txt\.gz is damaged"):
        load("dppin")
    zipped.write_bytes(gzip.compress(gzip.decompress(content)))
    assert len(load("dppin").graphs("Gavin")) == 26
    zipped.unlink()
    monkeypatch.setattr("advdiff.datasets.download._receive", _no_network)
    with pytest.raises(MissingDataError, match="Gavin"):
        load("dppin")


def _no_network(url, file):
    raise ConnectionError("no network in tests")


real = pytest.mark.skipif(
    not os.environ.get("ADVDIFF_DATA") or any(find(source) is None for source in SOURCES),
    reason="the files of dppin are not in $ADVDIFF_DATA",
)
#: Proteins, and the range of edges per stamp for t = 9 … 34.
COUNTS = {
    "Babu": (5003, 764, 14310),
    "Breitkreutz": (869, 337, 3433),
    "Gavin": (2541, 420, 25924),
    "Hazbun": (143, 14, 236),
    "Ho": (1548, 222, 5561),
    "Ito": (2856, 82, 552),
    "Krogan(LCMS)": (2211, 309, 15531),
    "Krogan(MALDI)": (2099, 517, 11834),
    "Lambert": (697, 29, 460),
    "Tarassov": (1053, 26, 448),
    "Uetz": (922, 23, 107),
    "Yu": (1163, 26, 200),
}


@pytest.mark.data
@real
def test_the_real_networks():
    data = load("dppin", graph="previous")
    assert sum(len(graphs) for graphs in data.environments.values()) == 312
    for name, wanted in COUNTS.items():
        graphs = data.graphs(name)
        edges = [graph.num_edges // 2 for graph in graphs]
        assert (graphs[0].num_nodes, min(edges), max(edges)) == wanted
        assert all(graph.is_undirected() and not graph.has_self_loops() for graph in graphs[:3])
    weights = torch.cat([graph.y for name in COUNTS for graph in load("dppin", task="edge").graphs(name)])
    assert 0.2312 <= float(weights.min()) and float(weights.max()) <= 0.9802


@pytest.mark.data
@real
@pytest.mark.parametrize(("snapshots", "mean", "worst"), [("code", 0.788, 0.929), ("all", 2.172, 2.514)])
def test_least_squares_on_the_real_networks(snapshots, mean, worst):
    data = load("dppin", split="code", snapshots=snapshots)

    def rows(*names):
        graphs = data.graphs(*names)
        x = torch.cat([graph.x for graph in graphs]).double()
        return torch.cat([x, torch.ones(len(x), 1)], 1), torch.cat([graph.y for graph in graphs]).double()

    weight = torch.linalg.lstsq(*rows(*data.train)).solution
    errors = [float((x @ weight - y).square().mean().sqrt()) for x, y in (rows(name) for name in data.test)]
    assert sum(errors) / len(errors) == pytest.approx(mean, abs=1e-3) and max(errors) == pytest.approx(worst, abs=1e-3)
