"""The figures of runs: who is on top, and what a line shows."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from advdiff.results.compare import Contrast
from advdiff.viz import STYLES
from advdiff.viz.runs import draw, gains, rank
from tests.results.test_compare import found


def test_figures_put_the_best_on_top_and_the_papers_number_beside():
    figure, (left, right) = plt.subplots(1, 2)
    rank(left, found())
    assert [label.get_text() for label in left.get_yticklabels()] == ["GCN", "MLP", "AdvDIFFormer-s"]
    assert left.get_legend() is not None and "ROC-AUC" in left.get_xlabel()
    rank(left, found("rmse"), reported=False)
    gains(right, [Contrast("advdifformer-s", "gcn", 2.0, 1.0, 3.0, (3, 3))], unit="%")
    assert [label.get_text() for label in right.get_yticklabels()] == ["GCN"]
    assert right.get_xlabel() == "gain of AdvDIFFormer-s over the model named (%)"
    plt.close(figure)


@pytest.mark.parametrize("centre", ["median", "mean"])
def test_a_line_shows_centre_range_and_seeds(centre):
    figure, axes = plt.subplots()
    values = np.array([[1.0, 2.0], [2.0, 3.0], [6.0, 10.0]])
    line = draw(axes, [0, 1], values, model="mlp", centre=centre, seeds=True, linestyle="--")
    assert line.get_ydata().tolist() == ([2, 3] if centre == "median" else [3, 5])
    assert line.get_label() == STYLES["mlp"]["label"] and line.get_linestyle() == "--"
    assert len(axes.lines) == 4 and len(axes.collections) == 1
    moved = draw(axes, values, values, model="new", band=False)
    assert moved.get_xdata().tolist() == [2, 3] and moved.get_label() == "new" and len(axes.collections) == 1
    assert draw(axes, [0, 1], values[0], label="one").get_ydata().tolist() == [1, 2]
    with pytest.raises(ValueError, match="unknown centre"):
        draw(axes, [0, 1], values, centre="mode")
    plt.close(figure)
