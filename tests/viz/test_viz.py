"""Figures: the style applies, and the control of the published page needs no kernel."""

import io

import matplotlib.pyplot as plt
import pytest
from PIL import Image

from advdiff import viz
from advdiff.datasets.examples import karate_club


def test_style_is_undone_after_the_block():
    before = plt.rcParams["axes.spines.top"]
    with viz.style():
        assert plt.rcParams["axes.spines.top"] is False
    assert plt.rcParams["axes.spines.top"] == before


def test_graph_has_a_dot_per_node_and_a_line_per_edge():
    graph = karate_club()
    figure, axes = plt.subplots()
    nodes = viz.draw_graph(axes, graph.positions, graph.edge_index, graph.label, limits=(0, 2))
    assert len(nodes.get_offsets()) == 34 and nodes.get_clim() == (0, 2)
    assert len(axes.collections[0].get_segments()) == graph.edge_index.size(1)
    plt.close(figure)


def test_a_small_picture_has_a_palette_and_closes_the_figure():
    figure, axes = plt.subplots(figsize=(2, 1))
    axes.plot([1, 2])
    image = Image.open(io.BytesIO(viz.small_picture(figure, dpi=50)))
    assert image.mode == "P"
    assert not plt.fignum_exists(figure.number)


def test_frame_grid_is_linked_in_the_browser():
    widgets = pytest.importorskip("ipywidgets")
    drawn = []

    def draw(a, b):
        drawn.append((a, b))
        return plt.subplots(figsize=(1, 1))[0]

    box = viz.frame_grid(draw, ("a", [1, 2]), ("b", [3, 4, 5]), alt="a figure")
    assert drawn == [(a, b) for a in (1, 2) for b in (3, 4, 5)]
    sliders, stack = box.children
    assert [len(row.children) for row in stack.children] == [3, 3]
    assert stack.selected_index == sliders.children[0].index
    # What the page gets is widget state alone: a browser-side link drives each stack.
    state = widgets.Widget.get_manager_state(widgets=None)["state"]
    targets = [tuple(w["state"]["target"]) for w in state.values() if w["model_name"] == "LinkModel"]
    assert {(f"IPY_MODEL_{w.model_id}", "selected_index") for w in (stack, *stack.children)} <= set(targets)
