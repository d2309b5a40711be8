"""``make trial``: the runs of results/protocol.toml, by the code that the protocol names, in a checkout of its own.

    python tools/run_trial.py                       # two processes; further arguments are those of `advdiff trial run`
    python tools/run_trial.py --dask tcp://host:8786

The checkout lies in _build/trial, so that what is done in the working tree meanwhile cannot change the trial half-way.
Studies that take an hour come before those that take days, and each is finished before the next one begins, so that
what can be decided early is: the order changes no run, since each is planned by its own seed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT / "_build" / "trial"
#: Names of studies that come first begin with one of these.
FIRST = ("synthetic-", "molbace", "molsider", "twitch")
#: ``advdiff trial run`` of that checkout, with the studies in this order.
IN_ORDER = """
import dataclasses, sys
from advdiff.cli import main
from advdiff.experiments import protocol, trial

first, read = sys.argv.pop(1).split(","), protocol.read_protocol

def in_order(path):
    found = read(path)
    rank = lambda study: next((i for i, name in enumerate(first) if study.name.startswith(name)), len(first))
    return dataclasses.replace(found, studies=tuple(sorted(found.studies, key=rank)))

def study_by_study(protocol, done):  # released settings with the rest of their study, so that it is complete
    for study in protocol.studies:
        for model in study.models:
            yield from trial.stages(protocol, study, model, done)

protocol.read_protocol, trial.all_stages = in_order, study_by_study
sys.exit(main(sys.argv[1:]))
"""


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
    command = [sys.executable, "-c", IN_ORDER, ",".join(FIRST), "trial", "run", "--protocol", str(protocol)]
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
