"""Small molecules that can be written down without any chemistry package: a ring of carbon with a tail, or a chain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NUMBER = {"C": 6, "N": 7, "O": 8, "S": 16}
VALENCE = {"C": 4, "N": 3, "O": 2, "S": 2}


@dataclass(frozen=True)
class Molecule:
    """Atoms in the order of the SMILES; bonds are (u, v, kind) with kind 1, 1.5 (aromatic) or 2."""

    smiles: str
    elements: list[str]
    bonds: list[tuple[int, int, float]]
    ring: int

    def degree(self, atom: int) -> int:
        return sum(atom in bond[:2] for bond in self.bonds)

    def hydrogens(self, atom: int) -> int:
        return VALENCE[self.elements[atom]] - int(sum(bond[2] for bond in self.bonds if atom in bond[:2]))


def draw(dice: np.random.Generator, ring: int, tail: int) -> Molecule:
    """``ring`` is 0 (none), 5 (single bonds) or 6 (aromatic); the last atom of the tail may be a double-bonded O."""
    symbol, kind = ("c", 1.5) if ring == 6 else ("C", 1.0)
    smiles = f"{symbol}1{symbol * (ring - 2)}{symbol}1" if ring else ""
    elements = ["C"] * ring
    bonds = [(u, u + 1, kind) for u in range(ring - 1)] + ([(0, ring - 1, kind)] if ring else [])
    for number in range(tail):
        end = number == tail - 1
        element = str(dice.choice(["C", "C", "C", "N", "O", "S"]))
        double = end and len(elements) > ring and elements[-1] == "C" and bool(dice.integers(2))
        if double:
            element = "O"
        if elements:
            bonds.append((len(elements) - 1, len(elements), 2.0 if double else 1.0))
        elements.append(element)
        smiles += "=O" if double else element
    return Molecule(smiles, elements, bonds, ring)
