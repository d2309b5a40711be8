"""Is a difference larger than the noise?"""

import math

import numpy as np
import pytest
from scipy import stats

from advdiff.results.compare import (
    Contrast,
    contrasts,
    holm,
    interval,
    log_slope,
    p_value,
    pooled,
    scores,
    sign_test,
    welch,
)
from tests.experiments.made_up import changed
from tests.results.test_tables import twitch

FIRST, SECOND = [0.62, 0.63, 0.625], [0.60, 0.61, 0.60]


def found(metric="roc_auc"):
    runs = [twitch("advdifformer-s", seed, value) for seed, value in enumerate(FIRST)]
    runs += [twitch("gcn", seed, value) for seed, value in enumerate(SECOND)]
    runs += [twitch("mlp", 0, 0.62)]
    return [changed(run, metric=metric) for run in runs]


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


@pytest.mark.parametrize("bad", [[math.nan, 1.0, 2.0], [1.0, math.inf], [], [[1.0, 2.0]]])
def test_what_is_no_number_is_refused(bad):
    for compare in (welch, p_value):
        for pair in ((bad, [1.0, 2.0]), ([1.0, 2.0], bad)):
            with pytest.raises(ValueError, match="all finite"):
                compare(*pair)
    with pytest.raises(ValueError, match="all finite"):
        pooled({"a": [1.0, 2.0], "b": bad}, "a")
    with pytest.raises(ValueError, match="all finite"):
        interval(bad)


def test_two_groups_with_a_common_variance_are_students_test():
    (found,) = pooled({"a": FIRST, "b": SECOND[:2]}, "a")
    theirs = stats.ttest_ind(FIRST, SECOND[:2], equal_var=True)
    assert (found.low, found.high) == pytest.approx(tuple(theirs.confidence_interval(0.95)))
    assert found.p == pytest.approx(theirs.pvalue) and found.seeds == (3, 2)


def test_the_variance_is_that_of_all_groups():
    groups = {"a": [0.0, 2.0], "b": [5.0, 5.0, 5.0], "c": [1.0, 3.0, 5.0], "alone": [7.0]}
    first, _, third = pooled(groups, "b")
    error = math.sqrt((2 + 0 + 8) / (1 + 2 + 2) * (1 / 3 + 1 / 2))  # by hand
    assert (first.model, first.other, first.gain) == ("b", "a", 4.0)
    assert first.high - first.gain == pytest.approx(stats.t.ppf(0.975, 5) * error)
    assert first.p == pytest.approx(2 * stats.t.sf(4 / error, 5))
    assert third.other == "alone" and math.isfinite(third.high), "one run has no variance of its own, but that of all"
    assert [each.other for each in pooled(groups, "b", others=["c"])] == ["c"]
    (unknown,) = pooled({"a": [1.0], "b": [2.0]}, "a")
    assert (unknown.low, unknown.high, unknown.p) == (-math.inf, math.inf, 1.0)
    (exact,) = pooled({"a": [1.0, 1.0], "b": [2.0, 2.0]}, "a")
    assert (exact.low, exact.high, exact.p) == (-1.0, -1.0, 0.0)
    with pytest.raises(ValueError, match="no numbers of d; there are: a, b"):
        pooled({"a": FIRST, "b": SECOND}, "a", others=["d"])


def test_the_pooled_interval_covers_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(size=(2000, 4, 3))
    hit = [pooled(dict(zip("abcd", each, strict=True)), "a", others=["b"])[0].verdict for each in draws]
    assert abs(np.mean([verdict == "within the noise" for verdict in hit]) - 0.95) < 0.015


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
    runs[3] = changed(runs[3], metrics={}, status="diverged")
    assert {each.other: each.seeds for each in contrasts(runs, "advdifformer-s")}["gcn"] == (3, 2)
    with pytest.raises(ValueError, match=r"no runs of gat; there are: mlp, gcn, advdifformer-s"):
        contrasts(runs, "gat")
    with pytest.raises(ValueError, match="no runs of gta"):
        contrasts(runs, "advdifformer-s", others=["gta"])


def test_scores_grow_with_the_model():
    assert scores(found())["gcn"].tolist() == pytest.approx([60, 61, 60])
    assert scores(found("rmse"))["gcn"].tolist() == [-0.60, -0.61, -0.60]
    runs = [changed(each, metrics={}) if each.plan.model == "mlp" else each for each in found()]
    assert list(scores(runs)) == ["gcn", "advdifformer-s"]


def test_what_five_seeds_can_tell():
    unanimous = sign_test([1, 1, 1, 1, 1], 2.0)
    assert (unanimous.below, unanimous.pairs, unanimous.p) == (5, 5, 2 / 32) and str(unanimous) == "5/5"
    assert sign_test([1, 2], [1, 2]).p == 1.0
    with pytest.raises(ValueError, match="missing"):
        sign_test([1, math.nan])
    with pytest.raises(ValueError, match="at least two"):
        interval([1.0])


def test_the_interval_covers_as_often_as_it_says():
    draws = np.random.default_rng(0).normal(3.0, 2.0, size=(2000, 5))
    hit = [low <= 3.0 <= high for low, high in map(interval, draws)]
    assert abs(np.mean(hit) - 0.95) < 0.02


def test_growth():
    x = np.linspace(0.1, 2, 7)
    assert log_slope(x, 3 * x**1.5) == pytest.approx(1.5)


def test_pairs_are_compared_place_by_place():
    first, second = [1.0, 5.0, 9.0, 2.0], [0.5, 4.2, 8.1, 1.7]
    (ours,), theirs = pooled({"a": first, "b": second}, "a", paired=True), stats.ttest_rel(first, second)
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs.confidence_interval(0.95)))
    assert ours.p == pytest.approx(theirs.pvalue)
    assert pooled({"a": first, "b": second}, "a")[0].p > 0.5
