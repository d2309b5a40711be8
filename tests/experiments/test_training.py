"""Training: chosen epoch, batches, divergence, repeatability."""

import math

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from advdiff.datasets import Dataset
from advdiff.experiments import training
from advdiff.experiments.machine import choose_device, repeatable
from advdiff.experiments.metrics import METRICS
from advdiff.experiments.recipe import Budget
from advdiff.propagation import SingularGeneratorError
from tests.experiments import toy


def trained(data, budget, seed=0, model=None, **keywords):
    keywords = {"metric": data.metric, "device": torch.device("cpu"), "environments": data.environments, **keywords}
    with repeatable(seed):
        return training.train(model or toy.Model(3, 4, 1, dropout=0.3), data, budget, seed=seed, **keywords)


def test_one_seed_gives_the_same_metrics_to_the_last_bit():
    data, budget = toy.load("toy"), Budget(20, 0.05)
    first, again, other = (trained(data, budget, seed).metrics for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_random_state_of_the_caller_is_left_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    with repeatable(3, threads=1):
        torch.randn(3)
        assert torch.are_deterministic_algorithms_enabled()
    assert torch.equal(before, torch.get_rng_state())
    assert not torch.are_deterministic_algorithms_enabled()


def test_metrics_are_those_of_the_epoch_with_the_best_validation_metric():
    data = toy.load("toy", kind="hard")
    outcomes = [trained(data, Budget(epochs, 0.2)) for epochs in range(1, 16)]
    last = outcomes[-1]
    assert last.status == "finished" and last.epochs == 15
    assert last.chosen_epoch < 15  # the validation error of this one rises at the end
    # The run that stops at the chosen epoch has the same parameters there.
    assert outcomes[last.chosen_epoch - 1].metrics == last.metrics
    assert last.metrics["b"] == last.curve[last.chosen_epoch] == min(last.curve.values())
    assert last.curve == {epoch: outcome.curve[epoch] for epoch, outcome in enumerate(outcomes, start=1)}


def test_validation_every_k_epochs_chooses_among_these():
    outcome = trained(toy.load("toy"), Budget(10, 0.05, evaluate_every=4))
    assert outcome.chosen_epoch in (4, 8, 10)


def test_only_the_environments_asked_for_are_evaluated():
    outcome = trained(toy.load("toy"), Budget(2, 0.05), environments=("a", "b"))
    assert set(outcome.metrics) == {"a", "b"}


def test_the_data_are_not_changed():
    data = toy.load("toy")
    before = {name: graphs[0].clone() for name, graphs in data.environments.items()}
    trained(data, Budget(3, 0.05))
    for name, graphs in data.environments.items():
        assert graphs[0].keys() == before[name].keys()
        assert torch.equal(graphs[0].x, before[name].x)


def molecules(count, draw, task):
    graphs = []
    for _ in range(count):
        nodes = int(torch.randint(2, 6, (1,), generator=draw))
        edge_index = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
        graph = Data(x=torch.randn(nodes, 3, generator=draw), edge_index=edge_index)
        if task == "edge":
            graph.edge_label_index = edge_index
        rows = {"node": nodes, "edge": nodes - 1, "graph": 1}[task]
        graph.y = torch.rand(rows, 2, generator=draw).round()
        graph.y[0, 1] = math.nan
        graph.mask = torch.ones(rows, dtype=torch.bool)
        graphs.append(graph)
    return graphs


class Reader(nn.Module):
    """Reads out nodes, edges or graphs, as the models of the library do."""

    def __init__(self, task):
        super().__init__()
        self.task, self.net = task, nn.Linear(3, 2)

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None, batch=None, edge_label_index=None):
        z = self.net(x)
        if self.task == "edge":
            return z[edge_label_index[0]] + z[edge_label_index[1]]
        if self.task == "graph":
            graphs = 1 if batch is None else int(batch.max()) + 1
            return z.new_zeros(graphs, 2).index_add_(0, torch.zeros(len(z)).long() if batch is None else batch, z)
        return z


@pytest.mark.parametrize("task", ["node", "edge", "graph"])
@pytest.mark.parametrize("metric", ["roc_auc", "rmse"])
def test_many_small_graphs_are_batched(task, metric):
    draw = torch.Generator().manual_seed(0)
    environments = {name: molecules(count, draw, task) for name, count in {"a": 11, "b": 7, "c": 5, "d": 1}.items()}
    data = Dataset("mol", {}, task, metric, 3, 2, environments, ("a", "d"), ("b",), ("c",))
    small, large = (
        trained(data, Budget(5, 0.05, batch_size=size), model=Reader(task)) for size in (4, 100)
    )  # fmt: skip
    for outcome in (small, large):
        assert outcome.status == "finished"
        assert outcome.metrics["a"] is not None and outcome.metrics["b"] is not None
    again = trained(data, Budget(5, 0.05, batch_size=4), model=Reader(task))
    assert small.epochs == again.epochs == 5
    # The metric of an environment does not depend on how its graphs are batched.
    model = Reader(task)
    values = [
        METRICS[metric](*training.predictions(model, training._in_order(environments["b"], size, torch.device("cpu"))))
        for size in (1, 3, 7)
    ]
    assert values[0] == pytest.approx(values[1]) == pytest.approx(values[2])


def test_fixed_batches_are_the_same_objects_in_a_new_order():
    graphs = [Data(x=torch.full((2, 1), float(n)), edge_index=torch.zeros(2, 0, dtype=torch.long)) for n in range(7)]
    budget = Budget(1, 0.1, batch_size=2, fixed_batches=True)
    batches = training._shuffled(graphs, budget, torch.device("cpu"), seed=0)
    epochs = [[(id(batch), *batch.x.flatten().unique().tolist()) for batch in batches] for _ in range(4)]
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs) and len({tuple(e) for e in epochs}) > 1
    assert {each[1:] for each in epochs[0]} == {(0, 1), (2, 3), (4, 5), (6,)}


def test_the_order_of_batches_follows_the_seed():
    draw = torch.Generator().manual_seed(0)
    environments = {name: molecules(9, draw, "node") for name in "abc"}
    data = Dataset("mol", {}, "node", "rmse", 3, 2, environments, ("a",), ("b",), ("c",))

    def metrics(seed):
        torch.manual_seed(0)
        model, budget = Reader("node"), Budget(3, 0.05, batch_size=2)
        return trained(data, budget, seed=seed, model=model).metrics

    assert metrics(1) == metrics(1) != metrics(2)


def test_a_loss_that_is_not_finite_is_an_outcome():
    outcome = trained(toy.load("toy", kind="nan"), Budget(5, 0.05))
    assert (outcome.status, outcome.chosen_epoch, outcome.metrics) == ("diverged", None, {})
    assert "epoch 1" in outcome.reason


class ModelThatBreaks(toy.Model):
    """Goes wrong in the third training step, in one way or another."""

    def __init__(self, how):
        super().__init__(3, 4, 1)
        self.how, self.steps = how, 0

    def forward(self, x, edge_index, **keywords):
        self.steps += self.training
        if self.training and self.steps >= 3:
            if self.how == "nan":
                return super().forward(x, edge_index) * math.nan
            if self.how == "singular":
                raise SingularGeneratorError("θ is too small")
            if self.how == "parameters":
                with torch.no_grad():
                    self.net[0].weight.fill_(math.inf)
            raise ValueError("x holds NaN")
        return super().forward(x, edge_index)


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [("nan", "diverged", "epoch 3"), ("singular", "singular", "θ"), ("parameters", "diverged", "parameters")],
)
def test_a_run_that_goes_wrong_has_no_score(how, status, reason):
    outcome = trained(toy.load("toy"), Budget(9, 0.05), model=ModelThatBreaks(how))
    assert outcome.status == status and reason in outcome.reason
    assert outcome.epochs == 3 and outcome.chosen_epoch in (1, 2)
    assert outcome.metrics == {} and outcome.predictions == {}


def test_patience_ends_a_run_that_no_longer_improves():
    data = toy.load("toy", kind="hard")
    whole = trained(data, Budget(40, 0.2))
    stopped = trained(data, Budget(40, 0.2, patience=5))
    assert stopped.epochs == stopped.chosen_epoch + 5 < 40
    assert stopped.curve == {epoch: value for epoch, value in whole.curve.items() if epoch <= stopped.epochs}
    assert stopped.metrics["b"] == min(stopped.curve.values())


def test_other_errors_are_raised():
    with pytest.raises(ValueError, match="holds NaN"):
        trained(toy.load("toy"), Budget(9, 0.05), model=ModelThatBreaks("error"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("epochs", 0),
        ("epochs", 1.5),
        ("epochs", True),
        ("learning_rate", -1),
        ("learning_rate", "x"),
        ("batch_size", 0),
    ],
)
def test_bad_budgets_are_named(field, value):
    with pytest.raises(ValueError, match=field):
        Budget(**{"epochs": 3, "learning_rate": 0.1, field: value})


def test_devices():
    assert choose_device("auto").type in ("cuda", "mps", "cpu")
    with pytest.raises(ValueError, match="auto, cpu, cuda, mps"):
        choose_device("gpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="no cuda device"):
            choose_device("cuda")
