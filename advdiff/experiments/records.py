"""Records of runs: one JSON line each, appended whole or not at all.

A line is written under a lock and forced to the disk before :func:`append` returns; if that fails (a full disk), the
file is cut back to what it was. A process killed in between leaves at most one unfinished last line, which readers
report and skip and the next :func:`append` removes. A run that is recorded already is not recorded again, whoever
writes.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch

from advdiff.atomic import locked, sync_folder
from advdiff.experiments import machine
from advdiff.experiments.plan import Plan

#: These are results. A run that ended otherwise (out of memory) is recorded too, and tried again the next time.
COMPLETE = ("finished", "diverged", "singular")


class DamagedRecordWarning(UserWarning):
    """A line of a results file is not a record.

    Example:
        >>> import pathlib, tempfile, warnings
        >>> from advdiff.experiments import read
        >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        ...     _ = pathlib.Path(folder, "runs.jsonl").write_text("not a record")
        ...     found = read(pathlib.Path(folder, "runs.jsonl"))
        >>> found, caught[0].category.__name__
        ([], 'DamagedRecordWarning')
    """


@dataclass(frozen=True)
class Outcome:
    """What a run gave.

    Attributes:
        metric: that the epoch was chosen by, and that all numbers here are of.
        status: ``finished``; ``diverged``, the loss or the parameters became NaN or infinite; ``singular``, θI + L
            could not be inverted; ``out of memory``, on this machine. Only a finished run has metrics.
        reason: says more where it is not ``finished``.
        metrics: environment → metric at the chosen epoch; None where it is not defined.
        valid_metric: mean over the validation environments at the chosen epoch.
        chosen_epoch: the best on validation data, counted from 1.
        epochs: epochs trained.
        train, valid, test: which environment was for what; no test in a search.
        parameters: numbers that are trained.
        seconds_per_epoch: median, training only. ``seconds``: all of it, evaluation included. ``cpu_seconds``: of all
            cores together; None in records that are older than it.
        peak_memory_gb: of the process on a CPU, libraries included; of torch's allocations on CUDA.
        remarks: what the model said about its equation, for example that θI + L is nearly singular.
        predictions: test environment → the model's output there and the labels, packed by
            :func:`~advdiff.experiments.packing.packed`, where a trial asks for them.
    """

    metric: str
    status: str
    metrics: dict[str, float | None]
    valid_metric: float | None
    chosen_epoch: int | None
    epochs: int
    train: list[str]
    valid: list[str]
    test: list[str]
    parameters: int | None
    seconds_per_epoch: float | None
    seconds: float
    cpu_seconds: float | None = None
    peak_memory_gb: float | None = None
    reason: str = ""
    remarks: list[str] = field(default_factory=list)
    predictions: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Provenance:
    """Where and when a run was made, by which code, and under which protocol (its hash, or None)."""

    versions: dict[str, str]
    device: str
    machine: dict[str, Any]
    commit: str | None
    time: str
    protocol: str | None = None

    @classmethod
    def here(cls, device: torch.device) -> Provenance:
        """This machine, now."""
        return cls(machine.versions(), str(device), machine.machine(device), machine.commit(), machine.now())


@dataclass(frozen=True)
class Record:
    """What one run was and what it gave: its plan, its outcome and its provenance.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import run
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     (record,) = run("synthetic", "mlp", settings={"epochs": 2}, num_nodes=30, shift="none", profile="quick",
        ...                     device="cpu", results=folder, progress=False)
        >>> record.plan.model, record.outcome.status, record.outcome.epochs, sorted(record.outcome.metrics)[:2]
        ('mlp', 'finished', 2, ['#1', '#10'])
    """

    plan: Plan
    outcome: Outcome
    provenance: Provenance

    @property
    def key(self) -> str:
        return self.plan.key

    @property
    def complete(self) -> bool:
        return self.outcome.status in COMPLETE

    @property
    def converged(self) -> bool:
        """Whether the run ended well, by patience or with its best epoch before the last tenth of its budget.

        A run that was still improving when its budget ended says what the budget allows, not what the model can do.
        """
        outcome, budget = self.outcome, self.plan.budget
        if outcome.status != "finished" or outcome.chosen_epoch is None:
            return False
        return outcome.epochs < budget.epochs or outcome.chosen_epoch <= 0.9 * budget.epochs

    def as_dict(self) -> dict[str, Any]:
        return {"key": self.key, **asdict(self), "plan": self.plan.as_dict()}

    def line(self) -> str:
        return json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Record:
        """Fields that this version does not know are left out."""
        return cls(
            Plan.from_dict(content["plan"]),
            Outcome(**_known(Outcome, content["outcome"])),
            Provenance(**_known(Provenance, content["provenance"])),
        )


def _known(kind: Any, content: Mapping[str, Any]) -> dict[str, Any]:
    return {each.name: content[each.name] for each in fields(kind) if each.name in content}


def read(path: str | os.PathLike[str]) -> list[Record]:
    """All records of a file, the last one of each key; none if there is no file. A damaged line is a warning.

    Example:
        >>> from advdiff.experiments import read
        >>> read("no-such-file.jsonl")
        []
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read ({error.strerror or error}); choose another file or folder."
        ) from error
    found: dict[str, Record] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        record = _parse(line)
        if record is not None:
            found[record.key] = record
        elif line.strip():
            message = f"line {number} of {path} is damaged and was skipped; its run counts as not made."
            warnings.warn(message, DamagedRecordWarning, stacklevel=2)
    return list(found.values())


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written before anything is computed. Makes its folder, and changes nothing else."""
    try:
        with locked(path):  # so that the file which is removed again is not one that another process has begun
            existed = path.exists()
            with open(path, "ab"):
                pass
            if not existed:
                path.unlink()
    except OSError as error:
        raise ValueError(
            f"records cannot be written to {path} ({error.strerror or error}); choose another folder for the results."
        ) from error


def append(path: str | os.PathLike[str], record: Record) -> bool:
    """Add a record, unless its run is recorded already; True if it was added."""
    path = Path(path)
    line = record.line().encode() + b"\n"
    with locked(path):
        content = path.read_bytes() if path.exists() else b""
        end, missing = _sound_end(content)
        if _is_recorded(content[:end], record.key):
            return False
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _write_at(descriptor, end, missing + line)
        finally:
            os.close(descriptor)
    if not content:
        sync_folder(path.parent)
    return True


def _parse(line: bytes) -> Record | None:
    try:
        return Record.from_dict(json.loads(line))
    except (ValueError, TypeError, KeyError):
        return None


def _is_recorded(content: bytes, key: str) -> bool:
    """Whether the file holds a result of that key: by its bytes first, since parsing every line would be slow."""
    mark = key.encode()
    for line in content.splitlines():
        if mark in line:
            record = _parse(line)
            if record is not None and record.key == key and record.complete:
                return True
    return False


def _sound_end(content: bytes) -> tuple[int, bytes]:
    """Where the next line belongs: behind the last, or in its place if damaged; and a line break if one is missing."""
    body = content.rstrip(b"\r\n \t\0")
    if not body:
        return 0, b""
    start = body.rfind(b"\n") + 1
    try:
        json.loads(body[start:])  # not _parse: what another version wrote is not damaged
    except ValueError:
        return start, b""
    if content[len(body) : len(body) + 1] == b"\n":
        return len(body) + 1, b""
    return len(body), b"\n"


def _write_at(descriptor: int, end: int, data: bytes) -> None:
    """Replace all from ``end`` on (nothing, or a damaged line) by ``data``; cut the file there on failure.

    An interrupt after the last byte is not a failure: the line is whole, and its run must not be lost.
    """
    rest = memoryview(data)
    try:
        os.ftruncate(descriptor, end)
        os.lseek(descriptor, end, os.SEEK_SET)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    except BaseException as error:
        if rest or isinstance(error, OSError):
            with suppress(OSError):
                os.ftruncate(descriptor, end)
        raise
