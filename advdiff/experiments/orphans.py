"""A worker process ends with its parent.

A worker unpickles its initializer before anything else, and with it imports the initializer's module. So nothing slow
is imported here: a worker that starts while its parent dies would otherwise import torch first and look up later.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable

#: Seconds between two looks at the parent.
POLL = 1.0
_PR_SET_PDEATHSIG = 1


def begin_worker(parent: int) -> None:
    """Leave Ctrl-C, which reaches every process of a terminal, to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        _killed_with_parent()
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _killed_with_parent() -> None:
    """Ask the kernel, which needs no turn among the threads of an interpreter that is busy loading a library."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _end_with(parent: int) -> None:
    """For every system, and for a parent that was gone before the kernel was asked."""
    is_alive = _watch(parent)
    while is_alive():
        time.sleep(POLL)
    os._exit(1)


def _watch(parent: int) -> Callable[[], bool]:
    """Tells whether the parent is alive. An orphan is given another one at once, but not on Windows."""
    return _by_number(parent) if sys.platform == "win32" else lambda: os.getppid() == parent


def _by_number(process: int) -> Callable[[], bool]:
    import psutil

    try:
        return psutil.Process(process).is_running  # a later process with the same number is another one
    except psutil.NoSuchProcess:
        return lambda: False
