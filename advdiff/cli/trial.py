"""``advdiff trial run`` and ``advdiff trial status``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any


def add(commands: Any) -> None:
    trial = commands.add_parser("trial", help="every experiment of the paper under one protocol, written beforehand")
    actions = trial.add_subparsers(dest="action", required=True, metavar="action")
    run = actions.add_parser("run", help="make the runs that are not recorded yet; safe to kill, goes on where it was")
    run.add_argument("--jobs", type=int, default=2, metavar="N", help="local processes (default 2)")
    run.add_argument("--dask", metavar="ADDRESS", help="use a Dask cluster: tcp://scheduler:8786")
    run.add_argument("--device", default="auto", metavar="NAME", help="auto, cpu, cuda or mps (default auto)")
    run.add_argument("--hours", type=float, metavar="H", help="begin no further run after so many hours")
    run.set_defaults(run=_run)
    status = actions.add_parser("status", help="what is done, what is not converged, and how many CPU-hours remain")
    status.set_defaults(run=_status)
    for parser in (run, status):
        parser.add_argument("--protocol", type=Path, default=Path("results/protocol.toml"), help="the protocol's file")
        parser.add_argument("--results", type=Path, default=Path("results/trial"), help="folder of the records")


def _run(options: argparse.Namespace) -> int:
    from advdiff.experiments.protocol import read_protocol
    from advdiff.experiments.trial import run_trial

    if options.jobs < 1:
        raise ValueError(f"--jobs is {options.jobs}; it must be at least 1.")
    failed = run_trial(
        read_protocol(options.protocol),
        options.results,
        processes=options.jobs,
        dask=options.dask,
        device=options.device,
        hours=options.hours,
        say=lambda line: print(line, flush=True),
    )
    return 1 if failed else 0


def _status(options: argparse.Namespace) -> int:
    from advdiff.experiments.progress import progress
    from advdiff.experiments.protocol import read_protocol
    from advdiff.experiments.trial import read_trial

    protocol = read_protocol(options.protocol)
    states = progress(protocol, read_trial(protocol, options.results))
    print(f"protocol {protocol.hash}, code {protocol.commit[:12]}, {len(protocol.amendments)} amendments")
    kinds = ("search", "final", "curves", "published")
    print(
        f"{'study':22s}"
        + "".join(f"{kind:>13s}" for kind in kinds)
        + f"{'not converged':>15s}{'CPU-h':>8s}{'left':>8s}"
    )
    for state in states:
        counts = "".join(f"{f'{made}/{of}':>13s}" for made, of in (getattr(state, kind) for kind in kinds))
        left = "?" if state.left is None else f"{state.left:.1f}"
        print(f"{state.study:22s}{counts}{state.not_converged:15d}{state.spent:8.2f}{left:>8s}")
    known = [state.left for state in states if state.left is not None]
    spent = sum(state.spent for state in states)
    unknown = len(states) - len(known)
    more = f", and {unknown} studies of which nothing has run yet" if unknown else ""
    print(f"{spent:.1f} CPU-hours spent, about {sum(known):.1f} left{more}")
    return 0
