"""A lock on an open file, between processes; released when the file is closed or its process dies."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

if sys.platform == "win32":
    import msvcrt
    import os

    _BEYOND = 2**30  # a byte that no results file reaches: Windows locks bytes, and locked ones cannot be read

    @contextmanager
    def locked(descriptor: int, shared: bool = False) -> Iterator[None]:
        """Hold the lock of the file."""
        os.lseek(descriptor, _BEYOND, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
        try:
            yield
        finally:
            os.lseek(descriptor, _BEYOND, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    @contextmanager
    def locked(descriptor: int, shared: bool = False) -> Iterator[None]:
        """Hold the lock of the file: alone, or together with others that only read."""
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
