"""Train one model on one data set, and choose the epoch on validation data.

The paper's protocol (Appendix E.3): a fixed budget of epochs, and the metric of every environment at the epoch with the
best metric on the validation data. Only validation data are looked at on the way; the parameters of the best epoch are
kept, and the other environments are evaluated once, at the end.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from tqdm import tqdm

from advdiff.datasets import Dataset
from advdiff.experiments import metrics
from advdiff.experiments.budget import Budget
from advdiff.propagation import SingularGeneratorError, SingularVelocityError

#: How a run can end. ``finished``: all epochs. ``diverged``: the loss or the parameters became NaN or infinite.
#: ``singular``: θI + L could not be inverted. ``out of memory``: as it says, on this machine.
STATUSES = ("finished", "diverged", "singular", "out of memory")
_Singular = (SingularGeneratorError, SingularVelocityError)


@dataclass(frozen=True)
class Outcome:
    """What a training run gave.

    Attributes:
        status: one of :data:`STATUSES`; ``reason`` says more where it is not ``finished``.
        metrics: environment → metric at the chosen epoch; None where it is not defined.
        valid_metric: mean over the validation environments at the chosen epoch.
        chosen_epoch: counted from 1; None if no epoch had a finite validation metric.
        epochs: epochs trained.
        seconds_per_epoch: median, training only.
        seconds: all of it, evaluation included.
    """

    status: str
    metrics: dict[str, float | None]
    valid_metric: float | None
    chosen_epoch: int | None
    epochs: int
    seconds_per_epoch: float | None
    seconds: float
    reason: str = ""


def train(
    model: nn.Module,
    data: Dataset,
    budget: Budget,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    environments: Iterable[str] | None = None,
    progress: str | None = None,
) -> Outcome:
    """Train ``model`` (in place; it ends with the parameters of the chosen epoch).

    Args:
        seed: of the order of the batches. Initialisation and dropout follow torch's random state, see
            :func:`advdiff.experiments.devices.repeatable`.
        environments: those to evaluate at the end; all by default.
        progress: label of a progress bar, none without.
    """
    device = torch.device(device)
    start, durations = time.perf_counter(), []
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=budget.learning_rate, weight_decay=budget.weight_decay)
    batches = _shuffled(data.graphs(*data.train), budget.batch_size, device, seed)
    valid = {name: list(_in_order(data.graphs(name), budget.batch_size, device)) for name in data.valid}

    status, reason, chosen, best, kept = "finished", "", None, math.nan, {}
    epoch = 0
    with tqdm(total=budget.epochs, desc=progress, unit="epoch", leave=False, disable=None if progress else True) as bar:
        try:
            for epoch in range(1, budget.epochs + 1):
                began = time.perf_counter()
                finite = _train_epoch(model, optimizer, batches, data.metric, device)
                durations.append(time.perf_counter() - began)
                if not finite:
                    status, reason = "diverged", f"the loss was not finite in epoch {epoch}"
                    break
                if epoch % budget.evaluate_every == 0 or epoch == budget.epochs:
                    value = statistics.fmean(_evaluate(model, graphs, data.metric) for graphs in valid.values())
                    if metrics.better(data.metric, value, best):
                        best, chosen = value, epoch
                        kept = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
                        bar.set_postfix_str(f"valid {data.metric} {best:.4g}", refresh=False)
                bar.update()
        except _Singular as error:
            status, reason = "singular", str(error)
        except ValueError:  # the models refuse NaN in their input, and broken parameters produce it
            if all(bool(parameter.isfinite().all()) for parameter in model.parameters()):
                raise
            status, reason = "diverged", f"the parameters were not finite after epoch {epoch}"

    if status == "finished" and chosen is None:
        status, reason = "diverged", "the metric on the validation data was never finite"
    found: dict[str, float | None] = {}
    if chosen is not None:
        model.load_state_dict(kept)
        for name in data.environments if environments is None else environments:
            try:
                value = _evaluate(model, _in_order(data.graphs(name), budget.batch_size, device), data.metric)
            except _Singular as error:
                value, status, reason = math.nan, "singular", f"{name}: {error}"
            found[name] = value if math.isfinite(value) else None
    return Outcome(
        status=status,
        reason=reason,
        metrics=found,
        valid_metric=None if math.isnan(best) else best,
        chosen_epoch=chosen,
        epochs=epoch,
        seconds_per_epoch=statistics.median(durations) if durations else None,
        seconds=time.perf_counter() - start,
    )


def predict(model: nn.Module, graph: Data) -> Tensor:
    """The model's output for a graph or a batch of graphs."""
    out: Tensor = model(
        graph.x,
        graph.edge_index,
        edge_weight=graph.get("edge_weight"),
        edge_attr=graph.get("edge_attr"),
        batch=graph.get("batch"),
        edge_label_index=graph.get("edge_label_index"),
    )
    return out


def _train_epoch(
    model: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable[Data], metric: str, device: torch.device
) -> bool:
    model.train()
    for graph in batches:
        graph = graph.to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = metrics.loss(metric, predict(model, graph), graph.y, graph.get("mask"))
        if not math.isfinite(float(loss.detach())):
            return False
        loss.backward()
        optimizer.step()
    return True


@torch.no_grad()
def _evaluate(model: nn.Module, batches: Iterable[Data], metric: str) -> float:
    """The metric over all graphs of an environment together."""
    model.eval()
    rows = [(predict(model, graph), graph.y, graph.get("mask")) for graph in batches]
    output, target = torch.cat([row[0] for row in rows]), torch.cat([row[1] for row in rows])
    masks = [row[2] for row in rows if row[2] is not None]
    return metrics.metric(metric)(output, target, torch.cat(masks) if masks else None)


def _shuffled(graphs: Sequence[Data], batch_size: int, device: torch.device, seed: int) -> Iterable[Data]:
    """One graph as it is; many in batches, in a new order every epoch."""
    if len(graphs) == 1:
        return [copy(graphs[0]).to(device)]  # .to() works in place, and the data may be shared with other runs
    return DataLoader(list(graphs), batch_size=batch_size, shuffle=True, generator=torch.Generator().manual_seed(seed))


def _in_order(graphs: Sequence[Data], batch_size: int, device: torch.device) -> Iterable[Data]:
    if len(graphs) == 1:
        yield copy(graphs[0]).to(device)
    else:
        for batch in DataLoader(list(graphs), batch_size=batch_size):
            yield batch.to(device)
