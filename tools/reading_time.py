"""Say at the head of a chapter how long it takes to read.

    python -m tools.reading_time            count the words and write the minutes
    python -m tools.reading_time --check    change nothing, fail where a number is not that of the count

Counted is the prose of the markdown cells at 200 words a minute, without code and solutions; a formula counts as three
words. A chapter has the sentence "About 15 minutes to read." in its box *What this chapter needs*.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from advdiff.atomic import replacing

WORDS_A_MINUTE, STEP = 200, 5
SENTENCE = re.compile(r"About (\d+) minutes to read\.")
SOLUTION = re.compile(r"^````\{solution\}.*?^````", re.DOTALL | re.MULTILINE)
FORMULAS = re.compile(r"^```\{math\}.*?^```|\$\$.*?\$\$|\$[^$\n]+\$", re.DOTALL | re.MULTILINE)
CODE = re.compile(r"^```(?:sh|python)\n.*?^```", re.DOTALL | re.MULTILINE)


def minutes(notebook: dict) -> int:
    """To read its prose, rounded to five.

    >>> minutes({"cells": [{"cell_type": "markdown", "source": ["word " * 1900, "$x$ " * 30]}]})
    10
    """
    prose = "\n\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    for pattern, words in ((SOLUTION, ""), (CODE, ""), (FORMULAS, " a formula here ")):
        prose = pattern.sub(words, prose)
    return max(STEP, STEP * round(len(re.findall(r"\w+", prose)) / WORDS_A_MINUTE / STEP))


def main(arguments: Sequence[str] | None = None, folder: Path = Path("notebooks")) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail where something is to be done")
    check = parser.parse_args(arguments).check
    for path in sorted(folder.glob("[0-9]*.ipynb")):
        text = path.read_text(encoding="utf-8")
        found = SENTENCE.search(text)
        needed = minutes(json.loads(text))
        if found is None or int(found[1]) == needed:
            continue
        if check:
            sys.exit(f"{path}: {found[1]} minutes are said and {needed} counted; run: python -m tools.reading_time")
        with replacing(path) as file:
            file.write(SENTENCE.sub(f"About {needed} minutes to read.", text, count=1).encode())
        print(f"{path}: {needed} minutes")


if __name__ == "__main__":
    main()
