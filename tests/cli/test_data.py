"""``advdiff data``: what is there, what is missing, and how it is fetched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from advdiff.cli import main
from advdiff.datasets import DATASETS, download, twitch
from tests.miniatures import write


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    def unreachable(url: str, file: object) -> None:
        raise ConnectionError("no network in tests")

    monkeypatch.setenv("ADVDIFF_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ADVDIFF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(download, "_receive", unreachable)
    return tmp_path / "data"


def test_status_of_nothing(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["data", "status"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == f"data folder: {folder}"
    assert [line.split()[0] for line in lines] == list(DATASETS)
    assert all("absent" in line or "needs no files" in line for line in lines)
    assert any("twitch" in line and "GPL-3.0" in line for line in lines)


def test_status_of_something(folder: Path, capsys: pytest.CaptureFixture) -> None:
    write("twitch", folder)
    write("arxiv", folder)
    (folder / "ogbn_arxiv/raw/node-feat.csv.gz").unlink()
    assert main(["data", "status"]) == 0
    printed = capsys.readouterr().out
    assert "6 of 7 files" in printed and "missing: ogbn_arxiv/raw/node-feat.csv" in printed and "present" in printed
    assert main(["data", "status", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["folder"] == str(folder)
    size = sum(path.stat().st_size for path in (folder / "twitch").rglob("*") if path.is_file())
    assert found["datasets"]["twitch"] == {
        "state": "present",
        "size": size,
        "missing": [],
        "licence": twitch.LICENCE,
        "title": twitch.TITLE,
        "citation": twitch.CITATION,
    }
    assert found["datasets"]["arxiv"]["missing"] == ["ogbn_arxiv/raw/node-feat.csv"]
    assert "needs no files" in found["datasets"]["synthetic"]["state"]


def test_fetch_what_is_there_and_what_cannot_be(folder: Path, capsys: pytest.CaptureFixture) -> None:
    write("twitch", folder)
    write("arxiv", folder)
    (folder / "ogbn_arxiv/standin/text_feat_128_int8.npz").unlink()
    assert main(["data", "fetch", "twitch", "arxiv", "synthetic"]) == 0
    printed = capsys.readouterr().out
    assert "twitch: present, 0.0 MB" in printed and "licence: GPL-3.0" in printed and "please cite: Rozemb" in printed
    assert "arxiv: ogbn_arxiv/standin/text_feat_128_int8.npz is not upstream's and cannot be downloaded" in printed
    assert "synthetic: drawn by the program, needs no files" in printed


def test_fetch_gets_what_is_missing(folder: Path, capsys: pytest.CaptureFixture, monkeypatch) -> None:
    asked = []

    def receive(url: str, file) -> None:
        asked.append(url)
        file.write(b"not upstream's")

    monkeypatch.setattr(download, "_receive", receive)
    assert main(["data", "fetch", "twitch"]) == 2
    assert asked == [twitch.SOURCES[0].url]
    assert "SHA-256" in capsys.readouterr().err
    assert not [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_fetch_verifies_what_is_there(folder: Path, capsys: pytest.CaptureFixture) -> None:
    write("twitch", folder)
    (folder / "MINIATURE").unlink()
    assert main(["data", "fetch", "twitch"]) == 2
    error = capsys.readouterr().err
    assert "DE_edges.csv.gz is damaged" in error and error.count("\n") == 1


def test_fetch_without_a_network(folder: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["data", "fetch", "twitch"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("advdiff: twitch/edges/DE_edges.csv (or .gz) is not in ") and error.count("\n") == 1


def test_a_run_without_data_says_how_to_get_them(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["run", "twitch", "--model", "mlp", "--results", str(tmp_path / "results"), "--quiet"]) != 0
    error = capsys.readouterr().err
    assert "`advdiff data fetch twitch`" in error and "Traceback" not in error
