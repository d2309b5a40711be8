"""What a record says about where it was made: versions, machine, commit; no paths and no host names."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from contextlib import suppress
from datetime import datetime, timezone
from pathlib import Path

import torch
import torch_geometric

import advdiff


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


class PeakMemory:
    """Largest memory of this process since the object was made, in GB.

    On CUDA what torch allocated; else the resident memory of the whole process, libraries and data included. Linux can
    forget an earlier peak; elsewhere the peak is that of the process so far.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
        else:
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # resets VmHWM

    def gigabytes(self) -> float:
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / 1e9
        from advdiff.bench.measure import peak_gigabytes

        return peak_gigabytes()
