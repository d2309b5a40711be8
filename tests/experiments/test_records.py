"""Results files: whole lines or none, each run once, whatever happens to the writer."""

import errno
import json
import os
import subprocess
import sys
import warnings

import pytest

from advdiff.experiments import records
from advdiff.experiments.records import DamagedRecordWarning
from tests.experiments.made_up import changed, record


@pytest.fixture
def path(tmp_path):
    return tmp_path / "deep" / "toy.jsonl"


def strictly(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return records.read(path)


def test_what_is_written_is_read_again_to_the_last_digit(path):
    assert records.read(path) == []
    written = [record(number) for number in range(3)]
    assert all(records.append(path, each) for each in written)
    assert strictly(path) == written
    assert path.read_bytes().count(b"\n") == 3


def test_a_finished_run_is_not_recorded_twice(path):
    assert records.append(path, record())
    assert not records.append(path, changed(record(), seconds=9.0))
    assert strictly(path) == [record()]


def test_a_run_that_had_no_memory_may_be_recorded_again_and_the_last_counts(path):
    records.append(path, record(status="out of memory"))
    assert records.append(path, record())
    assert strictly(path) == [record()]


@pytest.mark.parametrize("tail", [b'{"key": "k9", "exp', b'{"key": "k9"\n', b"\0\0\0\0", b"<<<<<<< HEAD\n"])
def test_a_damaged_last_line_is_reported_skipped_and_then_repaired(path, tail):
    records.append(path, record())
    sound = path.read_bytes()
    path.write_bytes(sound + tail)
    with pytest.warns(DamagedRecordWarning, match=r"line 2 of .*toy\.jsonl is damaged"):
        assert records.read(path) == [record()]
    assert records.append(path, record(1))
    assert strictly(path) == [record(), record(1)]
    assert path.read_bytes().startswith(sound)


def test_a_last_line_without_its_line_break_is_kept(path):
    records.append(path, record())
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    assert strictly(path) == [record()]
    records.append(path, record(1))
    assert strictly(path) == [record(), record(1)]


def test_a_damaged_line_in_the_middle_stays_and_is_reported(path):
    records.append(path, record())
    path.write_bytes(b"rubbish\n\n" + path.read_bytes())
    records.append(path, record(1))
    with pytest.warns(DamagedRecordWarning, match="line 1"):
        assert records.read(path) == [record(), record(1)]


def test_lines_of_another_version_are_not_cut_off(path):
    later = record(0).as_dict()
    later["outcome"]["new_field"] = 1
    older = {"key": "k7", "experiment": "toy"}
    path.parent.mkdir()
    path.write_text(json.dumps(later) + "\n" + json.dumps(older) + "\n")
    records.append(path, record(1))
    with pytest.warns(DamagedRecordWarning, match="line 2"):
        assert records.read(path) == [record(0), record(1)]
    assert "k7" in path.read_text()


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("tail", [b"", b'{"key": "k9", "exp'])
def test_a_full_disk_leaves_the_file_as_it_was(path, monkeypatch, call, tail):
    records.append(path, record())
    sound = path.read_bytes()
    path.write_bytes(sound + tail)
    real_write = os.write

    def full(descriptor, data=b""):
        if call == "write" and full.calls == 0:
            full.calls += 1
            return real_write(descriptor, bytes(data)[:20])  # the last bytes of the disk
        raise OSError(errno.ENOSPC, "No space left on device")

    full.calls = 0
    with monkeypatch.context() as patch:
        patch.setattr(os, call, full)
        with pytest.raises(OSError, match="No space left"):
            records.append(path, record(1))
    assert path.read_bytes() == sound
    assert records.append(path, record(1))
    assert strictly(path) == [record(), record(1)]


@pytest.mark.parametrize(("call", "kept"), [("write", [0]), ("fsync", [0, 1])])
def test_an_interrupt_leaves_the_whole_line_or_none(path, monkeypatch, call, kept):
    records.append(path, record())

    def interrupted(descriptor, data=b""):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, call, interrupted)
        with pytest.raises(KeyboardInterrupt):
            records.append(path, record(1))
    assert [each.plan.seed for each in strictly(path)] == kept


def test_numbers_that_json_does_not_know_are_refused(path):
    with pytest.raises(ValueError, match="JSON compliant"):
        records.append(path, changed(record(), valid_metric=float("nan")))
    assert not path.exists()


WRITER = """
import sys
from advdiff.experiments import records
from tests.experiments.made_up import record
path, first = sys.argv[1], int(sys.argv[2])
for number in range(25):
    records.append(path, record(number))
    records.append(path, record(first + number))
"""


@pytest.mark.slow
def test_two_processes_that_write_at_once_neither_lose_nor_double(path):
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(first)]) for first in (100, 200)]
    assert [writer.wait(120) for writer in writers] == [0, 0]
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) == len({json.loads(line)["key"] for line in lines}) == 75
    assert len(strictly(path)) == 75
