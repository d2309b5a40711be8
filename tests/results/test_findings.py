"""What a chapter shows of a study: nothing before it is complete, then numbers that follow from the records."""

from itertools import combinations

import numpy as np
import pytest

from advdiff.experiments.trial import stages
from advdiff.results.findings import Findings
from tests.experiments.made_up import changed
from tests.results.test_verdict import made, near, protocol  # noqa: F401


def found(protocol, **how):  # noqa: F811
    (study,) = protocol.studies
    return Findings(protocol, study, made(protocol, near(0.5), near(0.8), **how))


def test_nothing_is_shown_of_a_study_that_is_not_complete(protocol):  # noqa: F811
    half = found(protocol, seeds=[0, 1])
    assert not half.complete
    for show in (half.scores, half.contrasts, half.costs, half.chosen):
        with pytest.raises(ValueError, match="the runs of tiny are not complete; `make trial` goes on"):
            show()


def test_scores_are_means_over_seeds(protocol):  # noqa: F811
    whole = found(protocol)
    assert whole.complete
    scores = whole.scores(["test mean"])
    assert scores.loc["advdifformer-s", ("test mean", "mean")] == pytest.approx(0.5)
    assert scores.loc["mlp", ("test mean", "std")] == pytest.approx(np.std(near(0.8), ddof=1))
    contrast = next(each for each in whole.contrasts() if each.other == "mlp")
    assert contrast.gain == pytest.approx(0.3) and contrast.low > 0
    assert set(whole.verdicts()) == {"tiny-best"}
    assert list(whole.costs().index) == list(whole.study.models) == list(whole.chosen().index)


def test_the_best_of_n_candidates_is_the_mean_over_all_choices(protocol):  # noqa: F811
    whole = found(protocol)
    first = next(stages(protocol, whole.study, "mlp", whole.done))
    values = [0.9, 0.3, 0.7, 0.5, 0.8, 0.4][: len(first.plans)]
    for plan, value in zip(first.plans, values, strict=True):
        whole.done[plan.key] = changed(whole.done[plan.key], valid_metric=value)
    curve = whole.by_budget("mlp")
    for n in range(1, len(values) + 1):
        assert curve[n] == pytest.approx(np.mean([min(chosen) for chosen in combinations(values, n)]))
