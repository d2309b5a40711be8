"""ERM, invariant risk and the worst group: the formulas by hand, and what they do to a model."""

import math

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from advdiff.datasets import Dataset
from advdiff.experiments import fit
from advdiff.experiments.metrics import Objective
from advdiff.experiments.recipe import OBJECTIVES, Budget


def squared(target: float):
    return lambda f: (f - target).square().mean()


def test_irm_adds_the_squared_slope_of_a_rescaling():
    """R(w f) = (w f − y)² has the slope 2 f (f − y) at w = 1; its square has a gradient of its own."""
    f = torch.tensor([3.0], requires_grad=True)
    value = Objective("irm", 2, strength=0.5)(squared(1.0), f, 0)
    assert value.item() == pytest.approx(4.0 + 0.5 * 12.0**2)
    value.backward()
    # d/df (f − 1)² = 4, and d/df ½ (2 f² − 2 f)² = (2 f² − 2 f)(4 f − 2) = 12 · 10
    assert f.grad.item() == pytest.approx(4.0 + 120.0)


def test_groupdro_weighs_by_the_exponential_of_the_losses():
    objective, f = Objective("groupdro", 2, strength=math.log(2.0)), torch.tensor([1.0])
    first = objective(squared(0.0), f, 0)  # R = 1: q = (1/2 · 2, 1/2)/Σ = (2/3, 1/3)
    assert first.item() == pytest.approx(2 * 2 / 3)
    second = objective(squared(3.0), f, 1)  # R = 4: q = (2/3, 1/3 · 16)/Σ = (1/9, 8/9)
    assert second.item() == pytest.approx(4.0 * 2 * 8 / 9)
    objective(squared(1e4), f, 1)  # e^{ηR} overflows, the weights do not
    assert objective.weights.tolist() == [0.0, 1.0]


def test_an_unknown_objective_is_refused():
    with pytest.raises(ValueError, match="unknown objective 'dro'; choose one of: erm, irm, groupdro"):
        Budget(1, 0.1, objective="dro")
    with pytest.raises(ValueError, match="strength is -1"):
        Budget(1, 0.1, objective="irm", strength=-1)


def test_plain_budgets_keep_the_form_they_had_and_others_say_what_they_are():
    assert "objective" not in Budget(1, 0.1, strength=7.0).as_dict()
    assert Budget(1, 0.1, objective="irm", strength=7.0).as_dict()["strength"] == 7.0


class Slope(nn.Module):
    """ŷ = w·x with two weights, which start at 0."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 1))

    def forward(self, x, edge_index):
        return x @ self.weight


def environments(agreement: dict[str, float], nodes: int = 400) -> Dataset:
    """y follows the first feature with noise; the second one follows y, in each environment with another strength."""
    draw = torch.Generator().manual_seed(0)
    graphs = {}
    for name, strength in agreement.items():
        cause = torch.randn(nodes, 1, generator=draw)
        y = cause + 0.5 * torch.randn(nodes, 1, generator=draw)
        effect = strength * y + 0.3 * torch.randn(nodes, 1, generator=draw)
        x = torch.cat([cause, effect], 1)
        graphs[name] = [Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)]
    train = tuple(name for name in agreement if name.startswith("train"))
    return Dataset("made up", {}, "node", "mse", 2, 1, graphs, train, ("valid",), ("test",))


def trained(data: Dataset, objective: str, strength: float = 1.0) -> dict[str, float]:
    model = Slope()
    fit(model, data, budget=Budget(300, 0.02, objective=objective, strength=strength), progress=False)
    cause, effect = model.weight.detach().flatten().tolist()
    return {"cause": cause, "effect": effect}


def test_irm_trusts_the_cause_more_and_erm_the_effect():
    data = environments({"train 1": 0.6, "train 2": 2.0, "valid": 1.0, "test": -1.0})
    plain, invariant = trained(data, "erm"), trained(data, "irm", 100.0)
    assert abs(invariant["effect"]) < 0.7 * abs(plain["effect"])


def test_groupdro_lowers_the_worst_of_the_training_environments():
    data = environments({"train 1": 1.0, "train 2": 1.0, "train 3": -1.0, "valid": -1.0, "test": 1.0})
    worst = {}
    for objective in ("erm", "groupdro"):
        fitted = fit(Slope(), data, budget=Budget(200, 0.02, objective=objective, strength=0.1), progress=False)
        worst[objective] = max(fitted.metrics[name] for name in data.train)
    assert worst["groupdro"] < worst["erm"]


@pytest.mark.parametrize("objective", OBJECTIVES[1:])
def test_batches_do_not_mix_environments(objective, monkeypatch):
    seen = []

    def watched(self, loss, output, environment):
        seen.append((environment, output.size(0)))
        return loss(output)

    monkeypatch.setattr(Objective, "__call__", watched)
    graph = environments({"train": 1.0, "valid": 1.0, "test": 1.0}, nodes=5).graphs("train")[0]
    parts = {"train 1": [graph] * 3, "train 2": [graph] * 2, "valid": [graph], "test": [graph]}
    data = Dataset("made up", {}, "node", "mse", 2, 1, parts, ("train 1", "train 2"), ("valid",), ("test",))
    fit(Slope(), data, budget=Budget(2, 0.1, batch_size=2, objective=objective), progress=False)
    assert sorted(seen) == sorted([(0, 10), (0, 5), (1, 10)] * 2)
