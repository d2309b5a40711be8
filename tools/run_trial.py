"""``make trial``: the runs of results/protocol.toml, by the code that the protocol names, in a checkout of its own.

    python tools/run_trial.py                       # two processes; further arguments are those of `advdiff trial run`
    python tools/run_trial.py --dask tcp://host:8786

The checkout lies in _build/trial, so that what is done in the working tree meanwhile cannot change the trial half-way.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT / "_build" / "trial"


def git(*arguments: str, at: Path = ROOT) -> str:
    return subprocess.run(["git", *arguments], cwd=at, check=True, capture_output=True, text=True).stdout.strip()


def check_out(commit: str) -> None:
    """Have the code of that commit in its own folder, and nothing else."""
    if not (CODE / ".git").exists():
        git("worktree", "prune")
        git("worktree", "add", "--detach", "--force", str(CODE), commit)
    git("checkout", "--detach", "--force", commit, at=CODE)
    git("clean", "-fdq", at=CODE)


def main() -> None:
    protocol = ROOT / "results" / "protocol.toml"
    commit = tomllib.loads(protocol.read_text(encoding="utf-8"))["code"]["commit"]
    check_out(commit)
    command = [sys.executable, "-m", "advdiff.cli", "trial", "run", "--protocol", str(protocol)]
    command += ["--results", str(ROOT / "results" / "trial"), *sys.argv[1:]]
    environment = {**os.environ, "PYTHONPATH": str(CODE)}
    beside = ROOT.parent / "shared" / "data"
    if "ADVDIFF_DATA" not in environment and beside.is_dir():
        environment["ADVDIFF_DATA"] = str(beside)
    print(
        f"trial: code {commit[:12]}, records in results/trial; Ctrl-C or kill at any time, and start again", flush=True
    )
    os.chdir(CODE)
    os.execvpe(sys.executable, command, environment)  # in the place of this process, so that signals reach it


if __name__ == "__main__":
    main()
