"""Full-graph training of one model on one graph, be it whole or spread over ranks: the same loop for both.

The loss is the mean over the training nodes of all ranks, and the metric the mean over their validation nodes. A rank
calls ``backward`` on its share of the loss, and the shares of the gradients are added up before each step, so that the
weights stay the same everywhere.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import safetensors.torch
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch_geometric.data import Data

from advdiff.atomic import replacing
from advdiff.distributed.settings import Settings
from advdiff.distributed.shard import Shard, Sharded, add_up_gradients
from advdiff.experiments import metrics
from advdiff.nn import AdvDIFFormer
from advdiff.nn.model import GraphModel
from advdiff.operators.reductions import WHOLE, Reductions


class Graph(Protocol):
    """What the loop asks of a graph."""

    rank: int
    x: Tensor
    y: Tensor
    train_mask: Tensor
    val_mask: Tensor
    reductions: Reductions
    outputs: int

    def on(self, model: GraphModel) -> Callable[[Tensor], Tensor]:
        """The model as a function of x alone."""

    def synchronise(self, model: nn.Module) -> None:
        """Make the gradients those of the loss over all nodes."""

    def from_first(self, value: Any) -> Any:
        """What the first rank has, everywhere."""


class _Labelled:
    """Features, labels and masks in the precision and on the device of the training."""

    reductions: Reductions

    def __init__(self, given: Any, classes: int, settings: Settings, device: torch.device) -> None:
        found: list[Tensor] = []
        for name in ("x", "y", "train_mask", "val_mask"):
            value = given.get(name) if isinstance(given, Data) else getattr(given, name)
            if value is None:
                raise ValueError(f"the data have no {name}; training needs x, y, train_mask and val_mask.")
            found.append(value.to(device))
        x, y, self.train_mask, self.val_mask = found
        self.x = x.to(getattr(torch, settings.dtype))
        self.y = y.flatten() if not y.is_floating_point() else y
        self.outputs = (self.y.size(-1) if self.y.dim() > 1 else 1) if self.y.is_floating_point() else classes


class Whole(_Labelled):
    """A graph in one process."""

    rank, reductions = 0, WHOLE

    def __init__(self, data: Data, settings: Settings, device: torch.device) -> None:
        from advdiff.distributed.partitioning import count_classes

        super().__init__(data, count_classes(data.get("y")), settings, device)
        given = (data.edge_index, data.get("edge_weight"), data.get("edge_attr"))
        self.edges = tuple(None if tensor is None else tensor.to(device) for tensor in given)

    def on(self, model: GraphModel) -> Callable[[Tensor], Tensor]:
        return lambda x: model(x, *self.edges)

    def synchronise(self, model: nn.Module) -> None:
        pass

    def from_first(self, value: Any) -> Any:
        return value


class Spread(_Labelled):
    """A graph of which this rank holds a shard."""

    def __init__(self, shard: Shard, settings: Settings, device: torch.device) -> None:
        super().__init__(shard, shard.summary.classes, settings, device)
        self.shard, self.rank, self.reductions = shard, shard.rank, shard.reductions

    def on(self, model: GraphModel) -> Callable[[Tensor], Tensor]:
        return Sharded(model, self.shard)

    def synchronise(self, model: nn.Module) -> None:
        add_up_gradients(model.parameters(), self.shard.reductions)

    def from_first(self, value: Any) -> Any:
        box = [value]
        dist.broadcast_object_list(box, src=0, group=self.shard.reductions.group)
        return box[0]


@dataclass(frozen=True)
class Epoch:
    """Loss before the step of an epoch and metric after it; accuracy of class numbers, else the mean squared error.

    Example:
        >>> print(Epoch(3, 1.234567, 0.5432))
        epoch 3 loss 1.234567 valid 0.5432
    """

    number: int
    loss: float
    valid: float

    def __str__(self) -> str:
        return f"epoch {self.number} loss {self.loss:.6f} valid {self.valid:.4f}"


def train(
    graph: Graph,
    settings: Settings,
    *,
    report: Callable[[Epoch], None] = print,
    checkpoint: Path | None = None,
    resume: bool = False,
) -> AdvDIFFormer:
    """Train a new model, or the one of the checkpoint, to its last epoch.

    Args:
        report: is called by the first rank after every epoch.
        checkpoint: a file that the first rank replaces after every epoch.
        resume: go on from it; from the beginning if it does not exist yet.
    """
    torch.manual_seed(settings.seed)
    model = AdvDIFFormer(graph.x.size(1), settings.hidden, graph.outputs, **settings.of_model())
    model.to(device=graph.x.device, dtype=graph.x.dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    found = read_checkpoint(checkpoint, settings) if resume and checkpoint is not None and graph.rank == 0 else None
    # Also what is drawn alike is sent: another kind of processor might draw something else.
    state, of_optimizer, done = graph.from_first(found or (model.state_dict(), None, 0))
    model.load_state_dict(state)
    if of_optimizer is not None:
        optimizer.load_state_dict(of_optimizer)
    for number in range(done + 1, settings.epochs + 1):
        # A seed for every rank and epoch: other masks everywhere, and the same ones after an interruption.
        torch.manual_seed((settings.seed * 1_000_003 + number) * 4096 + graph.rank)
        loss = _step(graph, model, optimizer)
        epoch = Epoch(number, loss, evaluate(graph, model, graph.val_mask))
        if graph.rank == 0:
            if checkpoint is not None:
                write_checkpoint(checkpoint, settings, model, optimizer, number)
            report(epoch)
    return model


def _step(graph: Graph, model: AdvDIFFormer, optimizer: torch.optim.Optimizer) -> float:
    model.train()
    optimizer.zero_grad(set_to_none=True)
    share = _share(graph, graph.train_mask, "train_mask")
    loss = metrics.loss(_metric(graph), graph.on(model)(graph.x), graph.y, graph.train_mask) * share
    loss.backward()
    total = float(graph.reductions.add(loss.detach().clone()))
    if not math.isfinite(total):
        raise ValueError(f"the loss is {total}; lower --lr, or look at the features.")
    graph.synchronise(model)
    optimizer.step()
    return total


@torch.no_grad()
def evaluate(graph: Graph, model: GraphModel, mask: Tensor) -> float:
    """The metric over the nodes of a mask, on all ranks."""
    model.eval()
    share = _share(graph, mask, "val_mask")
    output, name = graph.on(model)(graph.x), _metric(graph)
    part = metrics.metric(name)(output, graph.y, mask) * share if share else 0.0
    return float(graph.reductions.add(torch.tensor(part, dtype=torch.float64, device=graph.x.device)))


def _metric(graph: Graph) -> str:
    return "mse" if graph.y.is_floating_point() else "accuracy"


def _share(graph: Graph, mask: Tensor, name: str) -> float:
    """This rank's share of the labels that count."""
    labels = graph.y[mask]
    known = (~labels.isnan()).sum() if labels.is_floating_point() else torch.tensor(labels.numel())
    here = known.to(device=graph.x.device, dtype=torch.float64)
    everywhere = float(graph.reductions.add(here.clone()))
    if not everywhere:
        raise ValueError(f"{name} selects no labelled node; training needs some.")
    return float(here) / everywhere


def write_checkpoint(
    path: Path, settings: Settings, model: nn.Module, optimizer: torch.optim.Optimizer, epoch: int
) -> None:
    """Weights, optimiser and epoch, whole or not at all."""
    content = {
        "settings": settings.must_agree(),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "epoch": epoch,
    }
    with replacing(path) as file:
        torch.save(content, file)


def read_checkpoint(path: Path, settings: Settings) -> tuple[dict[str, Tensor], dict[str, Any], int] | None:
    """What :func:`write_checkpoint` wrote, if the settings are the same; None without a file."""
    try:
        found = torch.load(path, weights_only=True, map_location="cpu")
        kept = found["settings"]
        state = found["model"], found["optimizer"], found["epoch"]
    except FileNotFoundError:
        return None
    except (RuntimeError, EOFError, KeyError, TypeError, pickle.UnpicklingError):
        raise ValueError(f"{path} is not a checkpoint, or damaged; start without --resume.") from None
    wanted = settings.must_agree()
    other = sorted(name for name in wanted if kept.get(name) != wanted[name])
    if other:
        values = ", ".join(f"{name} {kept.get(name)!r}, not {wanted[name]!r}" for name in other)
        raise ValueError(f"{path} was made with {values}; give the same settings, or start without --resume.")
    return state


def save_weights(path: Path, model: nn.Module) -> None:
    """The weights in the format of :func:`advdiff.experiments.load_weights`."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    with replacing(path) as file:
        file.write(safetensors.torch.save(weights))
