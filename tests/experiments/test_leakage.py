"""Nothing leaks: training sees training data, epochs and settings are chosen on validation data, masked rows count not.

Each part of the made-up data contradicts the others: what a model learned tells which of them it saw.
"""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from advdiff.datasets import Dataset
from advdiff.experiments import fit, recipes, tune
from advdiff.experiments.recipe import Budget, Profile, Recipe
from advdiff.results.frame import value_of
from tests.experiments import toy as toys
from tests.experiments.made_up import record

SLOPES = {"train": 1.0, "valid": -1.0, "test": 3.0}


class Slope(nn.Module):
    """ŷ = w x with one weight, which starts at 0."""

    def __init__(self, outputs: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, outputs))

    def forward(self, x, edge_index):
        return x @ self.weight


def graph(slope: float, mask: torch.Tensor | None = None, nodes: int = 40) -> Data:
    x = torch.linspace(-1, 1, nodes)[:, None]
    return Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long), y=slope * x, mask=mask)


def dataset(graphs: dict[str, list[Data]], metric: str = "mse", outputs: int = 1) -> Dataset:
    return Dataset("contradictory", {}, "node", metric, 1, outputs, graphs, ("train",), ("valid",), ("test",))


@pytest.mark.parametrize("graphs", [1, 5])
def test_weights_come_from_the_training_data_alone(graphs):
    data = dataset({name: [graph(slope)] * graphs for name, slope in SLOPES.items()})
    model = Slope()
    whole = fit(model, data, budget=Budget(1, 0.3, batch_size=2), progress=False)
    moved = float(model.weight.detach())
    assert moved > 0, "the weight went towards the slope of another part"
    assert whole.metrics.keys() == set(SLOPES)


def test_the_epoch_is_chosen_on_validation_data_though_training_and_test_improve():
    data = dataset({name: [graph(slope)] for name, slope in SLOPES.items()})
    fitted = fit(Slope(), data, budget=Budget(20, 0.05), progress=False)
    # Every step towards slope 1 is one away from −1, and brings the test (slope 3) nearer.
    assert fitted.record.outcome.chosen_epoch == 1
    assert list(fitted.curve.values()) == sorted(fitted.curve.values())
    assert fitted.record.outcome.valid_metric == fitted.metrics["valid"] == min(fitted.curve.values())


@pytest.mark.parametrize("many", [False, True])
def test_rows_outside_the_mask_have_no_part_in_loss_and_metric(many):
    mask = torch.arange(40) % 4 == 0
    masked = graph(1.0, mask)
    masked.y[~mask] = -5.0 * masked.x[~mask]
    model = Slope()
    data = dataset({name: [masked] * (3 if many else 1) for name in SLOPES})
    fitted = fit(model, data, budget=Budget(400, 0.02), progress=False)
    assert float(model.weight.detach()) == pytest.approx(1.0, abs=1e-2)
    assert fitted.metrics["test"] < 1e-4
    assert len(fitted.predictions["test"]) == (30 if many else 10)


@pytest.mark.parametrize(("metric", "best"), [("mse", 0.3), ("accuracy", 0.3)])
def test_a_search_takes_the_best_point_of_the_validation_data_whichever_way_the_metric_goes(
    tmp_path, monkeypatch, metric, best
):
    """A learning rate of 0 learns nothing: the worst of three points in validation, and the best on the test data."""
    x = torch.linspace(-1, 1, 40)[:, None]
    labels = {"train": x, "valid": x, "test": 0 * x}
    if metric == "accuracy":  # without learning every answer is class 0
        labels = {name: (y[:, 0] > 0).long() for name, y in labels.items()}
    graphs = {name: [Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)] for name, y in labels.items()}
    data = dataset(graphs, metric, 2 if metric == "accuracy" else 1)
    recipe = Recipe(
        name="toy", dataset="toy", models=("linear",), quick=Profile(Budget(30, 0.1)), full=Profile(Budget(30, 0.1)),
        grid={"learning_rate": (0.0, best, 0.001)},
    )  # fmt: skip
    toys.install(monkeypatch)
    monkeypatch.setitem(recipes.RECIPES, "toy", recipe)
    monkeypatch.setattr("advdiff.datasets.load", lambda name: data)
    monkeypatch.setattr("advdiff.nn.build", lambda *sizes, **settings: Slope(data.out_channels))
    (tuned,) = tune("toy", "linear", results=tmp_path, device="cpu", progress=False)
    assert tuned.settings == {"learning_rate": best}
    assert tuned.tried[-1][0] == {"learning_rate": 0.0}


def test_summaries_read_the_part_they_name():
    run = record(
        metrics={"a": 1.0, "b": 2.0, "c": 3.0, "d": 5.0}, train=["a"], valid=["b"], test=["c", "d"], metric="mse"
    )
    found = [value_of(run, column) for column in ("train", "valid", "test mean", "test worst")]
    assert found == [1.0, 2.0, 4.0, 5.0]
