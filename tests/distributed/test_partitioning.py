"""Partitions: every node and edge once, few edges cut, the same from a stream, and nothing half written."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from advdiff.cli import main
from advdiff.distributed import files, partition, partition_stream
from advdiff.distributed.partitioning import assign
from tests.distributed import cases


def undone(folder) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Edges in the numbers of the whole graph, sorted, and the rows of the nodes in their order."""
    summary = files.read_summary(folder)
    parts = [files.read_part(folder, rank, summary) for rank in range(summary.parts)]
    edges = []
    for part in parts:
        source, target = part["edge_index"].long()
        numbers = torch.cat([part["nodes"], part["halo"]])
        edges.append(torch.stack([numbers[source], part["nodes"][target]]))
        assert int(part["need"].sum()) == part["halo"].numel() == part["halo"].unique().numel()
    together = torch.cat(edges, dim=1)
    order = torch.cat([part["nodes"] for part in parts]).argsort()
    names = [name for name in (*files.OF_NODES,) if name in parts[0]]
    rows = {name: torch.cat([part[name] for part in parts])[order] for name in names}
    return in_order(together), rows


def in_order(edges: torch.Tensor) -> torch.Tensor:
    return edges[:, (edges[0] * cases.NODES + edges[1]).argsort()]


@pytest.mark.parametrize("method", ["metis", "range", "random", "lonely"])
@pytest.mark.parametrize("parts", [1, 3])
def test_every_node_and_edge_is_in_one_part(tmp_path, method, parts):
    if parts == 1 and method in ("random", "lonely"):
        method = "range"
    data = cases.graph("loops and duplicates", parts)
    data.y = torch.arange(cases.NODES) % 5
    summary = partition(data, parts, tmp_path, cases.assignment(method, parts))
    assert (summary.num_nodes, summary.num_edges, summary.classes) == (cases.NODES, data.edge_index.size(1), 5)
    edges, rows = undone(tmp_path)
    assert torch.equal(edges, in_order(data.edge_index))
    assert torch.equal(rows["x"], data.x) and torch.equal(rows["y"], data.y)


def test_metis_finds_two_clusters():
    drawn = torch.Generator().manual_seed(0)
    cluster = torch.randperm(100, generator=drawn) % 2
    edges = torch.randint(100, (2, 2000), generator=drawn)
    edges = edges[:, cluster[edges[0]] == cluster[edges[1]]]
    edges = torch.cat([edges, torch.tensor([[0], [int((cluster != cluster[0]).nonzero()[0])]])], dim=1)
    owner = assign(edges, 100, 2, "metis")
    assert int((owner[edges[0]] != owner[edges[1]]).sum()) <= 1
    assert assign(edges[:, :0], 3, 3, "metis").unique().numel() == 3  # no part is left empty


def test_a_stream_gives_the_same_parts_as_a_range(tmp_path, capsys):
    data = cases.graph("weighted directed", 3)
    folder = tmp_path / "arrays"
    folder.mkdir()
    for name in ("x", "edge_index", "edge_weight"):
        np.save(folder / f"{name}.npy", data[name].numpy())
    partition(data, 3, tmp_path / "range", "range")
    partition_stream(folder, 3, tmp_path / "stream", piece=64)
    assert main(["shard", str(folder), "--parts", "3", "--out", str(tmp_path / "command")]) == 0
    assert "by range" in capsys.readouterr().out
    for rank in range(3):
        expected, *others = (
            files.read_part(tmp_path / name, rank, files.read_summary(tmp_path / name))
            for name in ("range", "stream", "command")
        )
        for found in others:
            assert expected.keys() == found.keys()
            for name in expected.keys() - {"name", "rank"}:
                assert torch.equal(expected[name], found[name]), name
    assert not list((tmp_path / "stream").glob(".piles*"))


def test_half_a_partition_is_refused(tmp_path):
    data = cases.graph("directed", 2)
    partition(data, 2, tmp_path, "range")
    summary = files.read_summary(tmp_path)
    old = files.path_of(tmp_path, 0).read_bytes()
    partition(data, 2, tmp_path, "range")
    files.path_of(tmp_path, 0).write_bytes(old)
    with pytest.raises(ValueError, match="another partition"):
        files.read_part(tmp_path, 0, files.read_summary(tmp_path))
    files.path_of(tmp_path, 1).write_bytes(old[:100])
    with pytest.raises(ValueError, match="damaged"):
        files.read_part(tmp_path, 1, summary)
    files.begin(tmp_path)
    with pytest.raises(ValueError, match="no finished partition"):
        files.read_summary(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parts": 0}, "between 1 and the number of nodes"),
        ({"parts": 4}, "between 1 and the number of nodes, 3"),
        ({"method": "spectral"}, "choose one of: metis, range"),
        ({"method": torch.tensor([0, 0, 0])}, "every rank for some node"),
        ({"data": Data(x=torch.ones(3, 1))}, "no edge_index"),
        ({"data": Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [3]]))}, "valid numbers are 0 to 2"),
    ],
)
def test_bad_input_is_refused(tmp_path, arguments, message):
    good = {"data": Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]])), "parts": 2, "method": "range"}
    with pytest.raises(ValueError, match=message):
        partition(directory=tmp_path, **{**good, **arguments})


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["shard", "missing.pt", "--parts", "2", "--out", "out"], "does not exist"),
        (["train", "missing.pt"], "does not exist"),
        (["shard", "text.pt", "--parts", "2", "--out", "out"], "cannot be read"),
        (["train", "text.pt"], "cannot be read"),
        (["shard", "list.pt", "--parts", "2", "--out", "out"], "holds a list"),
        (["train", "unlabelled.pt"], "have no y"),
        (["shard", "folder", "--parts", "2", "--out", "out"], "no edge_index.npy"),
        (["shard", "folder", "--parts", "2", "--out", "out", "--method", "metis"], "by --method range"),
        (["train", "unlabelled.pt", "--epochs", "0"], "at least 1"),
    ],
)
def test_the_commands_refuse_in_one_sentence(tmp_path, monkeypatch, capsys, command, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.pt").write_text("not a graph")
    (tmp_path / "folder").mkdir()
    torch.save([1], "list.pt")
    torch.save(Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]])), "unlabelled.pt")
    assert main(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("advdiff: ") and message in line
