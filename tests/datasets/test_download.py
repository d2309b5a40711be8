"""Fetching files from a server of our own, with everything that can go wrong."""

from __future__ import annotations

import gzip
import hashlib
import io
import multiprocessing
import os
import socket
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from advdiff.datasets import archives, download
from advdiff.datasets.download import locate
from advdiff.datasets.files import DamagedDataError, MissingDataError, Source, find
from tests.datasets.server import Server

CONTENT = b"from,to\n" + b"".join(b"%d,%d\n" % (n, n * n) for n in range(9000))
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def server() -> Iterator[Server]:
    served = Server()
    served.files["/edges.csv"] = CONTENT
    yield served
    served.close()


@pytest.fixture(autouse=True)
def folder(data_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    return data_folder


def source(server: Server, **changes: object) -> Source:
    given = {"path": "toy/edges.csv", "url": f"{server.url}/edges.csv", "sha256": SHA256, "dataset": "toy"}
    return Source(**{**given, **changes})  # type: ignore[arg-type]


def left(folder: Path) -> list[str]:
    """All files but the locks, which stay."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")
    return sorted(str(path.relative_to(folder)) for path in found)


def refused(wanted: Source, message: str) -> None:
    with pytest.raises(DamagedDataError, match=message) as error:
        locate(wanted)
    assert "\n" not in str(error.value) and "it was removed: fetch it again" in str(error.value)


def test_download(folder: Path, server: Server) -> None:
    path = locate(source(server))
    assert path == folder / "toy/edges.csv" and path.read_bytes() == CONTENT
    assert left(folder) == ["toy/edges.csv"]
    assert locate(source(server)) == path and len(server.asked) == 1


def test_a_gzipped_download_keeps_its_ending_and_is_checked_by_content(folder: Path, server: Server) -> None:
    server.files["/edges.csv.gz"] = gzip.compress(CONTENT)
    assert locate(source(server, url=f"{server.url}/edges.csv.gz")) == folder / "toy/edges.csv.gz"
    server.files["/edges.csv.gz"] = gzip.compress(CONTENT)[:-30]
    refused(source(server, url=f"{server.url}/edges.csv.gz", path="toy/again.csv"), "ended before")
    assert left(folder) == ["toy/edges.csv.gz"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="needs a folder that cannot be written to")
def test_a_folder_that_is_really_read_only(folder: Path, server: Server, tmp_path: Path) -> None:
    folder.mkdir(mode=0o555)
    assert locate(source(server)) == tmp_path / "cache/data/toy/edges.csv"


def test_downloads_go_to_the_cache_if_the_data_folder_is_read_only(folder, server, tmp_path, monkeypatch) -> None:
    folder.mkdir()
    monkeypatch.setattr(download.os, "access", lambda path, mode: Path(path) != folder)
    path = locate(source(server))
    assert path == tmp_path / "cache/data/toy/edges.csv" == find(source(server))
    assert not left(folder)


@pytest.mark.parametrize("changed", [CONTENT + b"!", CONTENT[:-1], b""])
def test_wrong_content_is_not_kept(folder: Path, server: Server, changed: bytes) -> None:
    server.files["/edges.csv"] = changed
    refused(source(server), r"edges.csv from http.*/edges.csv is not what it should be \(its SHA-256 is")
    assert left(folder) == []
    server.files["/edges.csv"] = CONTENT
    assert locate(source(server)).read_bytes() == CONTENT


@pytest.mark.parametrize("page", [b"<!DOCTYPE html><title>Log in</title>", b"\n <HTML>Who are you?</HTML>"])
def test_the_page_of_a_login_is_no_data(folder: Path, server: Server, page: bytes) -> None:
    server.files |= {"/edges.csv": page, "/data.tar.gz": page, "/all.zip": page}
    for wanted in (
        source(server, sha256=None),
        source(server, sha256=None, url=f"{server.url}/data.tar.gz", path="toy/data.tar"),
        source(server, sha256=None, url=f"{server.url}/all.zip", member="all/edges.csv"),
    ):
        refused(wanted, "it is a web page, perhaps that of a login")
    assert left(folder) == []


def test_a_cut_connection_is_named_and_leaves_nothing(folder: Path, server: Server) -> None:
    server.cut = 70_000
    with pytest.raises(MissingDataError, match=r"connection was cut.*data fetch toy") as error:
        locate(source(server))
    assert "\n" not in str(error.value) and left(folder) == [] and find(source(server)) is None
    server.cut = None
    assert locate(source(server)).read_bytes() == CONTENT


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
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/edges.csv"
        with pytest.raises(MissingDataError, match=r"no answer within 0.2 s"):
            locate(source(server, url=url))
    assert left(folder) == []


def test_a_server_that_never_comes_to_an_end(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "LONGEST", 0.3)
    server.pause = 0.02  # all of it would take two seconds
    with pytest.raises(MissingDataError, match=r"not complete after 0.3 s") as error:
        locate(source(server))
    assert "\n" not in str(error.value) and left(folder) == []


def test_a_server_that_sends_too_much(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "LARGEST", 20_000)
    with pytest.raises(MissingDataError, match=r"it holds more than 20,000 bytes"):
        locate(source(server))
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


@pytest.mark.parametrize("member", [None, "all/edges.csv"])
def test_several_processes_download_once(folder: Path, server: Server, member: str | None) -> None:
    server.files["/all.zip"] = archive("zip", {"all/edges.csv": CONTENT})
    wanted = source(server, member=member, url=f"{server.url}/{'all.zip' if member else 'edges.csv'}")
    context = multiprocessing.get_context("spawn" if os.name == "nt" else "fork")
    with context.Pool(3) as pool:
        assert pool.map(_locate, [wanted] * 3) == [CONTENT] * 3
    assert len(server.asked) == 1 and "toy/edges.csv" in left(folder)


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
    assert left(folder) == [f"archives/all.{kind}", "toy/edges.csv.gz", "toy/n.csv"]


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"all/other.csv": b"7\n"}, "it does not hold all/edges.csv"),
        ({"all/edges.csv": CONTENT[:-2] + b"!\n"}, "its SHA-256 is"),
        ({"all/edges.csv": CONTENT + b"more" * 9000}, "all/edges.csv would expand to 156,272 bytes, where"),
    ],
)
def test_after_a_bad_member_the_archive_is_fetched_again(folder, server, kind, members, message) -> None:
    wanted = source(server, url=f"{server.url}/all.{kind}", member="all/edges.csv", size=len(CONTENT))
    server.files[f"/all.{kind}"] = archive(kind, members)
    refused(wanted, message)
    assert left(folder) == []
    server.files[f"/all.{kind}"] = archive(kind, {"all/edges.csv": CONTENT})
    assert locate(wanted).read_bytes() == CONTENT and len(server.asked) == 2


def test_the_checksum_of_an_archive(folder: Path, server: Server) -> None:
    server.files["/all.zip"] = archive("zip", {"all/edges.csv": CONTENT})
    right = hashlib.sha256(server.files["/all.zip"]).hexdigest()
    wanted = {"url": f"{server.url}/all.zip", "member": "all/edges.csv", "sha256": None}
    refused(source(server, archive_sha256="0" * 64, derived=True, **wanted), r"all.zip from .* \(its SHA-256 is")
    refused(source(server, archive_sha256="0" * 64, **wanted), r"all.zip from .* \(its SHA-256 is")
    assert left(folder) == []
    assert locate(source(server, archive_sha256=right, **wanted)).read_bytes() == CONTENT


def test_damage_without_a_word_is_damage(folder: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def mute(*_: object) -> str:
        raise EOFError

    monkeypatch.setattr(download, "difference", mute)
    refused(source(server), "EOFError")
    assert left(folder) == []


def test_a_derived_checksum_does_not_refuse_upstreams_own(folder: Path, server: Server) -> None:
    server.files["/all.zip"] = archive("zip", {"all/edges.csv": CONTENT + b"1,2\n"})
    wanted = source(server, url=f"{server.url}/all.zip", member="all/edges.csv", size=3, derived=True)
    assert locate(wanted).read_bytes() == CONTENT + b"1,2\n"


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_truncated_archive_is_removed(folder: Path, server: Server, kind: str) -> None:
    whole = archive(kind, {"all/edges.csv": CONTENT})
    server.files[f"/all.{kind}"] = whole[: len(whole) // 2]
    wanted = source(server, url=f"{server.url}/all.{kind}", member="all/edges.csv")
    refused(wanted, "edges.csv from .* is not what it should be")
    assert left(folder) == []
    server.files[f"/all.{kind}"] = whole
    assert locate(wanted).read_bytes() == CONTENT


def patched(flags: int = 0, method: int = 8) -> bytes:
    """A zip whose headers say that its member is encrypted, or compressed in another way."""
    content = bytearray(archive("zip", {"all/edges.csv": CONTENT}))
    local, central = content.index(b"PK\x03\x04"), content.index(b"PK\x01\x02")
    content[local + 6], content[central + 8] = flags, flags
    content[local + 8], content[central + 10] = method, method
    return bytes(content)


def linked(kind: bytes) -> bytes:
    """A tar whose member is a link to itself, or a pipe."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tarred:
        header = tarfile.TarInfo("all/edges.csv")
        header.type, header.linkname = kind, "edges.csv" if kind == tarfile.SYMTYPE else "all/edges.csv"
        tarred.addfile(header)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("all.zip", patched(flags=1), "encrypted"),
        ("all.zip", patched(method=99), "compression method is not supported"),
        ("all.tar.gz", linked(tarfile.SYMTYPE), "all/edges.csv is no file"),
        ("all.tar.gz", linked(tarfile.LNKTYPE), "all/edges.csv is no file"),
        ("all.tar.gz", linked(tarfile.FIFOTYPE), "all/edges.csv is no file"),
    ],
    ids=["encrypted", "unknown method", "link", "hard link", "pipe"],
)
def test_members_that_cannot_be_read(folder: Path, server: Server, name: str, content: bytes, message: str) -> None:
    server.files[f"/{name}"] = content
    refused(source(server, url=f"{server.url}/{name}", member="all/edges.csv"), message)
    assert left(folder) == []


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_a_small_archive_that_would_fill_the_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"all.{kind}"
    path.write_bytes(archive(kind, {"a": bytes(1 << 24), "b": bytes(1 << 24)}))
    assert path.stat().st_size < 1 << 17
    with pytest.raises(DamagedDataError, match="a would expand to 16,777,216 bytes, where 1,000 were expected"):
        list(archives.read_members(path, lambda name: True, 1000))
    with pytest.raises(DamagedDataError, match="b would expand"):  # the limit is for all of them together
        list(archives.read_members(path, lambda name: True, 3 << 23))
    with pytest.raises(DamagedDataError, match="b would expand"):
        archives.copy_member(path, "b", io.BytesIO(), 1000)
