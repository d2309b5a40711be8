"""Sweeps over processes and machines: same numbers, nothing lost, nothing twice."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest

from advdiff.experiments import SweepError, read, run

ROOT = Path(__file__).parents[2]
SWEEP = {"model": "mlp", "seeds": 8, "shift": "block", "num_nodes": 30, "settings": {"epochs": 60}, "profile": "quick"}
COMMAND = (
    "run synthetic --model mlp --seeds 8 --shift block --num-nodes 30 --set epochs=60 --profile quick --quiet".split()
)


def definitions(found):
    return {record.key: (record.outcome.metrics, record.outcome.chosen_epoch) for record in found}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What the sweep gives in one process with one thread."""
    return definitions(run("synthetic", **SWEEP, results=tmp_path_factory.mktemp("alone"), threads=1, progress=False))


def read_sound_records(path):
    """The records of a file in which every line is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = read(path)
    assert len(found) == len(path.read_text(encoding="utf-8").splitlines())
    return found


def start(results, *more):
    """The sweep as a command, in a group of processes of its own; slowed down, so that it can be met in the middle."""
    arguments = [*COMMAND, "--set", "epochs=400", "--results", str(results), *more]
    return subprocess.Popen(
        [sys.executable, "-m", "advdiff.cli", *arguments], cwd=ROOT, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"},
        # Whoever starts the tests in the background makes them, and their children, deaf to Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


def wait_for_lines(path, lines, process):
    limit = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert process.poll() is None and time.monotonic() < limit, process.communicate()
        time.sleep(0.01)


@pytest.mark.slow
def test_several_processes_give_the_same_records(tmp_path, alone):
    found = run("synthetic", **SWEEP, results=tmp_path, jobs=2, progress=False)
    assert definitions(found) == definitions(read_sound_records(tmp_path / "synthetic.jsonl")) == alone
    assert [record.plan.seed for record in found] == list(range(8))
    assert all(record.provenance.machine["threads"] == 1 for record in found)


@pytest.mark.slow
def test_kill_9_loses_no_finished_run_and_the_same_command_goes_on(tmp_path):
    path = tmp_path / "synthetic.jsonl"
    process = start(tmp_path)
    wait_for_lines(path, 2, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before, kept = path.read_bytes(), read_sound_records(path)
    assert 2 <= len(kept) < 8
    path.write_bytes(before + before.splitlines()[0][:100])  # and as if it had been killed in the middle of a line
    with pytest.warns(UserWarning, match="damaged"):
        found = run("synthetic", **{**SWEEP, "settings": {"epochs": 400}, "seeds": len(kept) + 1}, results=tmp_path)
    assert path.read_bytes().startswith(before)
    assert [record.provenance.time for record in found[: len(kept)]] == [record.provenance.time for record in kept]
    assert len(read_sound_records(path)) == len(kept) + 1


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_control_c_leaves_a_sound_file_and_no_processes(tmp_path, jobs):
    path = tmp_path / "synthetic.jsonl"
    process = start(tmp_path, "--jobs", str(jobs))
    wait_for_lines(path, 2, process)
    os.killpg(process.pid, signal.SIGINT)  # as the terminal does: to all of them
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in errors
    assert "Traceback" not in errors
    assert 2 <= len(read_sound_records(path)) < 8
    limit = time.monotonic() + 30
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < limit:  # init takes its time to bury them
            os.killpg(process.pid, 0)
            time.sleep(0.1)


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with (
        warnings.catch_warnings(),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0"
        ) as started,
    ):
        yield started


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_records(tmp_path, cluster, alone):
    found = run("synthetic", **SWEEP, results=tmp_path, dask=cluster.scheduler_address, progress=False)
    assert definitions(found) == definitions(read_sound_records(tmp_path / "synthetic.jsonl")) == alone


@pytest.mark.slow
def test_a_dask_worker_killed_in_the_middle_loses_nothing(tmp_path, cluster):
    path = tmp_path / "synthetic.jsonl"
    longer = {**SWEEP, "settings": {"epochs": 300}}
    victim = next(iter(cluster.workers.values())).pid

    def kill():
        while not path.exists() or path.read_bytes().count(b"\n") < 2:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = run("synthetic", **longer, results=tmp_path, dask=cluster.scheduler_address, progress=False)
    killer.join(30)
    assert not killer.is_alive()
    expected = run("synthetic", **longer, results=tmp_path / "alone", threads=1, progress=False)
    assert definitions(found) == definitions(read_sound_records(path)) == definitions(expected)


def test_a_cluster_that_is_not_there_is_named(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("advdiff.experiments.workers.CONNECT_SECONDS", 1)
    with pytest.raises(ValueError, match=r"no Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        run("synthetic", **SWEEP, results=tmp_path, dask="tcp://127.0.0.1:9", progress=False)


@pytest.mark.slow
def test_a_worker_that_dies_is_named(tmp_path, monkeypatch):
    """As Linux does with a process that takes too much memory."""
    monkeypatch.setattr("advdiff.experiments.sweep.attempt", die)
    with pytest.raises(SweepError, match="worker process died"):
        run("synthetic", **SWEEP, results=tmp_path, jobs=2, progress=False)


def die(plan, **keywords):
    os.kill(os.getpid(), signal.SIGKILL)


WITHOUT_UNIX = """
import sys
import psutil  # on Linux it imports them itself
sys.modules["fcntl"] = sys.modules["resource"] = None  # as on Windows
from advdiff.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_run_needs_nothing_that_only_unix_has(tmp_path):
    command = [*COMMAND, "--set", "epochs=2", "--seeds", "1", "--results", str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", WITHOUT_UNIX, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (record,) = read_sound_records(tmp_path / "synthetic.jsonl")
    assert record.outcome.peak_memory_gb > 0 and record.outcome.cpu_seconds > 0
