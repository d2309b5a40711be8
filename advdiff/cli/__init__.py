"""The command ``advdiff``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from advdiff.cli import bench, data, distributed, experiments, trial


def parser() -> argparse.ArgumentParser:
    main_parser = argparse.ArgumentParser(prog="advdiff", description="Advective diffusion on graphs.")
    commands = main_parser.add_subparsers(dest="command", required=True, metavar="command")
    for group in (experiments, trial, data, bench, distributed):
        group.add(commands)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done, 1 a run failed, 2 the command or a file was wrong, 130 interrupted, 141 nobody reads on."""
    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print("interrupted: what was finished is recorded, and the same command goes on from there", file=sys.stderr)
        return 130
    except ValueError as error:
        print(f"advdiff: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `advdiff list | head`: what is still in the buffer goes nowhere, without a complaint
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"advdiff: {where}{error.strerror or error}; name a file or folder that can be used.", file=sys.stderr)
        return 2
    except RuntimeError as error:
        from advdiff.experiments.workers import SweepError  # needs torch, which `advdiff --help` does not

        if not isinstance(error, SweepError):
            raise
        print(f"advdiff: {error}", file=sys.stderr)
        return 1
    return code
