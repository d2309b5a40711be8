"""Keep freed memory: for training on large graphs on a CPU under Linux."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_LARGEST = 2**31 - 4096


def keep_freed_memory() -> bool:
    """Ask the C library to reuse large freed blocks instead of returning them to the system.

    glibc hands back every block above 32 MB when it is freed, and each new one is then mapped page by page: an
    out-of-place addition of two 169,343 × 128 matrices spends most of its time in page faults. This setting holds for
    the whole process, so the library never makes it by itself: ``advdiff bench`` does, and scripts may.

    Returns:
        True if the C library took the setting, False where there is none to make (macOS, Windows, musl).
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _LARGEST)) and bool(mallopt(_M_TRIM_THRESHOLD, _LARGEST))
