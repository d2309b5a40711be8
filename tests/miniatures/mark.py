"""The mark by which a folder says that its files are made up; without it, loaders ask for upstream's checksums."""

from __future__ import annotations

from pathlib import Path

from advdiff.datasets.files import MINIATURE


def mark(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / MINIATURE).write_text("Small made-up files in upstream's formats, written by the tests.\n")
