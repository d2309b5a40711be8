"""Members of zip and tar archives, of which nothing is unpacked that was not asked for, nor more than was expected."""

from __future__ import annotations

import shutil
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from advdiff.datasets.files import DAMAGE, damaged, open_binary

#: A damaged header may also lead outside of the file, or to another decompressor, which raise an OSError.
UNREADABLE = (*DAMAGE, OSError)


def copy_member(archive: Path, member: str, target: IO[bytes], most: int) -> None:
    """Write one member to an open file, in blocks; refused beforehand if it holds more than ``most`` bytes."""
    for _, content in _members(archive, lambda name: name == member, most):
        shutil.copyfileobj(content, target)
        return
    raise damaged(archive, f"it does not hold {member}")


def read_members(archive: Path, wanted: Callable[[str], object], most: int) -> Iterator[tuple[str, bytes]]:
    """Name and content of the members with a wanted name; refused if together they hold more than ``most`` bytes."""
    for name, content in _members(archive, wanted, most):
        try:
            yield name, content.read()
        except UNREADABLE as error:  # told only while it is read, outside of the generator that opened it
            raise damaged(archive, error) from error


def _members(archive: Path, wanted: Callable[[str], object], most: int) -> Iterator[tuple[str, IO[bytes]]]:
    """Open files, each to be read before the next is asked for. The format is what the content says, not the name."""
    try:
        with open_binary(archive) as binary:
            if zipfile.is_zipfile(binary):
                with zipfile.ZipFile(binary) as zipped:
                    for info in filter(lambda info: wanted(info.filename), zipped.infolist()):
                        most = _spend(most, info.file_size, info.filename)
                        with zipped.open(info) as content:
                            yield info.filename, content
                return
            binary.seek(0)
            with tarfile.open(fileobj=binary) as tarred:
                for header in filter(lambda header: wanted(header.name), tarred):
                    most = _spend(most, header.size, header.name)
                    file = tarred.extractfile(header) if header.isfile() else None  # a link may lead to itself
                    if file is None:
                        raise tarfile.TarError(f"{header.name} is no file")
                    yield header.name, file
    except (FileNotFoundError, PermissionError):
        raise
    except UNREADABLE as error:
        raise damaged(archive, error) from error


def _spend(most: int, size: int, name: str) -> int:
    if size > most:
        raise zipfile.BadZipFile(f"{name} would expand to {size:,} bytes, where {most:,} were expected at most")
    return most - size
