"""Real processes on loopback."""

from __future__ import annotations

import os
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def environment() -> dict[str, str]:
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **one_thread, "PYTHONPATH": path, "GLOO_SOCKET_IFNAME": "lo"}


def divide(parts: int, port: str, function: Callable[[], object]) -> int:
    """Call the function in ``parts`` new processes, the ranks; the highest of their exit codes.

    They are forks, so that imports are paid once; nothing has run before that a fork could not copy.
    """
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(parts)}
    children = []
    for rank in range(parts):
        child = os.fork()
        if child == 0:
            os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
            try:
                code = function()
            except BaseException:
                traceback.print_exc()
                code = 1
            sys.stdout.flush()
            os._exit(code if isinstance(code, int) else 0)
        children.append(child)
        print("started", rank, child, flush=True)
    return max(abs(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) for child in children)
