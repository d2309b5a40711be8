"""Finding, fetching and caching files: against a server of our own, with everything that can go wrong."""

from __future__ import annotations

import gzip
import hashlib
import io
import multiprocessing
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from advdiff.datasets import files
from advdiff.datasets.files import DamagedDataError, MissingDataError, Source, find, locate, remember

CONTENT = b"from,to\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(9000))
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server:
    """Files by path; ``cut`` stops after so many bytes, ``ranges`` tells whether parts can be asked for."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: int | None = None
        self.ranges = True
        self.asked: list[str | None] = []
        self.sent = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content, asked = outer.files.get(self.path), self.headers.get("Range")
                outer.asked.append(asked)
                if content is None:
                    self.send_error(404)
                    return
                start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and outer.ranges else 0
                if start and start >= len(content):
                    self.send_error(416)
                    return
                self.send_response(206 if start else 200)
                self.send_header("Content-Length", str(len(content) - start))
                self.end_headers()
                body = content[start : None if outer.cut is None else start + outer.cut]
                outer.sent += len(body)
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True).start()


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()
    served.files["/edges.csv"] = CONTENT
    yield served
    served.http.shutdown()
    served.http.server_close()


@pytest.fixture(autouse=True)
def folder(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return data_folder


def source(server: Server, **changes: object) -> Source:
    given = {"path": "toy/edges.csv", "url": f"{server.url}/edges.csv", "sha256": SHA256, "dataset": "toy"}
    return Source(**{**given, **changes})  # type: ignore[arg-type]


def left(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# Where files lie


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
def test_found_as_it_is_gzipped_or_elsewhere(folder: Path, server: Server, name: str) -> None:
    wanted = source(server, also=("other/edges.csv",))
    assert find(wanted) is None
    (folder / name).parent.mkdir(parents=True)
    content = gzip.compress(CONTENT) if name.endswith(".gz") else CONTENT
    (folder / name).write_bytes(content)
    assert find(wanted) == locate(wanted) == folder / name
    assert files.is_verbatim(wanted, folder / name)
    assert not files.is_verbatim(source(server, sha256="0" * 64), folder / name)
    with files.open_binary(folder / name) as file:
        assert file.read() == CONTENT
    assert files.read_table(folder / name, header=1)[-1].tolist() == [8999, 8999**2]
    assert not server.asked


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


# Downloads


def test_download(folder: Path, server: Server) -> None:
    path = locate(source(server))
    assert path == folder / "toy/edges.csv" and path.read_bytes() == CONTENT
    assert left(folder) == ["toy/edges.csv"]
    assert locate(source(server)) == path and len(server.asked) == 1


def test_a_gzipped_download_keeps_its_ending_and_is_checked_by_content(folder: Path, server: Server) -> None:
    server.files["/edges.csv.gz"] = gzip.compress(CONTENT)
    assert locate(source(server, url=f"{server.url}/edges.csv.gz")) == folder / "toy/edges.csv.gz"
    server.files["/edges.csv.gz"] = gzip.compress(CONTENT)[:-30]
    with pytest.raises(DamagedDataError, match="checksum"):
        locate(source(server, url=f"{server.url}/edges.csv.gz", path="toy/again.csv"))
    assert left(folder) == ["toy/edges.csv.gz"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a folder that cannot be written to")
def test_a_folder_that_is_really_read_only(folder: Path, server: Server, tmp_path: Path) -> None:
    folder.mkdir(mode=0o555)
    assert locate(source(server)) == tmp_path / "cache/data/toy/edges.csv"


def test_downloads_go_to_the_cache_if_the_data_folder_is_read_only(folder, server, tmp_path, monkeypatch) -> None:
    folder.mkdir()
    monkeypatch.setattr(files.os, "access", lambda path, mode: Path(path) != folder)
    path = locate(source(server))
    assert path == tmp_path / "cache/data/toy/edges.csv" == find(source(server))
    assert not left(folder)


def test_wrong_checksum(folder: Path, server: Server) -> None:
    server.files["/edges.csv"] = CONTENT + b"!"
    with pytest.raises(
        DamagedDataError, match=r"checksum of http.*/edges.csv is wrong .*; the file was removed"
    ) as error:
        locate(source(server))
    assert "\n" not in str(error.value) and left(folder) == []
    server.files["/edges.csv"] = CONTENT
    assert locate(source(server)).read_bytes() == CONTENT


@pytest.mark.parametrize("ranges", [True, False])
def test_a_cut_connection_is_named_and_the_next_attempt_goes_on(folder: Path, server: Server, ranges: bool) -> None:
    server.cut, server.ranges = 70_000, ranges
    with pytest.raises(
        MissingDataError, match=r"connection was cut; what has arrived is kept.*data fetch toy"
    ) as error:
        locate(source(server))
    assert "\n" not in str(error.value)
    assert left(folder) == ["toy/edges.csv.part"] and find(source(server)) is None
    have = (folder / "toy/edges.csv.part").stat().st_size
    server.cut = None
    assert locate(source(server)).read_bytes() == CONTENT
    assert server.asked == [None, f"bytes={have}-"] and left(folder) == ["toy/edges.csv"]


def test_a_download_that_only_lacked_its_name(folder: Path, server: Server) -> None:
    (folder / "toy").mkdir(parents=True)
    (folder / "toy/edges.csv.part").write_bytes(CONTENT)
    assert locate(source(server)).read_bytes() == CONTENT
    assert server.asked == [f"bytes={len(CONTENT)}-", None] and left(folder) == ["toy/edges.csv"]


def test_a_part_of_something_else_fails_the_checksum_and_is_gone(folder: Path, server: Server) -> None:
    (folder / "toy").mkdir(parents=True)
    (folder / "toy/edges.csv.part").write_bytes(b"something else")
    with pytest.raises(DamagedDataError, match="checksum"):
        locate(source(server))
    assert left(folder) == [] and locate(source(server)).read_bytes() == CONTENT


def test_no_such_file_upstream(folder: Path, server: Server) -> None:
    with pytest.raises(MissingDataError, match=r"toy/edges.csv \(or .gz\) is not in .*the server answered 404"):
        locate(source(server, url=f"{server.url}/nothing"))
    assert left(folder) == []


def test_no_network(folder: Path, server: Server) -> None:
    server.http.server_close()
    with pytest.raises(
        MissingDataError, match=r"no connection to 127.0.0.1:\d+\); try `advdiff data fetch toy`"
    ) as error:
        locate(source(server))
    assert "\n" not in str(error.value) and left(folder) == []
    assert isinstance(error.value, FileNotFoundError) and isinstance(error.value, ValueError)


def test_a_silent_server(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    monkeypatch.setattr(files, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/edges.csv"
        with pytest.raises(MissingDataError, match=r"no answer within 0.2 s"):
            locate(source(server, url=url))
    assert left(folder) == []


def test_what_cannot_be_downloaded(server: Server) -> None:
    with pytest.raises(MissingDataError, match=r"cannot be downloaded; set \$ADVDIFF_DATA to a folder that has it"):
        locate(source(server, url=""))


def test_without_pooch(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(MissingDataError, match="downloads need pooch"):
        locate(source(server))


def _locate(source: Source) -> bytes:
    return locate(source).read_bytes()


@pytest.mark.skipif(os.name == "nt", reason="Windows locks files otherwise")
def test_two_processes_download_once(folder: Path, server: Server) -> None:
    with multiprocessing.get_context("fork").Pool(3) as pool:
        assert pool.map(_locate, [source(server)] * 3) == [CONTENT] * 3
    assert server.sent == len(CONTENT) and left(folder) == ["toy/edges.csv"]


# Archives


def archive(kind: str, members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as zipped:
            for name, content in members.items():
                zipped.writestr(name, content)
    else:
        with tarfile.open(fileobj=buffer, mode="w:gz") as tarred:
            for name, content in members.items():
                header = tarfile.TarInfo(name)
                header.size = len(content)
                tarred.addfile(header, io.BytesIO(content))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_members_of_an_archive(folder: Path, server: Server, kind: str) -> None:
    server.files[f"/all.{kind}"] = archive(kind, {"all/edges.csv.gz": gzip.compress(CONTENT), "all/n.csv": b"7\n"})
    url = f"{server.url}/all.{kind}"
    path = locate(source(server, url=url, member="all/edges.csv.gz"))
    assert path == folder / "toy/edges.csv.gz" and gzip.decompress(path.read_bytes()) == CONTENT
    second = locate(source(server, url=url, member="all/n.csv", path="toy/n.csv", sha256=None))
    assert second.read_bytes() == b"7\n" and len(server.asked) == 1
    with pytest.raises(DamagedDataError, match=r"does not hold all/other.csv; upstream's archive has changed"):
        locate(source(server, url=url, member="all/other.csv", path="toy/other.csv"))
    with pytest.raises(DamagedDataError, match=r"checksum of all/n.csv of http"):
        locate(source(server, url=url, member="all/n.csv", path="toy/other.csv"))
    assert left(folder) == [f"archives/all.{kind}", "toy/edges.csv.gz", "toy/n.csv"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_truncated_archive_is_removed(folder: Path, server: Server, kind: str) -> None:
    whole = archive(kind, {"all/edges.csv": CONTENT})
    server.files[f"/all.{kind}"] = whole[: len(whole) // 2]
    wanted = source(server, url=f"{server.url}/all.{kind}", member="all/edges.csv")
    with pytest.raises(DamagedDataError, match=r"did not arrive whole .*; it was removed: fetch it again") as error:
        locate(wanted)
    assert "\n" not in str(error.value) and left(folder) == []
    server.files[f"/all.{kind}"] = whole
    assert locate(wanted).read_bytes() == CONTENT


# The cache of what was parsed


@pytest.fixture
def inputs(tmp_path: Path) -> list[Path]:
    path = tmp_path / "input.csv"
    path.write_text("1,2\n")
    return [path]


def build(value: float = 1.0) -> dict[str, np.ndarray]:
    return {"x": np.full((2, 3), value), "names": np.array(["a", "b"])}


def test_remember(inputs: list[Path], tmp_path: Path) -> None:
    calls = []

    def counted() -> dict[str, np.ndarray]:
        calls.append(1)
        return build()

    for _ in range(2):
        arrays = remember("toy", {"a": 1}, inputs, counted)
        assert arrays["x"].tolist() == build()["x"].tolist() and arrays["names"].tolist() == ["a", "b"]
    assert len(calls) == 1
    remember("toy", {"a": 2}, inputs, counted)
    remember("toy", {"a": 1}, inputs, counted, version=2)
    os.utime(inputs[0], ns=(1, 1))
    remember("toy", {"a": 1}, inputs, counted)
    inputs[0].write_text("1,2\n3,4\n")
    os.utime(inputs[0], ns=(1, 1))
    remember("toy", {"a": 1}, inputs, counted)
    assert len(calls) == 5
    assert all(path.suffix == ".npz" for path in (tmp_path / "cache/parsed").iterdir())


@pytest.mark.parametrize("keep", [0, 3, 200, -10, -200])
def test_a_half_written_cache_is_built_again(inputs: list[Path], tmp_path: Path, keep: int) -> None:
    remember("toy", {}, inputs, build)
    (path,) = (tmp_path / "cache/parsed").iterdir()
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.warns(UserWarning, match=r"the cache .* is damaged .* and is built again"):
        assert remember("toy", {}, inputs, lambda: build(2.0))["x"][0, 0] == 2.0
    assert remember("toy", {}, inputs, lambda: pytest.fail("built again"))["x"][0, 0] == 2.0


def test_a_changed_byte_in_the_cache_is_noticed(inputs: list[Path], tmp_path: Path) -> None:
    remember("toy", {}, inputs, build)
    (path,) = (tmp_path / "cache/parsed").iterdir()
    content = bytearray(path.read_bytes())
    content[content.index(np.float64(1.0).tobytes() * 2) + 6] ^= 1
    path.write_bytes(bytes(content))
    with pytest.warns(UserWarning, match="is damaged"):
        assert remember("toy", {}, inputs, build)["x"][0, 0] == 1.0


def test_pickles_are_refused(inputs: list[Path], tmp_path: Path) -> None:
    remember("toy", {}, inputs, build)
    (path,) = (tmp_path / "cache/parsed").iterdir()
    with path.open("wb") as file:
        np.savez(file, x=np.array([{"an": "object"}], dtype=object))
    with pytest.warns(UserWarning, match="is damaged"):
        assert remember("toy", {}, inputs, build)["x"].shape == (2, 3)


def test_a_failed_build_leaves_nothing(inputs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(DamagedDataError):
        remember("toy", {}, inputs, lambda: (_ for _ in ()).throw(files.damaged(inputs[0], "cut")))
    assert not left(tmp_path / "cache")


def test_an_interruption_while_writing_leaves_nothing(inputs: list[Path], tmp_path: Path, monkeypatch) -> None:
    def interrupted(file, **arrays: np.ndarray) -> None:
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(files.np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        remember("toy", {}, inputs, build)
    assert not left(tmp_path / "cache")


def test_a_cache_that_cannot_be_written_only_costs_time(inputs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file in the way")
    with pytest.warns(UserWarning, match="could not be cached"):
        assert remember("toy", {}, inputs, build)["x"].shape == (2, 3)
