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

from advdiff.experiments.locking import locked

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
class Record:
    """What one run was and what it gave.

    Attributes:
        key: a hash of what defines the run, by which it is found again.
        experiment, dataset, metric, options, model, settings, seed, data_seed, profile, budget, only_valid: the
            definition, see :class:`advdiff.experiments.jobs.Job`.
        status, reason, metrics, valid_metric, chosen_epoch, epochs, seconds_per_epoch, seconds: the outcome, see
            :class:`advdiff.experiments.training.Outcome`.
        train, valid, test: which environment was for what.
        remarks: what the model said about its equation, for example that θI + L is nearly singular.
        peak_memory_gb: of the process on a CPU, libraries included; of torch's allocations on CUDA.
        parameters: numbers that are trained.
        versions, device, machine, commit, time: where and when it was made.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import run
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     (record,) = run("synthetic", "mlp", settings={"epochs": 2}, num_nodes=30, shift="none", profile="quick",
        ...                     device="cpu", results=folder, progress=False)
        >>> record.model, record.status, record.epochs, sorted(record.metrics)[:2]
        ('mlp', 'finished', 2, ['#1', '#10'])
    """

    key: str
    experiment: str
    dataset: str
    metric: str
    options: dict[str, Any]
    model: str
    settings: dict[str, Any]
    seed: int
    data_seed: int | None
    profile: str
    budget: dict[str, Any]
    only_valid: bool
    status: str
    reason: str
    metrics: dict[str, float | None]
    valid_metric: float | None
    chosen_epoch: int | None
    epochs: int
    seconds_per_epoch: float | None
    seconds: float
    train: list[str]
    valid: list[str]
    test: list[str]
    remarks: list[str] = field(default_factory=list)
    parameters: int | None = None
    peak_memory_gb: float | None = None
    versions: dict[str, str] = field(default_factory=dict)
    device: str = "cpu"
    machine: dict[str, Any] = field(default_factory=dict)
    commit: str | None = None
    time: str = ""

    @property
    def complete(self) -> bool:
        return self.status in COMPLETE

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        return json.dumps(self.as_dict(), ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Record:
        """Fields that this version does not know are left out."""
        return cls(**{name: content[name] for name in _FIELDS if name in content})


_FIELDS = tuple(each.name for each in fields(Record))


def read(path: str | os.PathLike[str]) -> list[Record]:
    """All records of a file, the last one of each key; none if there is no file. A damaged line is a warning.

    Example:
        >>> from advdiff.experiments import read
        >>> read("no-such-file.jsonl")
        []
    """
    path = Path(path)
    try:
        with path.open("rb") as file, locked(file.fileno(), shared=True):
            file.seek(0)
            content = file.read()
    except FileNotFoundError:
        return []
    found: dict[str, Record] = {}
    for number, line in enumerate(content.splitlines(), start=1):
        record = _parse(line)
        if record is not None:
            found[record.key] = record
        elif line.strip():
            message = f"line {number} of {path} is damaged and was skipped; its run counts as not made."
            warnings.warn(message, DamagedRecordWarning, stacklevel=2)
    return list(found.values())


def append(path: str | os.PathLike[str], record: Record) -> bool:
    """Add a record, unless its run is recorded already; True if it was added."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    line = record.line().encode() + b"\n"
    new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with locked(descriptor):
            content = _read_all(descriptor)
            end, missing = _sound_end(content)
            if _is_recorded(content[:end], record.key):
                return False
            _write_at(descriptor, end, missing + line)
    finally:
        os.close(descriptor)
    if new:
        _sync_folder(path.parent)
    return True


def _parse(line: bytes) -> Record | None:
    try:
        return Record.from_dict(json.loads(line))
    except (ValueError, TypeError):
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


def _read_all(descriptor: int) -> bytes:
    os.lseek(descriptor, 0, os.SEEK_SET)
    parts = []
    while part := os.read(descriptor, 1 << 20):
        parts.append(part)
    return b"".join(parts)


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


def _sync_folder(folder: Path) -> None:
    """Make the name of a new file as durable as its content, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
