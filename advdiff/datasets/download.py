"""Files from upstream: within a time limit, one process at a time, and kept only if they are what they should be.

Nothing half-done ever has the name of a finished file. An interrupted download starts again from nothing: the largest,
the archive of ogbn-arxiv, has 83 MB.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from tqdm import tqdm

from advdiff.atomic import locked, replacing
from advdiff.datasets.archives import copy_member
from advdiff.datasets.files import (
    DAMAGE,
    DATA_VARIABLE,
    LARGEST,
    DamagedDataError,
    MissingDataError,
    Source,
    cache_folder,
    damaged,
    data_folder,
    difference,
    find,
    folders,
)

#: Seconds without an answer of the server.
TIMEOUT = 30.0
#: Seconds that a whole download may take, what 83 MB need at 23 kB a second.
LONGEST = 3600.0


def locate(source: Source) -> Path:
    """Where the file is; downloaded from upstream if it is not there yet.

    Raises:
        MissingDataError: it is not there and cannot be downloaded.
        DamagedDataError: what came is not what it should be; it is removed, and so is the archive around it.
    """
    found = find(source)
    if found is not None:
        return found
    if not source.url:
        raise _missing(source, "it cannot be downloaded")
    try:
        return _fetch(source, _download_folder())
    except (OSError, ImportError) as error:  # errors of requests are OSErrors, like those of the disk
        raise _missing(source, f"downloading {source.url} failed ({_reason(error, source.url)})") from error


def _fetch(source: Source, folder: Path) -> Path:
    """The file in this folder, by way of its archive if it lies in one."""
    name = Path(urlsplit(source.url).path).name
    zipped = (source.member or name).endswith(".gz")
    target = folder / (source.path + (".gz" if zipped and not source.path.endswith(".gz") else ""))
    archive = folder / "archives" / name
    with locked(archive if source.member else target):
        if not source.member:
            return _keep(target, lambda file: _receive(source.url, file), source, zipped)
        member = source.member
        around = replace(source, sha256=source.archive_sha256, size=None, derived=False)
        _keep(archive, lambda file: _receive(source.url, file), around, zipped=False)
        # A gzipped member may be longer than its content, but only by its frame.
        most = LARGEST if source.size is None or source.derived else source.size + source.size // 64 + 1024
        try:
            return _keep(target, lambda file: copy_member(archive, member, file, most), source, zipped)
        except DamagedDataError:
            archive.unlink(missing_ok=True)
            raise


def _keep(target: Path, write: Callable[[IO[bytes]], None], source: Source, zipped: bool) -> Path:
    """Let ``write`` make a file, unless it is there already, and give it its name if it is what it should be."""
    if target.exists():
        return target
    wanted = replace(source, sha256=None, size=None) if source.derived else source
    with replacing(target) as file:
        try:
            write(file)
            wrong = difference(wanted, file, zipped)
        except DamagedDataError as error:
            wrong = error.reason
        except DAMAGE as error:
            wrong = damaged(target, error).reason
        if wrong:
            raise DamagedDataError(
                f"{target.name} from {source.url} is not what it should be ({wrong}); it was removed: fetch it again, "
                "and if that does not help, upstream's file has changed."
            )
    return target


def _receive(url: str, file: IO[bytes]) -> None:
    """Write what the server sends."""
    from pooch import HTTPDownloader

    # A file that is gzipped by itself must not be unzipped on the way.
    options = {"timeout": TIMEOUT, "headers": {"Accept-Encoding": "identity"}}
    with _Bar(desc=Path(urlsplit(url).path).name, total=1, unit="B", unit_scale=True, leave=False) as bar:
        HTTPDownloader(progressbar=bar, **options)(url, file, None)


class _Bar(tqdm):
    """The progress of a download, which ends it when it takes too long or too much: pooch calls it for every block."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.end = time.monotonic() + LONGEST

    def update(self, n: float | None = 1) -> bool | None:
        if time.monotonic() > self.end:
            raise OSError(f"it was not complete after {LONGEST:g} s")
        if self.n > LARGEST:
            raise OSError(f"it holds more than {LARGEST:,} bytes")
        shown: bool | None = super().update(n)
        return shown


def _download_folder() -> Path:
    """The data folder, or that in the user's cache if nothing can be written to the first."""
    folder = data_folder()
    existing = next((parent for parent in (folder, *folder.parents) if parent.exists()), folder)
    return folder if os.access(existing, os.W_OK) else cache_folder() / "data"


def _missing(source: Source, why: str) -> MissingDataError:
    places = " or ".join(map(str, folders()))
    way = f"try `advdiff data fetch {source.dataset}` again, or s" if source.url and source.dataset else "s"
    return MissingDataError(
        f"{source.path} (or .gz) is not in {places}, and {why}; {way}et ${DATA_VARIABLE} to a folder that has it."
    )


def _reason(error: Exception, url: str) -> str:
    """What happened, in a few words: the messages of requests are long."""
    kind, response = type(error).__name__, getattr(error, "response", None)
    if isinstance(error, ImportError):
        return "downloads need pooch: `pip install pooch`"
    if response is not None:
        return f"the server answered {response.status_code}"
    if "Timeout" in kind:
        return f"no answer within {TIMEOUT:g} s"
    if kind == "ChunkedEncodingError":
        return "the connection was cut"
    if type(error).__module__.startswith("requests"):
        return f"no connection to {urlsplit(url).netloc}"
    return str(error)
