"""A small SIDER, whose names of tasks have commas in them as upstream's have."""

from __future__ import annotations

from pathlib import Path

from tests.miniatures.mark import mark
from tests.miniatures.molecules import write_molecules


def write(folder: Path, seed: int = 0) -> None:
    mark(folder)
    tasks = [f"Disorders, of kind {number}" for number in range(27)]
    write_molecules(folder / "ogb_mol" / "ogbg_molsider", tasks, ids=False, seed=seed)
