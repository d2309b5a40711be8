"""Files in the layout of OGB's molecules, with single atoms, unknown labels and a header where upstream has one."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np

from tests.miniatures.chemistry import NUMBER, Molecule, draw

GRAPHS = 40
#: Parts lie among each other, as upstream's do.
SPLIT = {"test": [2, 11, 23, 38], "valid": [0, 14, 29, 35]}
SPLIT["train"] = sorted({*range(GRAPHS)} - {*SPLIT["test"], *SPLIT["valid"]})
KINDS = {1.0: 0, 2.0: 1, 1.5: 3}


def _atom(molecule: Molecule, atom: int) -> list[int]:
    ring = atom < molecule.ring
    aromatic = ring and molecule.ring == 6
    sp2 = aromatic or any(atom in bond[:2] and bond[2] == 2 for bond in molecule.bonds)
    number = NUMBER[molecule.elements[atom]] - 1
    return [
        number, 0, molecule.degree(atom), 5, molecule.hydrogens(atom), 0, 1 if sp2 else 2, int(aromatic), int(ring)
    ]  # fmt: skip


def write_molecules(folder: Path, tasks: list[str], ids: bool, seed: int) -> None:
    """``folder`` is that of one data set; the label of a task follows from the number of the molecule."""
    dice = np.random.default_rng(seed)
    molecules = [draw(dice, int(dice.choice([0, 5, 6])), int(dice.integers(1, 7))) for _ in range(GRAPHS)]
    molecules[7] = draw(dice, 0, 1)  # one atom, no bond
    labels = [[str((number + task) % 2) for task in range(len(tasks))] for number in range(GRAPHS)]
    labels[20][0] = ""  # unknown; with one task, an empty line

    table = io.StringIO()
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow([*tasks, "smiles", *(["mol_id"] if ids else [])])
    for number, molecule in enumerate(molecules):
        rows.writerow([*labels[number], molecule.smiles, *([f"mini_{number}"] if ids else [])])
    files: dict[str, list[list[object]]] = {
        "raw/num-node-list": [[len(each.elements)] for each in molecules],
        "raw/num-edge-list": [[len(each.bonds)] for each in molecules],
        "raw/node-feat": [list(_atom(each, atom)) for each in molecules for atom in range(len(each.elements))],
        "raw/edge": [[u, v] for each in molecules for u, v, _ in each.bonds],
        "raw/edge-feat": [[KINDS[kind], 0, int(kind == 1.5)] for each in molecules for *_, kind in each.bonds],
        "raw/graph-label": [list(row) for row in labels],
        **{f"split/scaffold/{part}": [[number] for number in numbers] for part, numbers in SPLIT.items()},
    }
    texts = {name: "".join(",".join(map(str, row)) + "\n" for row in lines) for name, lines in files.items()}
    for name, text in {"mapping/mol": table.getvalue(), **texts}.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode(), mtime=0))
