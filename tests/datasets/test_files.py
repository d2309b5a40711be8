"""Where files lie, whether they are what they should be, and how they are opened."""

from __future__ import annotations

import gzip
import hashlib
import warnings
from pathlib import Path

import pytest

from advdiff.datasets import DATASETS, checksums, files
from advdiff.datasets.download import locate
from advdiff.datasets.files import DamagedDataError, Source, find, verify

CONTENT = b"from,to\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(9000))
SOURCE = Source("toy/edges.csv", "", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), also=("other/edges.csv",))


@pytest.fixture(autouse=True)
def folder(data_folder: Path) -> Path:
    return data_folder


def put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def test_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert files.data_folder() == tmp_path / "data" and files.cache_folder() == tmp_path / "cache"
    monkeypatch.delenv("ADVDIFF_DATA")
    assert files.data_folder() == tmp_path / "cache" / "data"
    monkeypatch.delenv("ADVDIFF_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert files.cache_folder() == tmp_path / "xdg" / "advdiff"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert files.cache_folder() == Path.home() / ".cache" / "advdiff"
    monkeypatch.setattr("sys.platform", "darwin")
    assert files.cache_folder() == Path.home() / "Library" / "Caches" / "advdiff"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert files.cache_folder() == tmp_path / "local" / "advdiff" / "Cache"


@pytest.mark.parametrize("name", ["toy/edges.csv", "toy/edges.csv.gz", "other/edges.csv", "other/edges.csv.gz"])
def test_found_as_it_is_gzipped_or_elsewhere(folder: Path, name: str) -> None:
    assert find(SOURCE) is None
    put(folder / name, CONTENT)
    assert find(SOURCE) == locate(SOURCE) == folder / name
    verify(SOURCE, folder / name)
    with files.open_binary(folder / name) as file:
        assert file.read() == CONTENT
    assert files.read_table(folder / name, header=1)[-1].tolist() == [8999, 8999**2]


def test_line_ends_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"1,2\r\n3,4\r\n")
    with files.open_text(tmp_path / "a.txt") as file:
        assert file.read() == "1,2\n3,4\n"
    (tmp_path / "empty.csv").write_bytes(b"")
    assert files.read_table(tmp_path / "empty.csv").size == 0


@pytest.mark.parametrize("content", [gzip.compress(CONTENT)[:-500], gzip.compress(CONTENT)[:-6], b"no gzip", b""])
@pytest.mark.parametrize("how", [files.open_binary, files.open_text])
def test_a_truncated_gzip_file_is_named(tmp_path: Path, content: bytes, how) -> None:
    path = tmp_path / "edges.csv.gz"
    path.write_bytes(content)
    if not content:  # gzip takes this for an empty file
        with how(path) as file:
            assert not file.read()
        return
    with pytest.raises(DamagedDataError, match=r"edges.csv.gz is damaged .*remove it and fetch it again"):
        with how(path) as file:
            file.read()


def test_text_that_is_none(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_bytes(b"\xff\xfe\xfd")
    with pytest.raises(DamagedDataError, match=r"edges.csv is damaged"):
        files.read_table(path)
    path.write_text("1,2\n3")
    with pytest.raises(DamagedDataError, match=r"edges.csv is damaged"):
        files.read_table(path)


# What a file should be


@pytest.mark.parametrize("name", ["toy/edges.csv", "toy/edges.csv.gz"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (CONTENT[:-2] + b"9\n", "its SHA-256 is .* instead of"),
        (CONTENT[:-5], "its SHA-256 is"),
        (CONTENT + b"1,2\n", f"it holds more than {len(CONTENT):,} bytes"),
        (CONTENT + b"\n\n\n", "it holds more than"),
        (b" <!DOCTYPE HTML><title>Please log in</title>", "it is a web page, perhaps that of a login"),
        (b"<html>log in</html>" + CONTENT, "it is a web page"),
    ],
)
def test_other_content_is_refused_but_for_miniatures(folder: Path, name: str, content: bytes, message: str) -> None:
    path = put(folder / name, content)
    with pytest.raises(DamagedDataError, match=message) as error:
        verify(SOURCE, path)
    assert "\n" not in str(error.value) and str(path) in str(error.value) and path.exists()
    (folder / files.MINIATURE).touch()
    verify(SOURCE, path)


def test_the_mark_spares_its_own_folder_only(folder: Path, tmp_path: Path) -> None:
    path = put(tmp_path / "cache/data/toy/edges.csv", CONTENT[:-5])
    folder.mkdir()
    (folder / files.MINIATURE).touch()
    assert find(SOURCE) == path
    with pytest.raises(DamagedDataError, match="SHA-256"):
        verify(SOURCE, path)


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_line_end_more_is_no_other_content(folder: Path, end: bytes) -> None:
    verify(SOURCE, put(folder / "toy/edges.csv.gz", CONTENT + end))


def test_content_that_was_derived_may_differ_from_upstreams(folder: Path) -> None:
    derived = Source("toy/edges.csv", "", SOURCE.sha256, SOURCE.size, derived=True)
    path = put(folder / "toy/edges.csv", CONTENT)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verify(derived, path)
    path.write_bytes(CONTENT + b"1,2\n")
    with pytest.warns(UserWarning, match="differs from the file that this book was made with"):
        verify(derived, path)


def test_a_small_file_that_would_fill_the_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 1 << 22)
    path = put(folder / "toy/edges.csv.gz", bytes(1 << 24))
    assert path.stat().st_size < 1 << 15
    for wanted in (SOURCE, Source("toy/edges.csv", "")):
        with pytest.raises(DamagedDataError, match="it holds more than"):
            verify(wanted, path)


def test_every_file_comes_by_https_and_has_a_checksum() -> None:
    from importlib import import_module

    modules = [import_module(f"advdiff.datasets.{name}") for name in DATASETS]
    sources = [source for module in modules for source in getattr(module, "SOURCES", ())]
    assert len(sources) == len({source.path for source in sources}) == 73
    assert {source.path for source in sources} >= set(checksums.CONTENT)
    for source in sources:
        assert source.url.startswith("https://") or "standin" in source.path
    # Their order or form is not upstream's: loaders check what they read. The last comes in a known archive.
    without = [source.path for source in sources if source.sha256 is None]
    assert without == ["ogbn_arxiv/raw/edge.csv", "ogbn_arxiv/raw/node-feat.csv", "ham/HAM_data.tar"]
    assert all(source.archive_sha256 for source in sources if "ogbn_arxiv/raw" in source.path)
