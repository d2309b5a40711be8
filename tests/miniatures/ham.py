"""A small HAM: annotations of molecules, some of them by two experts who disagree."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np

from tests.miniatures.chemistry import Molecule, draw
from tests.miniatures.mark import mark

MOLECULES = 24
EXPERTS = ("AW", "ZY")


def annotations(seed: int = 0) -> dict[str, dict[str, object]]:
    """Name of the file → its content."""
    dice = np.random.default_rng(seed)
    found: dict[str, dict[str, object]] = {}
    for number in range(MOLECULES):
        molecule = draw(dice, int(dice.choice([0, 5, 6])), int(dice.integers(3, 9)))
        for expert in EXPERTS[: 1 + number % 2]:
            entry = _annotation(molecule, dice)
            groups = len(entry["cgnodes"])  # type: ignore[arg-type]
            found[f"{number:06d}_{expert}cgmap.mini.{groups}.json"] = entry
    return found


def _annotation(molecule: Molecule, dice: np.random.Generator) -> dict[str, object]:
    """The ring is one group; the tail is cut at least once."""
    atoms = len(molecule.elements)
    starts = {0} | {u for u in range(max(molecule.ring, 1), atoms) if dice.random() < 0.4} | {atoms - 2}
    group = [sum(start <= u for start in starts) - 1 for u in range(atoms)]
    nodes = [{"cg": group[u], "id": u, "element": molecule.elements[u]} for u in range(atoms)]
    return {
        "smiles": molecule.smiles,
        "cgnodes": [[u for u in range(atoms) if group[u] == g] for g in range(group[-1] + 1)],
        "edges": [{"source": u, "bondtype": kind, "target": v} for u, v, kind in molecule.bonds],
        "nodes": [nodes[u] for u in dice.permutation(atoms)],
        "version": "mini",
    }


def write(folder: Path, seed: int = 0, form: str = "tar") -> None:
    """``form`` is ``"tar"``, ``"folder"`` or ``"zip"``, the last as GitHub makes it."""
    mark(folder)
    folder = folder / "ham"
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: json.dumps(entry).encode() for name, entry in annotations(seed).items()}
    if form == "folder":
        (folder / "data").mkdir()
        for name, content in files.items():
            (folder / "data" / name).write_bytes(content)
    elif form == "zip":
        with zipfile.ZipFile(folder / "master.zip", "w") as zipped:
            zipped.writestr("HAM_dataset-master/README.md", "not data")
            for name, content in files.items():
                zipped.writestr(f"HAM_dataset-master/data/{name}", content)
    else:
        with tarfile.open(folder / "HAM_data.tar.gz", "w:gz") as archive:
            for name, content in reversed(files.items()):
                member = tarfile.TarInfo(f"data/{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
