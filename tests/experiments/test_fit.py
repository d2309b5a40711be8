"""``fit``: any model on any data, its weights and its predictions."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from advdiff.experiments import Budget, fit, load_weights
from advdiff.experiments.records import Record

SHORT = Budget(40, 0.05)


def graph(seed=0, nodes=90):
    draw = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, 5, generator=draw)
    part = torch.arange(nodes) % 3
    return Data(
        x=x, edge_index=torch.randint(nodes, (2, 4 * nodes), generator=draw), y=(x[:, 0] > 0).long(),
        train_mask=part == 0, val_mask=part == 1, test_mask=part == 2,
    )  # fmt: skip


class Net(nn.Module):
    """A network of a user: no base class of ours, and only the inputs it needs."""

    def __init__(self):
        super().__init__()
        self.first, self.last = GCNConv(5, 16), nn.Linear(16, 2)

    def forward(self, x, edge_index):
        return self.last(self.first(x, edge_index).relu() + 0)


def test_a_users_network_on_a_users_graph():
    torch.manual_seed(0)
    fitted = fit(Net(), graph(), metric="accuracy", budget=SHORT, progress=False)
    assert fitted.record.plan.model == "Net" and fitted.record.outcome.status == "finished"
    assert set(fitted.metrics) == {"train", "valid", "test"} and fitted.metrics["train"] > 0.6
    assert list(fitted.curve) == list(range(1, 41))
    assert fitted.predictions["test"].shape == (30, 2)


def test_a_model_of_the_registry_by_its_name_repeats_itself():
    first, again, other = (
        fit("advdifformer-s", graph(), metric="accuracy", budget=SHORT, seed=seed, settings={"hidden_channels": 8},
            progress=False) for seed in (0, 0, 1)
    )  # fmt: skip
    assert first.metrics == again.metrics and first.curve == again.curve != other.curve
    assert first.metrics["test"] > 0.7
    assert Record.from_dict(first.record.as_dict()) == first.record


def test_lists_of_graphs_by_environment():
    graphs = {name: [graph(seed) for seed in range(3)] for name in ("train", "valid", "test")}
    for each in (each for part in graphs.values() for each in part):
        del each.train_mask, each.val_mask, each.test_mask
    fitted = fit("gcn", graphs, metric="accuracy", budget=Budget(5, 0.01, batch_size=2), progress=False)
    assert fitted.predictions["test"].shape == (270, 2)


def test_weights_and_predictions_are_written_and_read_again(tmp_path):
    fitted = fit(
        "gcn", graph(), metric="accuracy", budget=Budget(5, 0.01), settings={"hidden_channels": 8}, progress=False
    )
    fitted.save(tmp_path / "gcn.safetensors")
    fitted.save_predictions(tmp_path / "predictions.npz")
    with safe_open(tmp_path / "gcn.safetensors", "pt") as file:
        assert json.loads(file.metadata()["record"]) == fitted.record.as_dict()
    from advdiff.nn import build

    copy = load_weights(build("gcn", 5, 8, 2), tmp_path / "gcn.safetensors")
    data = graph()
    assert torch.equal(copy(data.x, data.edge_index)[data.test_mask], fitted.predictions["test"])
    stored = np.load(tmp_path / "predictions.npz")
    assert np.array_equal(stored["test"], fitted.predictions["test"].numpy())
    with pytest.raises(ValueError, match="those of another model"):
        load_weights(build("gcn", 5, 16, 2), tmp_path / "gcn.safetensors")
    with pytest.raises(ValueError, match="cannot be read as weights"):
        load_weights(build("gcn", 5, 8, 2), tmp_path / "predictions.npz")


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"metric": None}, "metric is None"),
        ({"metric": "f1"}, "metric"),
        ({"model": "gnc"}, "unknown model 'gnc'"),
        ({"settings": {"hidden": 8}}, "no setting 'hidden'"),
        ({"environments": ["night"]}, "unknown environment 'night'"),
        ({"device": "tpu"}, "unknown device"),
        ({"model": Net(), "settings": {"heads": 2}}, "given by name"),
    ],
)
def test_mistakes_are_named_before_the_training(keywords, message):
    given = {"model": "gcn", "data": graph(), "metric": "accuracy", "budget": SHORT, "progress": False, **keywords}
    with pytest.raises(ValueError, match=message):
        fit(given.pop("model"), given.pop("data"), **given)
