"""Real processes on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
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


def start(parts: int, command: Sequence[str]) -> list[subprocess.Popen[str]]:
    """``python -m COMMAND`` once for each rank."""
    port, shared = free_port(), environment()
    return [
        subprocess.Popen(
            [sys.executable, "-m", *command],
            env={
                **shared, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(parts),
                "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(parts)
    ]  # fmt: skip


def finish(processes: list[subprocess.Popen[str]], timeout: float = 300.0) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of each."""
    try:
        ended = []
        for process in processes:
            out, err = process.communicate(timeout=timeout)
            ended.append((process.returncode, out, err))
        return ended
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
