"""The address of the repository, and everything that is made from it.

    python -m tools.address            bring what is made from it up to date
    python -m tools.address --check    fail where something is not

It stands in one place, ``[tool.advdiff] repository`` of pyproject.toml, and is empty until its owner sets it: a name
that nobody here owns would let whoever registers it run code on the machines of readers. While it is empty there are no
launch buttons, no "edit this page", no address to cite, and the first cell of a notebook installs from the reader's own
copy. In the pages of the book, ``<!-- with the address: text -->`` is shown as its text, in which ``{repository}`` and
``{pages}`` stand for the addresses, once there is one (this file is the extension of Sphinx that does so).
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
ONLY_WITH = re.compile(r"[ \n]?<!-- with the address:\s*(.*?)\s*-->", re.DOTALL)


def repository(root: Path = ROOT) -> str:
    """``https://github.com/OWNER/NAME``, or nothing."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    return str(project["tool"]["advdiff"]["repository"]).rstrip("/")


def pages(address: str) -> str:
    """Where GitHub puts the pages of a repository."""
    owner, _, name = urlsplit(address).path.strip("/").partition("/")
    return f"https://{owner}.github.io/{name}" if address else ""


def citation(text: str, address: str) -> str:
    """CITATION.cff with the lines of the addresses, or without."""
    lines = [line for line in text.splitlines() if not line.startswith(("repository-code:", "url:"))]
    place = next(number for number, line in enumerate(lines) if line.startswith("license:")) + 1
    if address:
        lines[place:place] = [f"repository-code: {address}", f"url: {pages(address)}"]
    return "\n".join(lines) + "\n"


def in_pages(text: str, address: str) -> str:
    """A page, with what is shown only where there is an address."""

    def shown(match: re.Match[str]) -> str:
        known = match[1].replace("{repository}", address).replace("{pages}", pages(address))
        return match[0][: match[0].index("<")] + known if address else ""

    return ONLY_WITH.sub(shown, text)


def theme_options(address: str) -> dict[str, Any]:
    """What the theme of the book needs for its buttons."""
    if not address:
        return {}
    buttons = {
        "notebook_interface": "jupyterlab",
        "binderhub_url": "https://mybinder.org",
        "colab_url": "https://colab.research.google.com",
    }
    return {
        "repository_url": address,
        "repository_branch": "main",
        "path_to_docs": "",
        "launch_buttons": buttons,
        "use_repository_button": True,
        "use_issues_button": True,
        "use_edit_page_button": True,
    }


def setup(app: Any) -> dict[str, bool]:
    """As an extension of Sphinx."""
    address = repository()

    def give_buttons(_: Any, config: Any) -> None:
        for name in ("repository_url", "repository_branch", "path_to_docs", "launch_buttons"):
            config.html_theme_options.pop(name, None)
        config.html_theme_options |= theme_options(address)

    def read_page(_: Any, __: str, source: list[str]) -> None:
        source[0] = in_pages(source[0], address)

    app.connect("config-inited", give_buttons, priority=1)
    app.connect("source-read", read_page, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def main() -> None:
    from tools import start_cell

    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="change nothing, fail where something is to be done")
    arguments = parser.parse_args()
    path = ROOT / "CITATION.cff"
    text = path.read_text(encoding="utf-8")
    wanted = citation(text, repository())
    if text != wanted:
        if arguments.check:
            sys.exit("CITATION.cff has another address; run: python -m tools.address")
        path.write_text(wanted, encoding="utf-8")
    start_cell.update(check=arguments.check)


if __name__ == "__main__":
    main()
