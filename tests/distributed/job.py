"""``python -m tests.distributed.job PARTS PORT DIR OPTION…``: the command on several ranks, without torchrun."""

from __future__ import annotations

import sys

import advdiff.distributed.training  # noqa: F401  (imported before the process divides)
from advdiff.distributed.__main__ import main
from tests.distributed import processes

if __name__ == "__main__":
    sys.exit(processes.divide(int(sys.argv[1]), sys.argv[2], lambda: main(sys.argv[3:])))
