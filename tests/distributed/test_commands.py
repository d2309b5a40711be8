"""The commands: the same losses for every number of processes; a rank that is killed; going on from there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

from advdiff.cli import main
from tests.distributed import processes

MODEL = ["--solver", "series", "--hidden", "16", "--heads", "2", "--seed", "0", "--batch-norm", "--lr", "0.003"]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    drawn = torch.Generator().manual_seed(0)
    x = torch.randn(300, 6, generator=drawn)
    edges = torch.randint(300, (2, 900), generator=drawn)
    chosen = torch.rand(300, generator=drawn)
    data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1), y=(x[:, :2] > 0).sum(1))
    data.train_mask, data.val_mask, data.test_mask = chosen < 0.5, (0.5 <= chosen) & (chosen < 0.75), chosen >= 0.75
    path: Path = tmp_path_factory.mktemp("graph") / "data.pt"
    torch.save(data, path)
    return path


def losses(text: str) -> dict[int, float]:
    found = re.findall(r"^epoch (\d+) loss (\d+\.\d{6}) valid \d\.\d{4}$", text, flags=re.MULTILINE)
    return {int(number): float(loss) for number, loss in found}


def single(file: Path, capsys: pytest.CaptureFixture[str], *options: str) -> dict[int, float]:
    capsys.readouterr()
    assert main(["train", str(file), *MODEL, *options]) == 0
    return losses(capsys.readouterr().out)


def test_torchrun_trains_as_one_process_does(file, tmp_path, capsys):
    assert main(["shard", str(file), "--parts", "2", "--out", str(tmp_path)]) == 0
    assert "300 nodes and 1800 edges in 2 parts by metis" in capsys.readouterr().out
    options = ["--epochs", "5", "--dtype", "float64"]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-port", str(processes.free_port()), "-m", "advdiff.distributed", str(tmp_path)]
    done = subprocess.run(
        [*command, *MODEL, *options, "--save", str(tmp_path / "weights.safetensors")],
        env=processes.environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    expected = single(file, capsys, *options, "--save", str(tmp_path / "single.safetensors"))
    assert losses(done.stdout).keys() == expected.keys() == set(range(1, 6))  # once each: rank 0 alone prints
    assert done.stdout.count("epoch") == 5
    assert losses(done.stdout) == pytest.approx(expected, abs=1e-5)
    import safetensors.torch

    weights, others = (safetensors.torch.load_file(tmp_path / f"{name}.safetensors") for name in ("weights", "single"))
    assert all(torch.allclose(weights[name], others[name], atol=1e-8) for name in others)


def test_a_killed_rank_is_named_and_the_run_goes_on(file, tmp_path, capsys):
    assert main(["shard", str(file), "--parts", "3", "--out", str(tmp_path), "--method", "range"]) == 0
    with start(tmp_path, "--epochs", "100000") as job:
        ranks = {}
        for line in job.stdout:
            if line.startswith("started"):
                ranks[int(line.split()[1])] = int(line.split()[2])
            if line.startswith("epoch 3 "):
                break
        os.kill(ranks[1], signal.SIGKILL)
        began = time.monotonic()
        try:
            _, errors = job.communicate(timeout=60)
        finally:
            job.kill()
    assert time.monotonic() - began < 30
    assert job.returncode not in (0, None)
    assert errors.count("advdiff: rank 1 was lost; start the same command again with --resume.") == 2, errors
    reached = torch.load(tmp_path / "checkpoint.pt", weights_only=True)["epoch"]
    assert 3 <= reached < 100000
    last = str(reached + 4)
    with start(tmp_path, "--epochs", last, "--resume") as job:
        output, errors = job.communicate(timeout=300)
    assert job.returncode == 0, errors[-2000:]
    expected = single(file, capsys, "--epochs", last)
    assert list(losses(output)) == list(range(reached + 1, reached + 5))
    assert losses(output)[reached + 4] == pytest.approx(expected[reached + 4], abs=1e-4)


def start(directory: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.distributed.job", "3", str(processes.free_port()), str(directory)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [*command, *MODEL, *options], env=processes.environment(), stdout=pipe, stderr=pipe, text=True
    )
