"""Follow the links that lead outside, and name those that lead nowhere.

    python -m tools.check_links           all of them; fails if one is dead
    python -m tools.check_links --list    follow none

A server that refuses programs (401, 403, 405, 429) is there.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
URL = re.compile(r"https?://[^\s<>\"'`|{}\\^\]]+")
THERE = {401, 403, 405, 429}
TRIES, SECONDS = 3, 30


def links_in(text: str) -> set[str]:
    """The addresses in a text; a closing bracket belongs to one if it was opened in it."""
    found = set()
    for match in URL.findall(text):
        link = match.rstrip(".,;:!?*")
        while link.endswith(")") and link.count(")") > link.count("("):
            link = link[:-1].rstrip(".,;:!?*")
        found.add(link)
    return found


def text_of(path: Path) -> str:
    if path.suffix != ".ipynb":
        return path.read_text(encoding="utf-8")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def links(root: Path = ROOT) -> dict[str, list[str]]:
    """Address → the files that name it."""
    patterns = ("*.md", "*.cff", "book/**/*.md", "book/*.bib", "notebooks/*.ipynb")
    found: dict[str, list[str]] = {}
    for path in sorted({path for pattern in patterns for path in root.glob(pattern)}):
        for link in links_in(text_of(path)):
            found.setdefault(link, []).append(str(path.relative_to(root)))
    return found


def trouble(link: str, seconds: float = SECONDS) -> str:
    """Why a link leads nowhere; empty if it does not."""
    why = ""
    request = urllib.request.Request(link, headers={"User-Agent": "Mozilla/5.0 (link check)"})
    for _ in range(TRIES):
        try:
            with urllib.request.urlopen(request, timeout=seconds):
                return ""
        except urllib.error.HTTPError as error:
            if error.code in THERE:
                return ""
            why = f"the server answered {error.code}"
        except (OSError, ValueError) as error:
            why = str(error)
    return why


def dead(found: Iterable[str], seconds: float = SECONDS) -> dict[str, str]:
    """The links that lead nowhere, and why."""
    given = sorted(found)
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda link: trouble(link, seconds), given)
        return {link: why for link, why in zip(given, answers, strict=True) if why}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--list", action="store_true", help="follow none")
    found = links()
    if parser.parse_args().list:
        print("\n".join(sorted(found)))
        return
    lost = dead(found)
    for link, why in lost.items():
        print(f"{link} ({why}), in {', '.join(found[link])}")
    print(f"{len(found)} links, {len(lost)} dead")
    sys.exit(bool(lost))


if __name__ == "__main__":
    main()
