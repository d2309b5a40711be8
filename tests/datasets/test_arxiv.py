"""ogbn-arxiv: the loader on a miniature, its answers to damaged files, and the paper's counts where the data are."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from advdiff.datasets import arxiv, load
from advdiff.datasets.files import MINIATURE, DamagedDataError, MissingDataError, find
from advdiff.datasets.parsed_cache import checksum
from advdiff.experiments import fit
from advdiff.experiments.recipe import Budget
from advdiff.nn import build
from tests.miniatures import arxiv as miniature

#: Environment → papers to be classified, papers, citations and pairs in upstream's files.
COUNTS = {
    "train": (41125, 41125, 102316, 99401),
    "valid": (49816, 90941, 374839, 369033),
    "2018": (29799, 120740, 622466, 615415),
    "2019": (39711, 160451, 1061197, 1052875),
    "2020": (8892, 169343, 1166243, 1157799),
}
REAL = "ADVDIFF_DATA" in os.environ and all(find(source) for source in (*arxiv._GRAPH, arxiv._TEXT))


@pytest.fixture
def folder(data_folder: Path) -> Path:
    miniature.write(data_folder)
    return data_folder / "ogbn_arxiv"


def table(path: Path) -> np.ndarray:
    return np.loadtxt(path, delimiter=",", ndmin=2)


def rewrite(path: Path, change) -> None:
    path.write_bytes(gzip.compress(change(gzip.decompress(path.read_bytes()).decode()).encode()))


@pytest.mark.parametrize("features", arxiv.FEATURES)
def test_a_graph_is_what_the_files_say(folder: Path, features: str) -> None:
    data = load("arxiv", features=features)
    assert (data.train, data.valid, data.test) == (("train",), ("valid",), ("2018", "2019", "2020"))
    assert (data.task, data.metric, data.in_channels, data.out_channels) == ("node", "accuracy", 128, 40)
    assert data.options == {"features": features, "edges": "undirected", "network": "growing"}
    year, label = (table(folder / f"raw/{name}.csv.gz")[:, 0] for name in ("node_year", "node-label"))
    citations = table(folder / "raw/edge.csv.gz").astype(int)
    if features == "ogb":
        x = table(folder / "raw/node-feat.csv.gz").astype(np.float32)
    else:
        stored = np.load(folder / "standin/text_feat_128_int8.npz")
        x = stored["q"] * stored["scale"]
    for name, (first, last) in arxiv.YEARS.items():
        (graph,) = data.graphs(name)
        node = graph.node.numpy()
        assert sorted(node) == np.flatnonzero(year <= last).tolist()
        assert np.array_equal(graph.year, year[node]) and np.array_equal(graph.y, label[node])
        assert np.array_equal(graph.mask, year[node] >= first) and graph.mask.any()
        np.testing.assert_array_equal(graph.x, x[node])
        inside = {(u, v) for u, v in citations if year[u] <= last and year[v] <= last}
        pairs = list(map(tuple, node[graph.edge_index.numpy()].T))
        assert set(pairs) == inside | {(v, u) for u, v in inside} and len(set(pairs)) == len(pairs)
        assert graph.is_undirected()
    assert data.graphs("train")[0].mask.all()


def test_environments_share_their_features(folder: Path) -> None:
    graphs = load("arxiv").graphs("train", "valid", "2018", "2019", "2020")
    for key in ("x", "y", "year", "node"):
        assert len({graph[key].data_ptr() for graph in graphs}) == 1


def test_directed_edges_are_citations(folder: Path) -> None:
    data = load("arxiv", edges="directed")
    citations = table(folder / "raw/edge.csv.gz").astype(int)
    (graph,) = data.graphs("2020")
    assert sorted(map(tuple, graph.node[graph.edge_index].T.tolist())) == sorted(map(tuple, citations.tolist()))
    both = load("arxiv").graphs("2020")[0]
    assert both.num_edges < 2 * graph.num_edges, "mutual citations are one pair"


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"features": "bag"}, "unknown features 'bag'; choose one of: ogb, text"),
        ({"edges": "both"}, "unknown edges 'both'; choose one of: undirected, directed"),
    ],
)
def test_unknown_options(folder: Path, option: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load("arxiv", **option)


def test_missing_features_name_the_stand_in_and_are_never_replaced(folder: Path, monkeypatch) -> None:
    (folder / "raw/node-feat.csv.gz").unlink()
    monkeypatch.setattr("advdiff.datasets.download._receive", unreachable)
    with pytest.raises(MissingDataError, match=r"node-feat.csv \(or .gz\) is not in .* features='text'") as caught:
        load("arxiv")
    assert str(caught.value).count(". ") == 0, "one sentence"
    assert load("arxiv", features="text").options["features"] == "text"


def test_a_missing_stand_in(folder: Path) -> None:
    (folder / "standin/text_feat_128_int8.npz").unlink()
    with pytest.raises(MissingDataError, match=r"text_feat_128_int8.npz .* cannot be downloaded; set \$ADVDIFF_DATA"):
        load("arxiv", features="text")


def unreachable(*_: object) -> None:
    raise ConnectionError("no network in tests")


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("edge", lambda text: text[: text.rindex("\n", 0, -1) + 1], "724 citations instead of 725"),
        ("edge", lambda text: text + "7", "edge.csv.gz is damaged"),
        ("edge", lambda text: text.replace(text.splitlines()[5], "0,240", 1), "paper 240, and there are 240"),
        ("node-label", lambda text: text[: text.index("\n") + 1], "1 lines for 240 papers"),
        ("node-label", lambda text: text.replace("39", "40"), "names class 40, and there are 40"),
        ("node_year", lambda text: text.replace("1971", "MCM"), "node_year.csv.gz is damaged"),
        ("node-feat", lambda text: "nan" + text[text.index(",") :], "a feature is not finite"),
        ("node-feat", lambda text: text[: len(text) // 2].rpartition("\n")[0], r"holds \(\d+, 128\) numbers"),
    ],
)
def test_damaged_files_are_named(folder: Path, file: str, change, message: str) -> None:
    rewrite(folder / f"raw/{file}.csv.gz", change)
    with pytest.raises(DamagedDataError, match=message) as caught:
        load("arxiv")
    assert f"{file}.csv" in str(caught.value)


@pytest.mark.parametrize("keep", [0, 100, -100])
def test_a_truncated_stand_in(folder: Path, keep: int) -> None:
    path = folder / "standin/text_feat_128_int8.npz"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(DamagedDataError, match=r"text_feat_128_int8.npz is damaged"):
        load("arxiv", features="text")


def test_without_the_mark_files_must_be_upstreams(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / MINIATURE).unlink()
    with pytest.raises(DamagedDataError, match=r"node-label.csv.gz is damaged .*SHA-256 is .* instead of 7d16a4e39"):
        load("arxiv")
    monkeypatch.setattr(arxiv, "_read_graph", lambda *paths: pytest.fail("read before the stand-in was verified"))
    with pytest.raises(DamagedDataError, match=r"text_feat_128_int8.npz is damaged .*its SHA-256 is"):
        arxiv._features("text", np.arange(240))


def test_citations_count_in_any_order_but_must_be_upstreams(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder.parent / MINIATURE).unlink()
    free = tuple(replace(source, sha256=None, size=None) for source in arxiv._GRAPH)
    monkeypatch.setattr(arxiv, "_GRAPH", free)
    monkeypatch.setattr(arxiv, "_TEXT", replace(arxiv._TEXT, sha256=None, size=None))
    with pytest.raises(DamagedDataError, match=r"edge.csv.gz is damaged .*the citations are not upstream's"):
        load("arxiv", features="text")
    pairs = table(folder / "raw/edge.csv.gz").astype("<i4")
    digest = checksum({"citations": np.array(sorted(map(tuple, pairs.tolist())), dtype="<i4")})
    monkeypatch.setattr(arxiv, "_CITATIONS", digest)
    first = load("arxiv", features="text").graphs("2020")[0]
    rewrite(folder / "raw/edge.csv.gz", lambda text: "".join(reversed(text.splitlines(keepends=True))))
    assert torch.equal(load("arxiv", features="text").graphs("2020")[0].edge_index, first.edge_index)


def test_the_second_time_comes_from_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load("arxiv")
    monkeypatch.setattr(arxiv, "read_table", lambda *_: pytest.fail("the files were read again"))
    second = load("arxiv")
    for a, b in zip(first.graphs(*first.environments), second.graphs(*second.environments), strict=True):
        assert torch.equal(a.x, b.x) and torch.equal(a.edge_index, b.edge_index) and torch.equal(a.y, b.y)


def test_a_model_trains_on_it(folder: Path) -> None:
    data = load("arxiv")
    network = build("sgc", 128, 16, 40)
    outcome = fit(network, data, budget=Budget(epochs=40, learning_rate=1e-2), progress=False).record.outcome
    assert outcome.status == "finished" and outcome.metrics["train"] > 0.8


@pytest.mark.data
@pytest.mark.skipif(not REAL, reason="needs the real files")
@pytest.mark.parametrize("edges", arxiv.EDGES)
def test_the_counts_of_the_real_files(edges: str) -> None:
    data = load("arxiv", features="text", edges=edges)
    maxima, isolated, means = [], [], []
    for name, (targets, nodes, citations, pairs) in COUNTS.items():
        (graph,) = data.graphs(name)
        assert (int(graph.mask.sum()), graph.num_nodes) == (targets, nodes)
        assert graph.num_edges == (citations if edges == "directed" else 2 * pairs)
        degree = torch.bincount(graph.edge_index.flatten(), minlength=nodes)
        maxima.append(int(degree.max()))
        isolated.append(int((degree == 0).sum()))
        means.append(round(2 * graph.num_edges / nodes, 2))
    assert isolated == [2915, 3342, 2903, 519, 0]
    if edges == "directed":  # the paper's Table 4 counts citations
        assert maxima == [275, 3036, 6251, 12006, 13161]
        assert means == [4.98, 8.24, 10.31, 13.23, 13.77]


def test_the_whole_network_is_in_every_environment(folder):
    growing, whole = load("arxiv"), load("arxiv", network="whole")
    graphs = whole.graphs(*whole.environments)
    assert len({id(graph.edge_index) for graph in graphs}) == 1, "one tensor, so that V is made once"
    assert sum(int(graph.mask.sum()) for graph in graphs) == graphs[0].num_nodes
    for name in whole.environments:
        papers = [set(data.graphs(name)[0].node[data.graphs(name)[0].mask].tolist()) for data in (growing, whole)]
        assert papers[0] == papers[1]
