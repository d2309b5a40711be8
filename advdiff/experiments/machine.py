"""The machine under a run: which device, how a run repeats itself there, what it took, and what a record says of it.

Nothing here names a path or a host.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timezone
from pathlib import Path

import psutil
import torch
import torch_geometric
from torch.utils import deterministic

import advdiff

DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str = "auto") -> torch.device:
    """``"auto"``: a CUDA device where there is one, else Apple's mps, else the CPU. Also ``"cuda:1"`` and the like.

    Example:
        >>> choose_device("cpu")
        device(type='cpu')
    """
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if there[kind]))
    kind, _, number = name.partition(":")
    if kind not in there or (number and not number.isdigit()):
        raise ValueError(f"unknown device {name!r}; choose one of: {', '.join(DEVICES)}.")
    if not there[kind]:
        raise ValueError(f"this machine has no {kind} device; use device='cpu' or 'auto'.")
    return torch.device(name)


@contextmanager
def repeatable(seed: int, threads: int | None = None) -> Iterator[None]:
    """Everything random inside follows from ``seed``, and the caller's random state is untouched afterwards.

    Deterministic kernels are used where torch has them, silently others where it has not. On the CPU, sums over nodes
    depend in their last digits on the number of threads.
    """
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        torch.get_num_threads(),
    )
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation.*")
        try:
            torch.use_deterministic_algorithms(True, warn_only=True)
            deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
            if threads is not None:
                torch.set_num_threads(threads)
            torch.manual_seed(seed)
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            deterministic.fill_uninitialized_memory = before[2]  # type: ignore[attr-defined]
            torch.set_num_threads(before[3])


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "pyg": torch_geometric.__version__,
        "advdiff": advdiff.__version__,
    }


def machine(device: torch.device) -> dict[str, object]:
    """Processor, cores and threads, and the accelerator if one is used."""
    described: dict[str, object] = {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": platform.system(),
    }
    if device.type == "cuda":
        described["gpu"] = torch.cuda.get_device_name(device)
    return described


@functools.cache
def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@functools.cache
def commit() -> str | None:
    """The commit of the code, with ``+`` if the package differs from it; None outside a repository of it."""
    folder = Path(advdiff.__file__).parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=30).stdout.strip()

    try:
        if not git("ls-files", "__init__.py"):  # installed inside somebody else's repository
            return None
        changed = git("status", "--porcelain", "--untracked-files=normal", "--", ".")
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def now() -> str:
    """The time in UTC, to the second."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def peak_gigabytes() -> float:
    """Largest resident memory of this process so far (where the system does not keep it, what it holds now)."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
        return int(line.split()[1]) * 1024 / 1e9
    held = psutil.Process().memory_info()
    return float(getattr(held, "peak_wset", held.rss)) / 1e9  # Windows keeps the peak


class Meter:
    """What a run takes from the moment the object is made: processor time, and the largest memory.

    Memory on CUDA is what torch allocated; else the resident memory of the whole process, libraries and data included.
    Linux can forget an earlier peak; elsewhere the peak is that of the process so far.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._before = self._processor_time()
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        else:
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM

    @staticmethod
    def _processor_time() -> float:
        times = psutil.Process().cpu_times()
        return float(times.user + times.system)

    def cpu_seconds(self) -> float:
        """Seconds of all cores together."""
        return self._processor_time() - self._before

    def gigabytes(self) -> float:
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / 1e9
        return peak_gigabytes()


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
