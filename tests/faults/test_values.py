"""Numbers at the edges: NaN, ∞, huge, tiny and negative ones, graph numbers and times that would take for ever."""

from __future__ import annotations

import itertools
import math
import time
import warnings
from collections.abc import Callable

import pytest
import torch

import advdiff
from advdiff.experiments import metrics
from advdiff.nn import AdvDIFFormer
from advdiff.results import compare
from tests.faults.survive import complaint

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
X = torch.ones(4, 3)
NUMBERS = [math.nan, math.inf, -math.inf, -1.0, -0.0, 0.0, 5e-324, 1e-320, 1e-300, 1e300, 1.7e308]


def seconds(call: Callable[[], object]) -> float:
    began = time.monotonic()
    call()
    return time.monotonic() - began


@pytest.mark.parametrize("number", NUMBERS, ids=str)
def test_features_and_weights(number: float, tried: Callable[[int], None]) -> None:
    calls = 0
    for dtype, kind, solver in itertools.product(
        (torch.float32, torch.float64), ("symmetric", "row"), ("series", "inverse", "exponential")
    ):
        weight = torch.ones(6, dtype=dtype)
        weight[2] = torch.tensor(number, dtype=torch.float64)
        x = X.to(dtype).clone()
        x[1, 1] = torch.tensor(number, dtype=torch.float64)
        model = AdvDIFFormer(3, 4, 1, solver=solver, normalization=kind).to(dtype)
        for given in ({"x": X.to(dtype), "edge_weight": weight}, {"x": x}):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert complaint(lambda: model(edge_index=EDGES, **given)) is None  # noqa: B023
            calls += 1
    tried(calls)


@pytest.mark.parametrize("kind", ["symmetric", "row"])
@pytest.mark.parametrize("size", [5e-324, 1e-320, 1e-310, 1e-300, 1e300])
def test_weights_of_any_size_give_the_velocity_of_their_ratios(size: float, kind: str) -> None:
    ratios = torch.ones(6, dtype=torch.float64)
    expected = advdiff.normalize_adjacency(EDGES, 4, ratios, kind).to_dense()
    found = advdiff.normalize_adjacency(EDGES, 4, ratios * size, kind)
    torch.testing.assert_close(found.to_dense(), expected)
    assert math.isfinite(found.skew)


@pytest.mark.parametrize("batch", [[0, 0, 0, 3 * 10**8], [0, 0, 0, 2**62], [0, 0, 0, -1], [5, 5, 5, 10**7]], ids=str)
def test_graph_numbers_that_would_fill_the_memory(batch: list[int]) -> None:
    model = AdvDIFFormer(3, 4, 1, task="graph")
    alone = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="number the graphs"):
        model(X, alone, batch=torch.tensor(batch))


def test_statistics_of_what_is_no_number() -> None:
    with pytest.raises(ValueError, match="all finite"):
        compare.p_value([math.nan, 1, 2], [1, 2])


def test_metrics_of_what_is_no_number() -> None:
    labels = torch.tensor([0, 1, 0, 0])
    assert math.isnan(metrics.accuracy(torch.full((4, 2), math.nan), labels))
    assert math.isnan(metrics.accuracy(torch.full((4, 1), math.nan), labels))
    assert math.isnan(metrics.roc_auc(torch.full((4, 1), math.nan), labels))


def test_surplus_columns_of_a_metric() -> None:
    with pytest.raises(ValueError, match="shape"):
        metrics.roc_auc(torch.rand(4, 3), torch.tensor([[0.0], [1.0], [0.0], [1.0]]))
