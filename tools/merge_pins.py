"""Merge `pip freeze` outputs of several Python versions into one constraints file.

    python tools/merge_pins.py 3.10=py310.txt 3.11=py311.txt > constraints.txt

Give the versions in ascending order. A pin that is the same everywhere is written once; where versions
differ, each line carries the range of Python versions it is for. The last version given stands for all
later ones.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HEADER = """\
# Exact versions of everything that the extras of pyproject.toml install (Python 3.10 to 3.13).
#
# To regenerate: for Python 3.10 and for Python 3.11, in a new virtual environment,
#     pip install -e ".[book,test,data,cluster,ode,npm]" && pip freeze --exclude-editable > py310.txt  (py311.txt)
# and then
#     python tools/merge_pins.py 3.10=py310.txt 3.11=py311.txt > constraints.txt
"""


def read_freeze(path: Path) -> dict[str, str]:
    """Pins of a freeze file by normalised name, without local version tags such as +cpu."""
    pins = {}
    for line in path.read_text().splitlines():
        match = re.match(r"([A-Za-z0-9._-]+)==([^+\s;]+)", line)
        if match:
            pins[re.sub(r"[-_.]+", "-", match[1]).lower()] = match[2]
    return pins


def merge(freezes: list[tuple[str, dict[str, str]]]) -> list[str]:
    """Lines of the constraints file for freezes in ascending order of Python version."""
    lines = []
    for name in sorted(set().union(*(pins for _, pins in freezes))):
        versions = [pins.get(name) for _, pins in freezes]
        start = 0
        for stop in range(1, len(freezes) + 1):
            if stop < len(freezes) and versions[stop] == versions[start]:
                continue
            bounds = []
            if start > 0:
                bounds.append(f'python_version >= "{freezes[start][0]}"')
            if stop < len(freezes):
                bounds.append(f'python_version < "{freezes[stop][0]}"')
            if versions[start] is not None:
                marker = f" ; {' and '.join(bounds)}" if bounds else ""
                lines.append(f"{name}=={versions[start]}{marker}")
            start = stop
    return lines


def main(arguments: list[str]) -> None:
    if not arguments or any("=" not in argument for argument in arguments):
        sys.exit(__doc__)
    freezes = [(version, read_freeze(Path(path))) for version, path in (a.split("=", 1) for a in arguments)]
    print(HEADER + "\n".join(merge(freezes)))


if __name__ == "__main__":
    main(sys.argv[1:])
