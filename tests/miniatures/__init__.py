"""Tiny valid files in the format of each upstream, with its pitfalls, so that everything runs where the data are not.

They are written by tests only; the library never puts them in the place of real data.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

NAMES = ("twitch", "arxiv", "dppin", "ham", "molbace", "molsider")


def write(name: str, folder: Path, seed: int = 0) -> None:
    """The files of one data set, where :func:`advdiff.datasets.files.find` looks for them below the folder.

    The folder is marked as one of miniatures.
    """
    import_module(f"tests.miniatures.{name}").write(folder, seed=seed)


def write_all(folder: Path, seed: int = 0) -> None:
    """The files of every data set."""
    for name in NAMES:
        write(name, folder, seed)
