"""The command ``advdiff`` where files and folders are not what they should be, and where nobody reads on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advdiff.cli import main
from advdiff.experiments import orphans, workers

ROOT = Path(__file__).parents[2]
RUN = "run synthetic --model mlp --seeds 1 --num-nodes 30 --shift block --set epochs=2 --profile quick --quiet".split()


def refused(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(each) for each in arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("advdiff: ") and said.count("\n") == 1 and "Traceback" not in said
    return said


@pytest.mark.parametrize("command", [RUN, ["table", "synthetic"]], ids=["run", "table"])
def test_results_that_name_a_file(command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(capsys, *command, "--results", tmp_path / "file")


def test_results_that_name_a_folder_like_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs.jsonl").mkdir()
    assert "is a folder" in refused(capsys, *RUN, "--results", tmp_path / "runs.jsonl")


def test_results_below_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    refused(capsys, *RUN, "--results", tmp_path / "file" / "results")


def test_results_that_cannot_be_written_are_noticed_before_the_first_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr("advdiff.experiments.sweep.execute", lambda *args, **how: made.append(args))

    def no_room(*args: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("advdiff.experiments.records.open", no_room, raising=False)
    assert "cannot be written" in refused(capsys, *RUN, "--results", tmp_path)
    assert not made


def test_a_check_before_the_first_run_leaves_nothing(tmp_path: Path) -> None:
    from advdiff.experiments.records import check_writable

    check_writable(tmp_path / "new" / "runs.jsonl")
    assert not (tmp_path / "new" / "runs.jsonl").exists()
    (tmp_path / "runs.jsonl").write_text("{}\n")
    check_writable(tmp_path / "runs.jsonl")
    assert (tmp_path / "runs.jsonl").read_text() == "{}\n"


def test_a_file_that_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "synthetic.jsonl").write_text("{}\n")

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    assert "cannot be read (Permission denied)" in refused(capsys, "table", "synthetic", "--results", tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_nobody_reads_on() -> None:
    """``advdiff list | head -1``: no traceback."""
    code = "import sys; from advdiff.cli import main; sys.exit(main(['list']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    assert process.wait(120) == 141 and "Traceback" not in said and "Exception ignored" not in said


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL], ids=["term", "kill"])
@pytest.mark.parametrize("when", ["at once", "at work"])
def test_workers_do_not_outlive_their_parent(how: signal.Signals, when: str, tmp_path: Path) -> None:
    command = [*RUN, "--seeds", "1000", "--set", "epochs=60", "--jobs", "2", "--results", str(tmp_path)]
    process = subprocess.Popen(
        [sys.executable, "-m", "advdiff.cli", *command], cwd=ROOT, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip

    def group() -> list[str]:
        listed = subprocess.run(
            ["ps", "-ww", "-o", "pid=,args=", "-g", str(process.pid)], capture_output=True, text=True
        )
        return [line for line in listed.stdout.splitlines() if "popen_loky" in line]

    def is_time() -> bool:
        return len(group()) == 2 and (when == "at once" or (tmp_path / "synthetic.jsonl").exists())

    limit = time.monotonic() + 240
    while not is_time() and time.monotonic() < limit:
        time.sleep(0.1)
    at_work = group()
    process.send_signal(how)
    process.wait(60)
    limit = time.monotonic() + 10
    while group() and time.monotonic() < limit:
        time.sleep(0.2)
    left = group()
    if left:
        os.killpg(process.pid, signal.SIGKILL)
    assert len(at_work) == 2 and not left


def test_a_worker_looks_for_its_parent_before_it_imports_anything_slow() -> None:
    code = "import sys, advdiff.experiments.orphans; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0
    assert workers.begin_worker is orphans.begin_worker


def test_where_orphans_keep_the_number_of_their_parent() -> None:
    """As on Windows: the process of that number is looked up."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    is_alive = orphans._by_number(process.pid)
    assert is_alive()
    process.communicate(b"\n")
    assert not is_alive() and not orphans._by_number(process.pid)()
