"""pytest in a forked child of a process that has imported the slow packages already, but nothing of this project.

A mutant needs a process of its own, and most of such a process's time would go into importing torch.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

PRELOADED = (
    "torch", "torch_geometric.data", "torch_geometric.loader", "torch_geometric.nn", "torch_geometric.utils",
    "scipy.sparse.linalg", "scipy.stats", "scipy.interpolate", "pandas", "matplotlib.pyplot", "hypothesis",
)  # fmt: skip
#: Nothing that only makes a failure easier to read: of it no more than the name of the test is kept.
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "pytest_timeout", "--assert=plain", "--doctest-modules", "-rN")


@dataclass(frozen=True)
class Outcome:
    """What became of a run: ``ended`` is "green", "red" or "time"; ``by`` the first test that failed."""

    ended: str
    by: str
    seconds: float
    slowest: float


class _Notes:
    """A plugin: the first failure and the slowest test, written down when the session ends."""

    def __init__(self, path: Path) -> None:
        self.path, self.by, self.slowest = path, "", 0.0

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._failed(report.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.slowest = max(self.slowest, report.duration)
        if report.failed:
            self._failed(report.nodeid)

    def _failed(self, name: str) -> None:
        self.by = self.by or name
        self.write()

    def write(self) -> None:
        self.path.write_text(json.dumps([self.by, self.slowest]), encoding="utf-8")

    pytest_sessionfinish = write


def preload() -> None:
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    for name in PRELOADED:
        importlib.import_module(name)
    assert "advdiff" not in sys.modules, "the project's own modules have to come from the copy"


def run(copy: Path, tests: list[str], marker: str, each: float, limit: float, *more: str) -> Outcome:
    """The tests of the project's copy with this marker, until one fails; without the data.

    Args:
        each: seconds that a test may take. limit: seconds that all together may take. more: options of pytest.
    """
    with tempfile.TemporaryDirectory() as folder:
        notes, output = Path(folder, "notes"), Path(folder, "output")
        began = time.monotonic()
        child = os.fork()
        if child == 0:
            os._exit(_child(copy, [*OPTIONS, *more, "-m", marker, "--timeout", str(each), *tests], notes, output))
        status = _wait(child, began + limit)
        seconds = time.monotonic() - began
        by, slowest = json.loads(notes.read_text(encoding="utf-8")) if notes.exists() else ("", 0.0)
        if status is None:
            return Outcome("time", by, seconds, slowest)
        code = os.waitstatus_to_exitcode(status)
        if code in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            return Outcome("green", "", seconds, slowest)
        if code < 0:
            return Outcome("red", f"signal {-code}", seconds, slowest)
        if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED) and by:
            return Outcome("red", by, seconds, slowest)
        said = output.read_text(encoding="utf-8", errors="replace")[-3000:]
        raise RuntimeError(f"pytest itself failed (exit {code}):\n{said}")


def _child(copy: Path, arguments: list[str], notes: Path, output: Path) -> int:
    os.setsid()
    with output.open("wb", buffering=0) as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    for name in [name for name in os.environ if name.startswith("ADVDIFF_")]:
        del os.environ[name]
    os.environ |= {
        "PYTHONPATH": str(copy),
        "ADVDIFF_CACHE": str(copy / "_cache"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    sys.dont_write_bytecode = False
    for name in [name for name in sys.modules if name.split(".")[0] == "tools"]:
        del sys.modules[name]
    sys.path[:] = [str(copy), *(each for each in sys.path if each not in ("", os.getcwd()))]
    os.chdir(copy)
    import advdiff

    assert Path(advdiff.__file__).is_relative_to(copy), "another copy of the library would be tested"
    return int(pytest.main(arguments, plugins=[_Notes(notes)]))


def _wait(child: int, until: float) -> int | None:
    """The child's status; None if it had to be killed, with all that it started."""
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
