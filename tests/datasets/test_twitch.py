"""Twitch: the loader on miniatures, its answers to damaged files, and upstream's counts where the data are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from advdiff.datasets import load, twitch
from advdiff.datasets.files import MINIATURE, DamagedDataError, find
from advdiff.experiments import fit
from advdiff.experiments.recipe import Budget
from advdiff.nn import build
from tests.miniatures import twitch as miniature

#: Environment → nodes, friendships, mature streamers, features in use and largest degree of upstream's files.
COUNTS = {
    "DE": (9498, 153138, 5742, 2514, 4259),
    "ENGB": (7126, 35324, 3888, 2545, 720),
    "ES": (4648, 59382, 1360, 2148, 1022),
    "FR": (6549, 112666, 2414, 2275, 2040),
    "PTBR": (1912, 31299, 661, 1449, 767),
    "RU": (4385, 37304, 1075, 2224, 1229),
    "TW": (2772, 63462, 1088, 1288, 1375),
}
#: The real folder, before a test looks elsewhere.
REAL = "ADVDIFF_DATA" in os.environ and all(find(source) for source in twitch.SOURCES)


@pytest.fixture
def folder(data_folder: Path) -> Path:
    miniature.write(data_folder)
    return data_folder / "twitch"


def test_environments(folder: Path) -> None:
    data = load("twitch")
    assert (data.train, data.valid, data.test) == (("DE",), ("ENGB",), ("ES", "FR", "PTBR", "RU", "TW"))
    assert (data.task, data.metric, data.in_channels, data.out_channels) == ("node", "roc_auc", 3170, 2)
    assert [data.graphs(name)[0].num_nodes for name in data.environments] == [64, 60, 56, 52, 48, 44, 40]


def test_a_graph_is_what_the_files_say(folder: Path) -> None:
    (graph,) = load("twitch").graphs("FR")  # not gzipped, and with two users twice
    lists = json.loads((folder / "features/FR.json").read_text())
    dense = graph.x.to_dense()
    assert graph.x.layout == torch.sparse_csr and dense.shape == (52, 3170)
    assert set(dense.unique().tolist()) == {0.0, 1.0}, "a feature that is named twice is still one feature"
    assert all(dense[node].nonzero().flatten().tolist() == sorted(set(lists[str(node)])) for node in range(52))
    rows = [line.split(",") for line in (folder / "target/FR_target.csv").read_text().splitlines()[1:]]
    assert len(rows) == 54
    assert {int(row[5]): int(row[2] == "True") for row in rows} == dict(enumerate(graph.y.tolist()))
    pairs = {tuple(map(int, line.split(","))) for line in (folder / "edges/FR_edges.csv").read_text().splitlines()[1:]}
    both = pairs | {(v, u) for u, v in pairs}
    assert sorted(both) == list(map(tuple, graph.edge_index.T.tolist()))
    assert len(both) == 2 * len(pairs) and not graph.has_self_loops() and graph.has_isolated_nodes()


def test_snaps_names_are_accepted(folder: Path) -> None:
    expected = load("twitch").graphs("TW")[0]
    (folder / "TW").mkdir()
    for source in twitch.SOURCES:
        if "ZHTW" in source.path:
            (folder.parent / f"{source.path}.gz").rename(folder.parent / f"{source.also[0]}.gz")
    assert sorted(path.name for path in (folder / "TW").iterdir()) == [
        "musae_TW_edges.csv.gz",
        "musae_TW_features.json.gz",
        "musae_TW_target.csv.gz",
    ]
    found = load("twitch").graphs("TW")[0]
    assert torch.equal(found.y, expected.y) and torch.equal(found.edge_index, expected.edge_index)


def test_an_edge_in_both_directions_counts_once(folder: Path) -> None:
    before = load("twitch").graphs("FR")[0].num_edges
    path = folder / "edges/FR_edges.csv"
    first = path.read_text().splitlines()[1].split(",")
    with path.open("a") as file:
        file.write(f"{first[1]},{first[0]}\n")
    assert load("twitch").graphs("FR")[0].num_edges == before


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("features/FR.json", lambda text: text[: len(text) // 2], r"FR.json is damaged or not in upstream's format"),
        ("features/FR.json", lambda text: text.replace('"7":', '"700":'), "node '7' has no list of features"),
        ("features/FR.json", lambda text: text.replace("3169", "3170"), "names feature 3170, and there are 3170"),
        ("features/FR.json", lambda text: "[1, 2]", "FR.json is damaged"),
        ("features/FR.json", lambda text: text.replace("}", ', "52": []}'), "it has 53 nodes instead of 52"),
        ("edges/FR_edges.csv", lambda text: text + "0,52\n", "names node 52, and there are 52"),
        ("edges/FR_edges.csv", lambda text: text + "0,", "FR_edges.csv is damaged"),
        ("target/FR_target.csv", lambda text: text.replace("mature", "gender"), "no column mature or new_id"),
        ("target/FR_target.csv", lambda text: text + "1,2,Tr", "a line is cut off"),
        ("target/FR_target.csv", lambda text: text + "1,2,maybe,4,False,0\n", "has no label"),
        (
            "target/FR_target.csv",
            lambda text: text + "1,2,True,4,False,0\n1,2,False,4,False,0\n",
            "node 0 has two labels",
        ),
        ("target/FR_target.csv", lambda text: text + "1,2,True,4,False,60\n", "its 53 nodes are not numbered"),
        ("target/FR_target.csv", lambda text: "", "no column mature"),
    ],
)
def test_damaged_files_are_named(folder: Path, tmp_path: Path, file: str, change, message: str) -> None:
    path = folder / file
    path.write_text(change(path.read_text()))
    with pytest.raises(DamagedDataError, match=message) as caught:
        load("twitch")
    assert file.split("/")[1] in str(caught.value)
    assert len(list((tmp_path / "cache" / "parsed").iterdir())) == 3, "the regions before FR, and nothing of FR"


def test_a_truncated_gzip_file(folder: Path) -> None:
    path = folder / "edges/DE_edges.csv.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DamagedDataError, match=r"DE_edges.csv.gz is damaged .*; remove it and fetch it again"):
        load("twitch")


def test_without_the_mark_files_must_be_upstreams(folder: Path) -> None:
    (folder.parent / MINIATURE).unlink()
    with pytest.raises(DamagedDataError, match=r"DE_edges.csv.gz is damaged .*SHA-256 is .* instead of 54feaf3e3e70"):
        load("twitch")


def test_the_second_time_comes_from_the_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = load("twitch")
    monkeypatch.setattr(twitch, "_read", lambda *_: pytest.fail("the files were read again"))
    second = load("twitch")
    for name in first.environments:
        a, b = first.graphs(name)[0], second.graphs(name)[0]
        assert torch.equal(a.x.to_dense(), b.x.to_dense())
        assert torch.equal(a.edge_index, b.edge_index) and torch.equal(a.y, b.y)


@pytest.mark.parametrize("name", ["advdifformer-s", "gcn"])
def test_models_train_on_it(folder: Path, name: str) -> None:
    data = load("twitch")
    network = build(name, data.in_channels, 8, data.out_channels)
    outcome = fit(network, data, budget=Budget(epochs=30, learning_rate=1e-2), progress=False).record.outcome
    assert outcome.status == "finished" and set(outcome.metrics) == set(data.environments)
    assert outcome.metrics["DE"] > 0.8


@pytest.mark.data
@pytest.mark.skipif(not REAL, reason="needs the real files")
def test_the_counts_of_the_real_files() -> None:
    data = load("twitch")
    for name, expected in COUNTS.items():
        (graph,) = data.graphs(name)
        degree = torch.bincount(graph.edge_index[0])
        used = graph.x.col_indices().unique().numel()
        found = (graph.num_nodes, graph.num_edges // 2, int(graph.y.sum()), used, int(degree.max()))
        assert found == expected
        assert graph.is_undirected() and not graph.has_self_loops()
    assert torch.cat([graph.x.col_indices() for graph in data.graphs(*data.environments)]).unique().numel() == 3170
