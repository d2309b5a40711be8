"""Where data files lie, how they are fetched, and a cache of what was parsed from them.

A data set names its files as :class:`Source`. :func:`locate` looks for one in the data folder, as upstream ships it or
gzipped, and downloads it otherwise. Nothing half-done ever has the name of a finished file: downloads grow in
``*.part`` (and go on from there after an interruption), everything is renamed into place when it is whole.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast
from urllib.parse import urlsplit

import numpy as np
from tqdm import tqdm

if sys.platform != "win32":
    import fcntl

DATA_VARIABLE = "ADVDIFF_DATA"
CACHE_VARIABLE = "ADVDIFF_CACHE"
#: A file of this name marks a folder of miniatures, as the test-suite writes them.
MINIATURE = "MINIATURE"
TIMEOUT = 30.0  # seconds without an answer of the server
_Damage = (EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile, tarfile.TarError, UnicodeDecodeError)


class MissingDataError(FileNotFoundError, ValueError):
    """A file that a data set needs is nowhere, and could not be fetched."""


class DamagedDataError(ValueError):
    """A file is there, but is not what it should be: cut off, of another checksum, or not in upstream's format."""


@dataclass(frozen=True)
class Source:
    """One file of a data set.

    Attributes:
        path: below the data folder, without ``.gz``; the file itself may be gzipped (``path + ".gz"``).
        url: upstream's file, or an archive that holds it; empty if it cannot be downloaded.
        sha256: of the content, uncompressed; None if upstream's bytes are not known.
        size: of the content in bytes, uncompressed.
        member: name inside the archive at ``url`` (zip or tar).
        dataset: whose file it is, for error messages.
        also: other paths at which the same content may lie, tried after ``path``: a folder, or another archive.
    """

    path: str
    url: str
    sha256: str | None = None
    size: int | None = None
    member: str | None = None
    dataset: str = ""
    also: tuple[str, ...] = ()


def cache_folder() -> Path:
    """``$ADVDIFF_CACHE``, or the folder for caches that the system gives its user."""
    if os.environ.get(CACHE_VARIABLE):
        return Path(os.environ[CACHE_VARIABLE]).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "advdiff"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "advdiff" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "advdiff"


def data_folder() -> Path:
    """``$ADVDIFF_DATA``, or else ``data`` in the user's cache folder."""
    if os.environ.get(DATA_VARIABLE):
        return Path(os.environ[DATA_VARIABLE]).expanduser()
    return cache_folder() / "data"


def is_miniature() -> bool:
    """Does the data folder say of itself that it holds small made-up files in upstream's formats (``MINIATURE``)?

    Example:
        >>> from advdiff.datasets import is_miniature
        >>> is_miniature() in (True, False)
        True
    """
    return (data_folder() / MINIATURE).exists()


def find(source: Source) -> Path | None:
    """Where the file is, gzipped or not; None if it is not there. Downloads nothing."""
    for folder in _folders():
        for path in (source.path, *source.also):
            for name in (path, f"{path}.gz"):
                if (folder / name).exists():
                    return folder / name
    return None


def locate(source: Source) -> Path:
    """Where the file is; downloaded from upstream if it is not there yet.

    Raises:
        MissingDataError: it is not there and cannot be downloaded.
        DamagedDataError: what came does not have the right checksum; it is removed.
    """
    found = find(source)
    if found is not None:
        return found
    if not source.url:
        raise _missing(source, "it cannot be downloaded")
    zipped = (source.member or urlsplit(source.url).path).endswith(".gz")
    target = _download_folder() / (source.path + (".gz" if zipped and not source.path.endswith(".gz") else ""))
    if source.member is None:
        _download(source, target)
    else:
        archive = _download_folder() / "archives" / Path(urlsplit(source.url).path).name
        if not archive.exists():
            _download(source, archive)
        _extract(source, archive, target)
    return target


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, unzipped if its name ends in ``.gz``; a damaged one gives a :class:`DamagedDataError`."""
    try:
        with gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except _Damage as error:
        raise damaged(path, error) from error


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """The same as UTF-8 text, whatever its line ends."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.name.endswith(".gz") else path.open(encoding="utf-8") as f:
            yield cast(TextIO, f)
    except _Damage as error:
        raise damaged(path, error) from error


def read_table(path: Path, dtype: Any = np.int64, header: int = 0) -> np.ndarray:
    """The numbers of a comma-separated file, [rows, columns], without its first ``header`` lines."""
    try:
        with open_text(path) as file, warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*input contained no data")
            return np.loadtxt(file, dtype=dtype, delimiter=",", skiprows=header, ndmin=2)
    except DamagedDataError:
        raise
    except ValueError as error:
        raise damaged(path, error) from error


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an npz file, which may hold nothing but numbers and text."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError, AttributeError, TypeError, *_Damage) as error:
        raise damaged(path, error) from error


def damaged(path: Path, why: object) -> DamagedDataError:
    """The error for a file that cannot be read, to be raised by whoever parses it."""
    reason = " ".join(str(why).split()).rstrip(".") or type(why).__name__
    return DamagedDataError(f"{path} is damaged or not in upstream's format ({reason}); remove it and fetch it again.")


def is_verbatim(source: Source, path: Path) -> bool:
    """Whether the content of the file has the source's checksum: whether this is upstream's own."""
    if source.sha256 is None or not path.is_file():
        return False
    try:
        return _checksum(path, path.name.endswith(".gz")) == source.sha256
    except _Damage as error:
        raise damaged(path, error) from error


def remember(
    name: str,
    options: Mapping[str, object],
    inputs: Sequence[Path],
    build: Callable[[], dict[str, np.ndarray]],
    version: int = 1,
) -> dict[str, np.ndarray]:
    """``build()``, or what it gave the last time for the same options, version and input files.

    The arrays are kept as npz in the user's cache folder. A file counts as the same while its name, size and time of
    change are. A damaged cache is rebuilt, with a warning; a folder that cannot be written to only costs time.

    Args:
        version: of the loader; to be raised when ``build`` changes.
    """
    stamps = [(path.name, (stat := path.stat()).st_size, stat.st_mtime_ns) for path in inputs]
    key = json.dumps([name, dict(options), version, stamps], sort_keys=True, default=str)
    path = cache_folder() / "parsed" / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:20]}.npz"
    if path.exists():
        try:
            return read_arrays(path)
        except DamagedDataError as error:
            warnings.warn(f"the cache {path} is damaged ({error.__cause__}) and is built again.", stacklevel=2)
    arrays = build()
    try:
        with _replacing(path) as file:
            np.savez(file, **cast(Any, arrays))
    except OSError as error:
        warnings.warn(f"what was read of {name} could not be cached in {path.parent} ({error}).", stacklevel=2)
    return arrays


def _folders() -> tuple[Path, ...]:
    return tuple(dict.fromkeys((data_folder(), cache_folder() / "data")))


def _download_folder() -> Path:
    """The data folder, or that in the user's cache if nothing can be written to the first."""
    folder = data_folder()
    existing = next((parent for parent in (folder, *folder.parents) if parent.exists()), folder)
    return folder if os.access(existing, os.W_OK) else cache_folder() / "data"


def _missing(source: Source, why: str) -> MissingDataError:
    folders = " or ".join(str(folder) for folder in _folders())
    way = f"try `advdiff data fetch {source.dataset}` again, or s" if source.url and source.dataset else "s"
    return MissingDataError(
        f"{source.path} (or .gz) is not in {folders}, and {why}; {way}et ${DATA_VARIABLE} to a folder that has it."
    )


def _checksum(path: Path, zipped: bool) -> str:
    """SHA-256 of the content."""
    digest = hashlib.sha256()
    with gzip.open(path, "rb") if zipped else path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _check(source: Source, path: Path, zipped: bool) -> None:
    """Remove a new file with the wrong checksum, and say so."""
    try:
        if source.sha256 is None or (found := _checksum(path, zipped)) == source.sha256:
            return
    except _Damage as error:
        found = f"unreadable: {error}"
    path.unlink(missing_ok=True)
    origin = f"{source.member} of {source.url}" if source.member else source.url
    raise DamagedDataError(
        f"the checksum of {origin} is wrong (SHA-256 {found[:12]}… instead of {str(source.sha256)[:12]}…); "
        "the file was removed: fetch it again, and if that does not help, upstream's file has changed."
    )


def _download(source: Source, target: Path) -> None:
    """``source.url`` as it is; its checksum is verified unless it is the archive around the source."""
    try:
        from pooch import HTTPDownloader
    except ImportError as error:
        raise _missing(source, "downloads need pooch (`pip install pooch`)") from error
    part = target.with_name(target.name + ".part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        while not target.exists():
            with part.open("ab") as file, _alone(file):
                if not part.exists() or part.stat().st_ino != os.fstat(file.fileno()).st_ino:
                    continue  # the process before us has finished with this file
                _receive(HTTPDownloader, source.url, file)
                if source.member is None:
                    _check(source, part, target.name.endswith(".gz"))
                if sys.platform != "win32":
                    part.replace(target)
            if sys.platform == "win32":  # which does not rename open files
                part.replace(target)
    except OSError as error:  # of the disk, or of requests, whose errors are OSErrors
        arrived = part.stat().st_size if part.exists() else 0
        if not arrived:
            part.unlink(missing_ok=True)
        kept = "; what has arrived is kept for the next attempt" if arrived else ""
        raise _missing(source, f"downloading {source.url} failed ({_reason(error, source.url)}{kept})") from error


def _reason(error: OSError, url: str) -> str:
    """What happened, in a few words: the messages of requests are long."""
    kind, response = type(error).__name__, getattr(error, "response", None)
    if response is not None:
        return f"the server answered {response.status_code}"
    if "Timeout" in kind:
        return f"no answer within {TIMEOUT:g} s"
    if kind == "ChunkedEncodingError":
        return "the connection was cut"
    if type(error).__module__.startswith("requests"):
        return f"no connection to {urlsplit(url).netloc}"
    return str(error)


@contextmanager
def _alone(file: IO[bytes]) -> Iterator[None]:
    """Let one process at a time write to a file; closing the file lets the next one in."""
    if sys.platform != "win32":
        fcntl.flock(file, fcntl.LOCK_EX)
    yield


def _receive(downloader: Any, url: str, file: IO[bytes]) -> None:
    """Append what is missing of the file; from the start if the server cannot send a part."""

    def restart(response: Any, *_: object, **__: object) -> None:
        if response.status_code == 200:
            file.truncate(0)

    for attempt in range(2):
        have = file.seek(0, os.SEEK_END)
        # Bytes are counted as they are stored, so the server must not compress them on the way.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
        options = {"chunk_size": 1 << 16, "timeout": TIMEOUT, "headers": headers, "hooks": {"response": restart}}
        try:
            # A bar of our own is closed after errors, too; pooch sets its total.
            with tqdm(desc=Path(urlsplit(url).path).name, total=1, unit="B", unit_scale=True, leave=False) as bar:
                downloader(progressbar=bar, **options)(url, file, None)
            return
        except OSError as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            if attempt or not have or status != 416:  # 416: there is nothing after what we have
                raise
            file.truncate(0)


def _extract(source: Source, archive: Path, target: Path) -> None:
    """One member of a zip or tar archive; a damaged archive is removed."""
    assert source.member is not None
    member = source.member
    try:
        with _replacing(target) as file:
            if archive.name.endswith(".zip"):
                with zipfile.ZipFile(archive) as zipped:
                    file.write(zipped.read(member))
            else:
                with tarfile.open(archive) as tarred:
                    inner = tarred.extractfile(member)
                    if inner is None:
                        raise KeyError(member)
                    file.write(inner.read())
            file.flush()
            _check(source, Path(file.name), target.name.endswith(".gz"))
    except KeyError as error:
        raise DamagedDataError(f"{archive} does not hold {member}; upstream's archive has changed.") from error
    except _Damage as error:
        archive.unlink()
        raise DamagedDataError(
            f"the archive {source.url} did not arrive whole ({' '.join(str(error).split())}); "
            "it was removed: fetch it again."
        ) from error


@contextmanager
def _replacing(path: Path) -> Iterator[Any]:
    """A new file that takes the place of ``path`` if all goes well, and is removed if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", suffix=".tmp", delete=False) as file:
        try:
            yield file
        except BaseException:
            file.close()
            Path(file.name).unlink(missing_ok=True)
            raise
    Path(file.name).chmod(0o644)  # temporary files are private
    os.replace(file.name, path)
