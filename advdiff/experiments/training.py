"""The training loop: Adam on the training environments, and the epoch chosen on validation data.

The paper's protocol (Appendix E.3): the metric of every environment at the epoch with the best metric on the validation
data. Only validation data are looked at on the way; the parameters of the best epoch are kept, and the other
environments are evaluated once, at the end.
"""

from __future__ import annotations

import functools
import inspect
import math
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from tqdm import tqdm

from advdiff.datasets import Dataset
from advdiff.experiments import metrics
from advdiff.experiments.metrics import Objective
from advdiff.experiments.recipe import Budget
from advdiff.propagation import SingularGeneratorError, SingularVelocityError

_Singular = (SingularGeneratorError, SingularVelocityError)
#: What a model may take besides ``x`` and ``edge_index``, under PyG's names.
INPUTS = ("edge_weight", "edge_attr", "batch", "edge_label_index")


@dataclass(eq=False)
class Training:
    """How the training of a model went.

    Attributes:
        status: ``finished``; ``diverged``, the loss or the parameters became NaN or infinite; ``singular``, θI + L
            could not be inverted.
        reason: says more where it is not ``finished``.
        curve: epoch → metric on the validation data, mean over its environments.
        chosen_epoch: the one with the best of these, counted from 1; None without any.
        epochs: epochs trained.
        seconds_per_epoch: of training alone, for every epoch.
        metrics: environment → metric at the chosen epoch, None where it is not defined; empty unless ``finished``.
        predictions: environment → the model's output there, for the rows that count.
    """

    status: str = "finished"
    reason: str = ""
    curve: dict[int, float] = field(default_factory=dict)
    chosen_epoch: int | None = None
    epochs: int = 0
    seconds_per_epoch: list[float] = field(default_factory=list)
    metrics: dict[str, float | None] = field(default_factory=dict)
    predictions: dict[str, Tensor] = field(default_factory=dict)

    def ended(self, status: str, reason: str) -> None:
        self.status, self.reason = status, reason


def train(
    model: nn.Module,
    data: Dataset,
    budget: Budget,
    *,
    metric: str,
    seed: int = 0,
    device: torch.device,
    environments: Iterable[str],
    progress: str | None = None,
) -> Training:
    """Train ``model`` in place; it ends with the parameters of the chosen epoch.

    Args:
        metric: chooses the epoch, and with it the loss.
        seed: of the order of the batches. Initialisation and dropout follow torch's random state, see
            :func:`advdiff.experiments.machine.repeatable`.
        environments: those to evaluate at the end.
        progress: label of a progress bar, none without.
    """
    model.to(device)
    done = Training()
    kept: dict[str, Tensor] = {}
    bar = tqdm(total=budget.epochs, desc=progress, unit="epoch", leave=False, disable=None if progress else True)
    with bar:
        try:
            for epoch in _epochs(model, data, budget, metric, seed, device, done):
                if done.chosen_epoch == epoch:
                    kept = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
                    bar.set_postfix_str(f"valid {metric} {done.curve[epoch]:.4g}", refresh=False)
                bar.update()
        except _Singular as error:
            done.ended("singular", str(error))
        except ValueError:  # the models refuse NaN in their input, and broken parameters produce it
            if all(bool(parameter.isfinite().all()) for parameter in model.parameters()):
                raise
            done.ended("diverged", f"the parameters were not finite in epoch {done.epochs}")
    if done.status == "finished" and done.chosen_epoch is None:
        done.ended("diverged", "the metric on the validation data was never finite")
    if kept:
        model.load_state_dict(kept)
    if done.status == "finished":
        _evaluate_all(model, data, budget, metric, device, environments, done)
    return done


def _epochs(
    model: nn.Module, data: Dataset, budget: Budget, metric: str, seed: int, device: torch.device, done: Training
) -> Iterable[int]:
    """Train epoch after epoch, filling in ``done``; yields the number of each."""
    optimizer = torch.optim.Adam(model.parameters(), lr=budget.learning_rate, weight_decay=budget.weight_decay)
    batches = _training_batches(data, budget, device, seed)
    objective = Objective(budget.objective, len(data.train), budget.strength)
    valid = {name: list(_in_order(data.graphs(name), budget.batch_size, device)) for name in data.valid}
    best = math.nan
    for epoch in range(1, budget.epochs + 1):
        began, done.epochs = time.perf_counter(), epoch
        finite = _train_epoch(model, optimizer, batches, objective, metric, device)
        done.seconds_per_epoch.append(time.perf_counter() - began)
        if not finite:
            done.ended("diverged", f"the loss was not finite in epoch {epoch}")
            return
        if epoch % budget.evaluate_every == 0 or epoch == budget.epochs:
            values = [metrics.metric(metric)(*predictions(model, graphs)) for graphs in valid.values()]
            value = done.curve[epoch] = statistics.fmean(values)
            if metrics.better(metric, value, best):
                best, done.chosen_epoch = value, epoch
        yield epoch
        if budget.patience is not None and epoch - (done.chosen_epoch or 0) >= budget.patience:
            return


def _evaluate_all(
    model: nn.Module,
    data: Dataset,
    budget: Budget,
    metric: str,
    device: torch.device,
    environments: Iterable[str],
    done: Training,
) -> None:
    for name in environments:
        try:
            output, target = predictions(model, _in_order(data.graphs(name), budget.batch_size, device))
        except _Singular as error:
            done.ended("singular", f"{name}: {error}")
            done.metrics.clear()
            return
        value = metrics.metric(metric)(output, target)
        done.metrics[name] = value if math.isfinite(value) else None
        done.predictions[name] = output.cpu()


def predict(model: nn.Module, graph: Data) -> Tensor:
    """The model's output for a graph or a batch: ``model(x, edge_index, …)`` with what the model takes of the rest.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import GCNConv
        >>> graph = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 2]]))
        >>> predict(GCNConv(2, 5), graph).shape
        torch.Size([3, 5])
    """
    taken = inspect.signature(model.forward).parameters
    given = {name: graph.get(name) for name in INPUTS if name in taken and graph.get(name) is not None}
    if "batch_size" in taken and "batch" in given:  # the last graphs of a batch may be empty
        given["batch_size"] = getattr(graph, "num_graphs", None)
    output: Tensor = model(graph.x, graph.edge_index, **given)
    return output


@torch.no_grad()
def predictions(model: nn.Module, batches: Iterable[Data]) -> tuple[Tensor, Tensor]:
    """Outputs and labels of all graphs of an environment together, for the rows that count."""
    model.eval()
    rows = []
    for graph in batches:
        output, mask = predict(model, graph), graph.get("mask")
        rows.append((output, graph.y) if mask is None else (output[mask], graph.y[mask]))
    return torch.cat([row[0] for row in rows]), torch.cat([row[1] for row in rows])


def _train_epoch(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Iterable[Data],
    objective: Objective,
    metric: str,
    device: torch.device,
) -> bool:
    model.train()
    for graph in batches:
        graph = graph.to(device)
        optimizer.zero_grad(set_to_none=True)
        risk = functools.partial(metrics.loss, metric, target=graph.y, mask=graph.get("mask"))
        loss = objective(risk, predict(model, graph), graph.get("environment", 0))
        if not math.isfinite(float(loss.detach())):
            return False
        loss.backward()
        optimizer.step()
    return True


def _training_batches(data: Dataset, budget: Budget, device: torch.device, seed: int) -> Iterable[Data]:
    """Batches in a new order every epoch; of one environment each, which they name, unless only the sum counts."""
    if budget.objective == "erm":
        return _shuffled(data.graphs(*data.train), budget, device, seed)
    found = []
    for number, name in enumerate(data.train):
        for batch in _in_order(data.graphs(name), budget.batch_size, device):
            batch.environment = number
            found.append(batch)
    return _InNewOrder(found, torch.Generator().manual_seed(seed))


def _shuffled(graphs: Sequence[Data], budget: Budget, device: torch.device, seed: int) -> Iterable[Data]:
    """One graph as it is; many in batches, in a new order every epoch."""
    if len(graphs) == 1:
        return [copy(graphs[0]).to(device)]  # .to() works in place, and the data may be shared with other runs
    order = torch.Generator().manual_seed(seed)
    if budget.fixed_batches:
        return _InNewOrder(list(_in_order(graphs, budget.batch_size, device)), order)
    return DataLoader(list(graphs), batch_size=budget.batch_size, shuffle=True, generator=order)


@dataclass(frozen=True)
class _InNewOrder:
    """The same batches, in a new order every time."""

    batches: Sequence[Data]
    order: torch.Generator

    def __iter__(self) -> Iterator[Data]:
        return (self.batches[i] for i in torch.randperm(len(self.batches), generator=self.order).tolist())


def _in_order(graphs: Sequence[Data], batch_size: int, device: torch.device) -> Iterable[Data]:
    if len(graphs) == 1:
        yield copy(graphs[0]).to(device)
    else:
        for batch in DataLoader(list(graphs), batch_size=batch_size):
            yield batch.to(device)
