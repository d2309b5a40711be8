"""Figures in which a name brings its line forward."""

from __future__ import annotations

import re

import matplotlib.pyplot as plt
import pytest

from advdiff import viz


def figure_of(names: list[str]) -> plt.Figure:
    figure, panels = plt.subplots(1, 2)
    for axes in panels:
        for k, name in enumerate(names):
            axes.plot([0, k], color=f"C{k}", label=name)
            axes.fill_between([0, 1], [0, k - 0.1], [0, k + 0.1], color=f"C{k}", alpha=0.2)
        axes.axhline(0.5, color="0.5")
    panels[0].legend()
    return figure


def test_each_name_has_its_lines_and_bands_in_all_panels() -> None:
    page = viz.hover_lines(figure_of(["a & b", "c"]), alt='Two "names".').data
    assert re.findall(r'role="button" aria-label="([^"]+)"', page) == ["a &amp; b", "c"]
    for k in (0, 1):
        assert len(re.findall(rf'id="hover-\w+-line-{k}-', page)) == 4, "a line and a band in two panels"
    assert 'aria-label="Two &quot;names&quot;."' in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids)), "an id stands twice"
    for reference in re.findall(r'xlink:href="#([^"]+)"|url\(#([^)]+)\)', page):
        assert "".join(reference) in ids


def test_colour_alone_joins_panels_unless_two_names_share_it() -> None:
    figure, (left, middle, right) = plt.subplots(1, 3)
    for name, colour, dash in (("a", "C0", "-"), ("b", "C1", "-"), ("c", "k", "--"), ("d", "k", ":")):
        left.plot([0, 1], color=colour, ls=dash, label=name)
        middle.plot([1, 0], color=colour)
    right.bar([0, 1], [1, 2], color=["C0", "C1"])
    right.plot([0, 1], color="C0", label="somebody else")
    left.legend()
    page = viz.hover_lines(figure, alt="Names and bars.").data
    assert [len(re.findall(rf'id="hover-\w+-line-{k}-', page)) for k in range(4)] == [3, 3, 1, 1]


def test_same_figure_gives_the_same_page_and_is_closed() -> None:
    before = plt.get_fignums()
    first, second = (viz.hover_lines(figure_of(["a", "b"]), alt="Lines.").data for _ in range(2))
    assert first == second
    assert plt.get_fignums() == before


def test_figure_without_names_is_refused() -> None:
    figure, _ = plt.subplots()
    with pytest.raises(ValueError, match="no legend"):
        viz.hover_lines(figure, alt="Nothing.")
