"""Is a difference larger than the noise? And the figures that show it."""

import math
from dataclasses import replace

import matplotlib.pyplot as plt
import pytest
from scipy import stats

from advdiff.experiments.contrast import Contrast, contrasts, holm, p_value, welch
from advdiff.experiments.figures import gains, rank
from tests.experiments.test_tables import twitch

FIRST, SECOND = [0.62, 0.63, 0.625], [0.60, 0.61, 0.60]


def found(metric="roc_auc"):
    runs = [twitch("advdifformer-s", seed, value) for seed, value in enumerate(FIRST)]
    runs += [twitch("gcn", seed, value) for seed, value in enumerate(SECOND)]
    runs += [twitch("mlp", 0, 0.62)]
    return [replace(run, metric=metric) for run in runs]


def test_welch_is_scipys():
    gain, low, high = welch(FIRST, SECOND)
    theirs = stats.ttest_ind(FIRST, SECOND, equal_var=False).confidence_interval(0.95)
    assert gain == pytest.approx(sum(FIRST) / 3 - sum(SECOND) / 3)
    assert (low, high) == pytest.approx((theirs.low, theirs.high))
    assert welch([1.0, 1.0], [0.5, 0.5]) == (0.5, 0.5, 0.5)


def test_p_values_are_scipys_and_small_groups_have_none():
    assert p_value(FIRST, SECOND) == pytest.approx(stats.ttest_ind(FIRST, SECOND, equal_var=False).pvalue)
    assert p_value(FIRST, [0.6]) == 1.0
    assert (p_value([1.0, 1.0], [0.5, 0.5]), p_value([1.0, 1.0], [1.0, 1.0])) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([0.01, 0.02, 0.04], [0.01, 0.02, 0.04]),  # 0.05/3, 0.05/2, 0.05/1
        ([0.04, 0.02, 0.03], []),  # the smallest misses 0.05/3, and then none counts
        ([0.9, 0.001, 0.03], [0.001]),
        ([], []),
    ],
)
def test_holm_stops_at_the_first_that_is_not_clear(values, kept):
    assert [each.p for each in holm(Contrast("a", "b", 1.0, 0.5, 1.5, (3, 3), p) for p in values)] == kept


def test_gains_point_towards_the_better_model_whatever_the_metric():
    gcn, mlp = sorted(contrasts(found(), "advdifformer-s"), key=lambda each: each.other)
    assert (gcn.other, gcn.verdict, gcn.seeds) == ("gcn", "better", (3, 3)) and gcn.gain == pytest.approx(
        2.1667, abs=1e-3
    )
    assert (mlp.other, mlp.verdict) == ("mlp", "within the noise") and math.isinf(mlp.high)  # a single seed
    error = contrasts(found("rmse"), "advdifformer-s", others=["gcn"])
    assert [each.verdict for each in error] == ["worse"] and error[0].gain == pytest.approx(-0.021667, abs=1e-5)
    assert "gcn: +2.17 [" in str(gcn) and str(gcn).endswith("better")


def test_missing_numbers_are_left_out_and_missing_models_named():
    runs = found()
    runs[3] = replace(runs[3], metrics={}, status="diverged")
    assert {each.other: each.seeds for each in contrasts(runs, "advdifformer-s")}["gcn"] == (3, 2)
    with pytest.raises(ValueError, match=r"no runs of gat; there are: mlp, gcn, advdifformer-s"):
        contrasts(runs, "gat")


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
