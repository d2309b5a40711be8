"""The command ``advdiff``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from advdiff.commands import bench, data, experiments


def parser() -> argparse.ArgumentParser:
    main_parser = argparse.ArgumentParser(prog="advdiff", description="Advective diffusion on graphs.")
    commands = main_parser.add_subparsers(dest="command", required=True, metavar="command")
    for group in (experiments, data, bench):
        group.add(commands)
    return main_parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done, 1 a run failed, 2 the command was wrong, 130 interrupted."""
    from advdiff.experiments.sweep import SweepError

    options = parser().parse_args(arguments)
    try:
        code: int = options.run(options)
    except KeyboardInterrupt:
        print("interrupted: what was finished is recorded, and the same command goes on from there", file=sys.stderr)
        return 130
    except SweepError as error:
        print(f"advdiff: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"advdiff: {error}", file=sys.stderr)
        return 2
    return code


if __name__ == "__main__":
    sys.exit(main())
