"""Molecules drawn again together with seeds."""

import numpy as np
import pytest
import torch

from advdiff.experiments.metrics import roc_auc
from advdiff.experiments.packing import packed, unpacked
from advdiff.results.resample import areas, interval, resampled_means
from tests.experiments.made_up import record


def test_areas_are_those_of_the_metric_for_every_seed_with_unknown_labels_and_ties():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(4, 30, 3)).round(1)
    labels = rng.integers(2, size=(30, 3)).astype(float)
    labels[rng.random((30, 3)) < 0.2] = np.nan
    labels[:, 2] = 1.0  # no negative: not defined, and left out
    expected = [roc_auc(torch.from_numpy(each), torch.from_numpy(labels)) for each in scores]
    assert areas(scores, labels) == pytest.approx(expected)


def made(quality: float, seed: int):
    draw = torch.Generator().manual_seed(seed)
    label = (torch.arange(60) % 2)[:, None].float()
    output = quality * label + torch.randn(60, 1, generator=draw)
    return record(seed, predictions={"test": [packed(output), packed(label)]})


def test_a_clear_difference_stays_and_none_is_found_between_equals():
    runs = {
        "good": [made(3.0, seed) for seed in range(5)],
        "bad": [made(0.2, seed) for seed in range(5, 10)],
        "alike": [made(3.0, seed) for seed in range(10, 15)],
    }
    means = resampled_means(runs, draws=300)
    low, _, p = interval(means["good"], means["bad"])
    assert low > 0.2 and p < 0.01
    low, high, p = interval(means["good"], means["alike"])
    assert low < 0 < high and p > 0.05


def test_predictions_keep_their_shape_and_unknown_labels():
    given = torch.tensor([[0.5, float("nan")], [-2.0, 1.0]])
    assert torch.equal(unpacked(packed(given)).nan_to_num(9), given.nan_to_num(9))
