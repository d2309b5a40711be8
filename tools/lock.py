"""Write requirements.lock: every package of constraints.txt with the hashes of its files, for ``make install``.

    python -m tools.lock        (needs uv: pip install uv)

torch is not in it, and neither are the libraries of its CUDA build: the hash of torch depends on where it comes from
(PyPI's CUDA build, the CPU build of TORCH_INDEX, a wheel of this machine), so it is pinned by its version alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
#: What is left out, by the beginning of its name.
WITHOUT = re.compile(r"^(torch|triton|nvidia-[a-z0-9-]+|cuda-[a-z0-9-]+)==")
#: npm is installed only where the system has none.
EXTRAS = ("book", "test", "data", "cluster", "metis", "ode")
#: What builds the package itself; make installs it without a network of its own.
BUILD = "setuptools>=77.0.3\n"
HEAD = """\
# Everything that `make install` installs beside torch, with the hashes of the files. Written by: python -m tools.lock
"""


def command(constraints: str) -> list[str]:
    left_out = sorted({match[1] for line in constraints.splitlines() if (match := WITHOUT.match(line))})
    options = ["--universal", "--python-version", "3.10", "--no-annotate", "--no-header"]
    options += [f"--extra={extra}" for extra in EXTRAS]
    return [
        "uv", "pip", "compile", *options, "--generate-hashes", "-c", "constraints.txt", "pyproject.toml", "-",
        "--quiet", *(word for name in left_out for word in ("--no-emit-package", name)),
    ]  # fmt: skip


def main() -> None:
    if shutil.which("uv") is None:
        sys.exit("uv is not there; install it: pip install uv")
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    made = subprocess.run(command(constraints), cwd=ROOT, input=BUILD, capture_output=True, text=True)
    if made.returncode:
        sys.exit(made.stderr)
    LOCK.write_text(HEAD + made.stdout, encoding="utf-8")


if __name__ == "__main__":
    main()
