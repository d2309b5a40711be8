"""Where data files lie, whether they are what they should be, and how they are opened.

A data set names its files as :class:`Source`. :func:`find` looks for one in the data folder, as upstream ships it or
gzipped; :func:`verify` compares its content with the checksum of the source. Only miniatures are spared that, and a
folder says of itself that it holds them.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

import numpy as np

DATA_VARIABLE = "ADVDIFF_DATA"
CACHE_VARIABLE = "ADVDIFF_CACHE"
#: A file of this name marks a folder of miniatures, as the test-suite writes them.
MINIATURE = "MINIATURE"
#: Bytes that a file may hold, uncompressed, if its size is not known (five times upstream's largest).
LARGEST = 1 << 30
#: What reading a broken file or archive raises; zipfile has a RuntimeError for an archive with a password, and one of
#: its subclasses for a compression that zipfile does not know.
DAMAGE = (
    EOFError, gzip.BadGzipFile, zlib.error, zipfile.BadZipFile, tarfile.TarError, UnicodeDecodeError, RuntimeError
)  # fmt: skip


class MissingDataError(FileNotFoundError, ValueError):
    """A file that a data set needs is nowhere, and could not be fetched."""


class DamagedDataError(ValueError):
    """A file is there, but is not what it should be: cut off, of another checksum, or not in upstream's format."""

    reason: str = ""


@dataclass(frozen=True)
class Source:
    """One file of a data set.

    Attributes:
        path: below the data folder, without ``.gz``; the file itself may be gzipped (``path + ".gz"``).
        url: upstream's file, or an archive that holds it; empty if it cannot be downloaded.
        sha256: of the content, uncompressed; None if it is not known, and then the loader checks what it reads.
        size: of the content in bytes, uncompressed.
        member: name inside the archive at ``url`` (zip or tar).
        archive_sha256: of that archive, where it is known.
        derived: size and checksum are those of a file which was made in upstream's format, as upstream's own is not
            known: other content is told by a warning, not refused.
        dataset: whose file it is, for error messages.
        also: other paths at which the same content may lie, tried after ``path``: a folder, or another archive.
    """

    path: str
    url: str
    sha256: str | None = None
    size: int | None = None
    member: str | None = None
    archive_sha256: str | None = None
    derived: bool = False
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


def folders() -> tuple[Path, ...]:
    """Where files are looked for: the data folder, and that of the downloads where it cannot be written to."""
    return tuple(dict.fromkeys((data_folder(), cache_folder() / "data")))


def is_miniature() -> bool:
    """Does the data folder say of itself that it holds small made-up files in upstream's formats (``MINIATURE``)?

    Example:
        >>> from advdiff.datasets import is_miniature
        >>> is_miniature() in (True, False)
        True
    """
    return (data_folder() / MINIATURE).exists()


def is_made_up(path: Path) -> bool:
    """Whether a file is a miniature, of which no checksum is asked."""
    return is_miniature() and path.is_relative_to(data_folder())


def find(source: Source) -> Path | None:
    """Where the file is, gzipped or not; None if it is not there. Downloads nothing."""
    for folder in folders():
        for path in (source.path, *source.also):
            for name in (path, f"{path}.gz"):
                if (folder / name).exists():
                    return folder / name
    return None


def verify(source: Source, path: Path) -> None:
    """Refuse a file that does not hold what the source should; a miniature, and a folder, may hold anything."""
    if path.is_dir() or is_made_up(path):
        return
    try:
        with path.open("rb") as file:
            wrong = difference(source, file, path.name.endswith(".gz"))
    except DAMAGE as error:
        raise damaged(path, error) from error
    if wrong and source.derived:
        text = f"{path} differs from the file that this book was made with ({wrong}), so that results may differ, too."
        warnings.warn(text, stacklevel=2)
    elif wrong:
        raise damaged(path, wrong)


def difference(source: Source, file: IO[bytes], zipped: bool) -> str:
    """What is wrong with the content of an open file, in a few words; empty if nothing is. Reads it in blocks."""
    file.seek(0)
    if _is_page(file.read(512)):  # whatever its name says
        return "it is a web page, perhaps that of a login"
    file.seek(0)
    most = LARGEST if source.size is None else source.size
    digest, size = hashlib.sha256(), 0
    content = cast(IO[bytes], gzip.GzipFile(fileobj=file)) if zipped else file
    while block := content.read(1 << 20):
        if not size and _is_page(block):
            return "it is a web page, perhaps that of a login"
        own = block[: max(most - size, 0)]
        digest.update(own)
        size += len(block)
        if size > most + 2 or block[len(own) :].strip(b"\r\n"):  # copies may have one line end more
            return f"it holds more than {most:,} bytes"
    if source.sha256 not in (None, digest.hexdigest()):
        return f"its SHA-256 is {digest.hexdigest()[:12]}… instead of {str(source.sha256)[:12]}…"
    return ""


def _is_page(start: bytes) -> bool:
    return start[:512].lstrip().lower().startswith((b"<!doctype html", b"<html"))


@contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """The content of a file, unzipped if its name ends in ``.gz``; a damaged one gives a :class:`DamagedDataError`."""
    try:
        with gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb") as file:
            yield cast(BinaryIO, file)
    except DAMAGE as error:
        raise damaged(path, error) from error


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """The same as UTF-8 text, whatever its line ends."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.name.endswith(".gz") else path.open(encoding="utf-8") as f:
            yield cast(TextIO, f)
    except DAMAGE as error:
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
    except (OSError, ValueError, KeyError, AttributeError, TypeError, *DAMAGE) as error:
        raise damaged(path, error) from error


def damaged(path: Path, why: object) -> DamagedDataError:
    """The error for a file that cannot be read, to be raised by whoever parses it."""
    reason = " ".join(str(why).split()).rstrip(".") or type(why).__name__
    error = DamagedDataError(f"{path} is damaged or not in upstream's format ({reason}); remove it and fetch it again.")
    error.reason = reason
    return error
