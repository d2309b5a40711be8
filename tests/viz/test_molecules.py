"""Groups of atoms and their drawings."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from advdiff.viz.molecules import COLOURS, draw_groups, draw_shades, groups, match, render

RING = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0]])


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ([0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]),
        ([1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]),  # one cut opens a ring and separates nothing
        ([1, 0, 0, 1, 0, 0], [0, 1, 1, 1, 0, 0]),
        ([1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5]),
    ],
)
def test_groups_are_the_pieces_without_the_cut_bonds(cut, expected):
    assert groups(RING, torch.tensor(cut).bool(), 6).tolist() == expected


def test_groups_without_bonds_and_with_wrong_sizes():
    assert groups(np.zeros((2, 0), dtype=int), np.zeros(0, dtype=bool), 3).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"\[2, M\]"):
        groups(RING, torch.zeros(5).bool(), 6)


def test_match_keeps_the_partition_and_agrees_where_it_can():
    reference = np.array([0, 0, 0, 1, 1, 2])
    same = np.array([2, 2, 2, 0, 0, 1])
    assert match(same, reference).tolist() == reference.tolist()
    finer = match(np.array([0, 0, 1, 2, 3, 4]), reference)
    assert len(set(finer.tolist())) == 5
    assert finer[:2].tolist() == [0, 0]
    assert match(np.zeros(6, dtype=int), reference).tolist() == [0] * 6


def test_a_drawing_shows_the_colours_of_its_groups():
    pytest.importorskip("rdkit")
    bonds = np.array([[0, 1, 2], [1, 2, 3]])
    figure, axes = plt.subplots()
    draw_groups(axes, "CCCO", bonds, np.array([0, 0, 1, 1 + len(COLOURS)]), size=(200, 120))
    picture = axes.images[0].get_array()
    plt.close(figure)
    assert picture.shape == (120, 200, 3)
    seen = {tuple(pixel) for pixel in picture.reshape(-1, 3).tolist()}
    for place, colour in enumerate(COLOURS[:-1]):  # the last is grey, as are the edges of black lines
        wanted = tuple(int(colour[k : k + 2], 16) for k in (1, 3, 5))
        near = any(max(abs(a - b) for a, b in zip(wanted, pixel, strict=True)) <= 2 for pixel in seen)
        assert near == (place in (0, 1))


def test_a_drawing_of_a_salt_leaves_out_the_bond_that_rdkit_does_not_have():
    pytest.importorskip("rdkit")
    figure, axes = plt.subplots()
    draw_groups(axes, "CC(=O)[O-].[K+]", np.array([[0, 1, 1, 3], [1, 2, 3, 4]]), np.zeros(5, dtype=int))
    assert len(axes.images) == 1
    plt.close(figure)


def test_what_is_no_such_molecule_is_refused():
    pytest.importorskip("rdkit")
    with pytest.raises(ValueError, match="heavy atoms"):
        render("CCO", [(1.0, 1.0, 1.0)] * 5, {}, (100, 100))


def test_shades_darken_with_the_number_and_the_mark_has_its_own_colour():
    pytest.importorskip("rdkit")

    def drawn(atoms, shares, mark=None):
        figure, axes = plt.subplots()
        draw_shades(axes, "CCC", np.array([[0, 1], [1, 2]]), np.array(atoms), torch.tensor(shares), mark=mark)
        picture = np.asarray(axes.images[0].get_array(), float)
        plt.close(figure)
        return picture

    bare, atoms, bonds = (
        drawn(a, b).mean() for a, b in (([0, 0, 0], [0, 0]), ([0, 1, 0], [0, 0]), ([0, 0, 0], [1, 0]))
    )
    assert bare > atoms and bare > bonds and drawn([0.0, 0.5, 0.0], [0.0, 0.0]).mean() > atoms
    blue, red = (
        picture[..., 2].mean() - picture[..., 0].mean()
        for picture in (drawn([0, 1, 0], [0, 0]), drawn([0, 1, 0], [0, 0], 1))
    )
    assert blue > 0 > red
    with pytest.raises(ValueError, match="2 bonds and 1 shares"):
        drawn([0, 0, 0], [0.5])
