"""Files that several processes may write: one at a time, and whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from filelock import FileLock


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time into the block; the lock is a file beside ``path``, and dies with its process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock")):
        yield


@contextmanager
def replacing(path: Path) -> Iterator[IO[Any]]:
    """A new binary file that takes the place of ``path`` if all goes well, and is removed if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}-", suffix=".tmp", delete=False) as file:
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
        except BaseException:
            file.close()
            Path(file.name).unlink(missing_ok=True)
            raise
    Path(file.name).chmod(0o644)  # temporary files are private
    os.replace(file.name, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the name of a new file as durable as its content, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
