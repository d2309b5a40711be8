"""Molecules drawn by RDKit: groups of atoms in colour, or numbers of atoms and bonds as shades.

Atoms of a group and the bonds inside it are highlighted. A bond that is cut stays a bare line, so that groups can be
told apart without their colours. RDKit is imported when something is drawn.
"""

from __future__ import annotations

import io
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.colors import to_rgb
from PIL import Image
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Red, green and blue, each between 0 and 1.
RGB = tuple[float, float, float]

#: Paul Tol's light colours, which colour-blind readers can tell apart.
COLOURS = ("#77AADD", "#EE8866", "#EEDD88", "#FFAABB", "#44BB99", "#BBCC33", "#99DDFF", "#AAAA00", "#DDDDDD")


def groups(bonds: Tensor | np.ndarray, cut: Tensor | np.ndarray, num_atoms: int) -> np.ndarray:
    """The group of every atom, [N]: the pieces into which the molecule falls when the cut bonds are removed.

    Groups are numbered by their first atom. A single cut bond of a ring separates nothing.

    Args:
        bonds: [2, M], each bond once.
        cut: [M], true where a bond is cut.

    Example:
        >>> import numpy as np
        >>> chain = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
        >>> groups(chain, np.array([False, True, False, True]), 5)
        array([0, 0, 1, 1, 2])
    """
    ends, kept = np.asarray(bonds), ~np.asarray(cut, dtype=bool).reshape(-1)
    if ends.shape != (2, kept.size):
        raise ValueError(f"bonds have the shape {ends.shape} and cut has {kept.size} values; [2, M] and M are needed.")
    graph = coo_array((np.ones(kept.sum()), tuple(ends[:, kept])), shape=(num_atoms, num_atoms))
    _, labels = connected_components(graph, directed=False)
    _, first, place = np.unique(labels, return_index=True, return_inverse=True)
    rank: np.ndarray = np.argsort(np.argsort(first))
    return rank[place]


def match(group: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """``group`` renumbered so that as many atoms as possible have the number that they have in ``reference``.

    Groups without a partner get new numbers, so that what is equal in two drawings has one colour in both.

    Example:
        >>> match(np.array([0, 0, 1, 2, 2]), np.array([4, 4, 4, 7, 7]))
        array([4, 4, 8, 7, 7])
    """
    own, theirs = np.unique(group), np.unique(reference)
    overlap = ((group == own[:, None])[:, None, :] & (reference == theirs[:, None])[None, :, :]).sum(2)
    rows, columns = linear_sum_assignment(overlap, maximize=True)
    names = {own[r]: theirs[c] for r, c in zip(rows, columns, strict=True) if overlap[r, c]}
    fresh = int(theirs.max(initial=-1)) + 1
    for number in own:
        if number not in names:
            names[number], fresh = fresh, fresh + 1
    return np.array([names[number] for number in group])


def draw_groups(
    axes: Axes, smiles: str, bonds: Tensor | np.ndarray, group: np.ndarray, *, size: tuple[int, int] = (840, 660)
) -> None:
    """Draw a molecule, each group of atoms in a colour.

    Args:
        smiles: of the molecule; its heavy atoms are in the order of ``group``.
        bonds: [2, M]. One that RDKit does not find in ``smiles`` (a salt's) is not drawn.
        group: [N] numbers; equal numbers, equal colours, which repeat after nine.
        size: of the drawing, width and height in pixels.
    """
    colours = [to_rgb(COLOURS[g % len(COLOURS)]) for g in group]
    inside = {(u, v): colours[u] for u, v in np.asarray(bonds).T.tolist() if group[u] == group[v]}
    _show(axes, render(smiles, colours, inside, size))


def draw_shades(
    axes: Axes,
    smiles: str,
    bonds: Tensor | np.ndarray,
    atoms: Tensor | np.ndarray,
    shares: Tensor | np.ndarray,
    *,
    mark: int | None = None,
    size: tuple[int, int] = (840, 660),
) -> None:
    """Draw a molecule, its atoms and bonds the darker the larger their numbers: attention, probability of a cut.

    Args:
        smiles: of the molecule; its heavy atoms are in the order of ``atoms``.
        bonds: [2, M], as for :func:`draw_groups`.
        atoms: [N] numbers between 0 (white) and 1.
        shares: [M] numbers between 0 (white) and 1, of the bonds.
        mark: an atom in another colour, whatever its number.
        size: of the drawing, width and height in pixels.
    """
    colours = [_shade(value) for value in atoms]
    if mark is not None:
        colours[mark] = to_rgb(COLOURS[1])
    ends = np.asarray(bonds).T.tolist()
    if len(ends) != len(shares):
        raise ValueError(f"there are {len(ends)} bonds and {len(shares)} shares; each bond needs one.")
    _show(axes, render(smiles, colours, {(u, v): _shade(p) for (u, v), p in zip(ends, shares, strict=True)}, size))


def _shade(value: Tensor | float) -> RGB:
    """White for 0, a blue on which letters can still be read for 1."""
    red, green, blue, _ = colormaps["Blues"](0.8 * float(value))
    return (red, green, blue) if value > 0 else (1.0, 1.0, 1.0)


def _show(axes: Axes, picture: np.ndarray) -> None:
    axes.imshow(picture, interpolation="lanczos")
    axes.axis("off")


def render(smiles: str, atoms: list[RGB], bonds: dict[tuple[int, int], RGB], size: tuple[int, int]) -> np.ndarray:
    """The drawing as an array [height, width, 3] of bytes, with a colour for each atom and for some of the bonds."""
    chemistry: Any = import_module("rdkit.Chem")
    drawing: Any = import_module("rdkit.Chem.Draw.rdMolDraw2D")
    molecule = chemistry.MolFromSmiles(smiles)
    if molecule is None or molecule.GetNumAtoms() != len(atoms):
        raise ValueError(f"{smiles!r} is not a molecule of {len(atoms)} heavy atoms to RDKit.")
    colours = dict(enumerate(atoms))
    lines = {}
    for (u, v), colour in bonds.items():
        bond = molecule.GetBondBetweenAtoms(u, v)
        if bond is not None:
            lines[bond.GetIdx()] = colour
    canvas = drawing.MolDraw2DCairo(*size)
    options = canvas.drawOptions()
    options.useBWAtomPalette()
    options.fillHighlights, options.highlightRadius, options.highlightBondWidthMultiplier = True, 0.38, 16
    # In pixels: what a drawing shows does not depend on how fine it is.
    options.padding, options.fixedBondLength, options.bondLineWidth = 0.04, size[0] / 7, size[0] / 210
    drawing.PrepareAndDrawMolecule(
        canvas, molecule, highlightAtoms=list(colours), highlightAtomColors=colours,
        highlightBonds=list(lines), highlightBondColors=lines,
    )  # fmt: skip
    canvas.FinishDrawing()
    return np.asarray(Image.open(io.BytesIO(canvas.GetDrawingText())).convert("RGB"))
