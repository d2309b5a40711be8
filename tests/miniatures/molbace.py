"""A small BACE."""

from __future__ import annotations

from pathlib import Path

from tests.miniatures.mark import mark
from tests.miniatures.molecules import write_molecules


def write(folder: Path, seed: int = 0) -> None:
    mark(folder)
    write_molecules(folder / "ogb_mol" / "ogbg_molbace", ["Class"], ids=True, seed=seed)
