"""Damaged files: archives, caches and records with flipped bits or cut short are refused, skipped or harmless."""

from __future__ import annotations

import io
import json
import random
import tarfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from advdiff.datasets.archives import read_members
from advdiff.datasets.files import DamagedDataError, read_arrays, read_table
from advdiff.experiments import read
from advdiff.experiments.records import DamagedRecordWarning

CONTENT = b"1,2\n3,4\n" * 50


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("table.csv", CONTENT)
    return buffer.getvalue()


def tarred() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        header = tarfile.TarInfo("table.csv")
        header.size = len(CONTENT)
        archive.addfile(header, io.BytesIO(CONTENT))
    return buffer.getvalue()


def arrays() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, table=np.arange(40))
    return buffer.getvalue()


def damages(content: bytes, draw: random.Random, count: int) -> list[bytes]:
    """Flipped bits, missing ends, doubled and zeroed blocks."""
    found = []
    for _ in range(count):
        changed, place = bytearray(content), draw.randrange(len(content))
        match draw.randrange(4):
            case 0:
                changed[place] ^= 1 << draw.randrange(8)
            case 1:
                del changed[place:]
            case 2:
                changed[place:place] = changed[place : place + 64]
            case _:
                changed[place : place + 16] = bytes(len(changed[place : place + 16]))
        found.append(bytes(changed))
    return found


READERS: dict[str, tuple[Callable[[], bytes], Callable[[Path], object]]] = {
    "zip": (zipped, lambda path: list(read_members(path, lambda name: True, 10**6))),
    "tar.gz": (tarred, lambda path: list(read_members(path, lambda name: True, 10**6))),
    "npz": (arrays, read_arrays),
    "csv": (lambda: CONTENT, read_table),
}


@pytest.mark.parametrize("kind", READERS)
def test_a_damaged_file_is_named_or_read(kind: str, tmp_path: Path, tried: Callable[[int], None]) -> None:
    make, reader = READERS[kind]
    path, variants = tmp_path / f"file.{kind}", damages(make(), random.Random(kind), 400)
    for content in variants:
        path.write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                reader(path)
            except DamagedDataError as error:
                assert "fetch it again" in str(error)
    tried(len(variants))


def test_damaged_records_are_skipped_with_a_warning(tmp_path: Path, tried: Callable[[int], None]) -> None:
    """A line that is no record any more counts as not made; the others are read."""
    source = Path(__file__).parents[2] / "results" / "synthetic.jsonl"
    line = source.read_bytes().splitlines(keepends=True)[0]
    key = json.loads(line)["key"]
    path, variants = tmp_path / "runs.jsonl", damages(line, random.Random(0), 400)
    for content in variants:
        path.write_bytes(content.rstrip(b"\n") + b"\n" + line)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedRecordWarning)
            assert key in {record.key for record in read(path)}
    tried(len(variants))
