"""``fit``: train any model on any data, and keep what came of it."""

from __future__ import annotations

import json
import os
import re
import statistics
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import Tensor
from torch_geometric.data import Data

from advdiff import nn
from advdiff.atomic import replacing
from advdiff.datasets import Dataset
from advdiff.experiments import machine
from advdiff.experiments.plan import Plan
from advdiff.experiments.recipe import Budget
from advdiff.experiments.records import Outcome, Provenance, Record
from advdiff.experiments.training import Training, train
from advdiff.propagation import NearSingularWarning

#: torch has one random state and one number of threads per process, so a worker with several threads (as Dask's may be)
#: trains one model after the other.
_ONE_AT_A_TIME = threading.RLock()
BUDGET = Budget(epochs=200, learning_rate=1e-3, patience=50)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and how it got there.

    Attributes:
        model: with the weights of the chosen epoch, in evaluation mode; None if there was no memory to build it.
        curve: epoch → metric on the validation data.
        predictions: environment → the model's output for the rows that count; what was evaluated at the end.
        record: plan, outcome and provenance.

    Example:
        >>> import torch
        >>> from advdiff.datasets import load
        >>> from advdiff.experiments import Budget, fit
        >>> fitted = fit("sgc", load("small_graphs", num_graphs=8), budget=Budget(3, 1e-2), progress=False)
        >>> list(fitted.curve), fitted.record.outcome.chosen_epoch in fitted.curve
        ([1, 2, 3], True)
    """

    model: torch.nn.Module | None
    curve: dict[int, float]
    predictions: dict[str, Tensor]
    record: Record = field(repr=False)

    @property
    def metrics(self) -> dict[str, float | None]:
        """Environment → metric at the chosen epoch."""
        return self.record.outcome.metrics

    def save(self, path: str | os.PathLike[str]) -> None:
        """The weights, as safetensors with the record in the metadata; :func:`load_weights` reads them."""
        if self.model is None:
            raise ValueError("there is no model to save: there was no memory to build it.")
        weights = {name: tensor.contiguous() for name, tensor in self.model.state_dict().items()}
        with replacing(Path(path)) as file:
            file.write(safetensors.torch.save(weights, {"record": json.dumps(self.record.as_dict())}))

    def save_predictions(self, path: str | os.PathLike[str]) -> None:
        """The predictions, one array per environment, as a compressed npz file."""
        arrays: dict[str, Any] = {name: tensor.numpy() for name, tensor in self.predictions.items()}
        with replacing(Path(path)) as file:
            np.savez_compressed(file, **arrays)


def load_weights(model: torch.nn.Module, path: str | os.PathLike[str]) -> torch.nn.Module:
    """Give a model the weights of a file that :meth:`Fitted.save` wrote, and put it into evaluation mode.

    Example:
        >>> import pathlib, tempfile
        >>> from advdiff import nn
        >>> from advdiff.datasets import load
        >>> from advdiff.experiments import Budget, fit, load_weights
        >>> data = load("small_graphs", num_graphs=8)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "sgc.safetensors")
        ...     fit("sgc", data, budget=Budget(1, 1e-2), progress=False).save(path)
        ...     model = load_weights(nn.build("sgc", data.in_channels, 64, data.out_channels, task="graph"), path)
        >>> model.training
        False
    """
    try:
        weights = safetensors.torch.load_file(path)
    except (OSError, safetensors.SafetensorError) as error:
        raise ValueError(f"{path} cannot be read as weights ({error}); it must be a file of Fitted.save.") from error
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"the weights of {path} are those of another model: {str(error).splitlines()[-1]}") from error
    return model.eval()


def fit(
    model: str | torch.nn.Module,
    data: Dataset | Data | Mapping[str, Any],
    *,
    metric: str | None = None,
    task: str = "node",
    budget: Budget | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    device: str = "auto",
    threads: int | None = None,
    environments: Iterable[str] | None = None,
    progress: bool = True,
    plan: Plan | None = None,
) -> Fitted:
    """Train a model and choose its epoch on validation data.

    Args:
        model: a name (:func:`advdiff.nn.model_names`), which is built for the data, or any module that is called as
            ``model(x, edge_index, …)`` with ``edge_weight``, ``edge_attr``, ``batch`` or ``edge_label_index`` where its
            ``forward`` has them; it is trained in place.
        data: a :class:`~advdiff.datasets.Dataset`; one PyG ``Data`` with ``train_mask``, ``val_mask`` and
            ``test_mask``; or lists of graphs by environment, ``{"train": […], "valid": […], "test": […]}``.
        metric: ``"accuracy"``, ``"roc_auc"``, ``"mse"`` or ``"rmse"``; by default that of the data. It chooses the
            epoch, and the loss that goes with it is minimised.
        task: ``"node"``, ``"edge"`` or ``"graph"``, what a row of the labels belongs to; for lists of graphs.
        budget: epochs, learning rate, patience, …; by default 200 epochs at 1e-3 with a patience of 50.
        seed: of the initialisation (of a model given by name), of dropout and of the order of batches.
        settings: of a model given by name, with ``hidden_channels``.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        threads: torch threads. Sums depend in their last digits on it.
        environments: those to evaluate at the end; by default all.
        progress: show a bar on a terminal.
        plan: what the record says about the run, where a recipe planned it.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> from advdiff.experiments import Budget, fit
        >>> x = torch.randn(60, 4, generator=torch.Generator().manual_seed(0))
        >>> part = torch.arange(60) % 3
        >>> graph = Data(x=x, edge_index=torch.randint(60, (2, 200)), y=(x[:, 0] > 0).long(),
        ...              train_mask=part == 0, val_mask=part == 1, test_mask=part == 2)
        >>> fitted = fit("advdifformer-s", graph, metric="accuracy", budget=Budget(30, 1e-2), progress=False)
        >>> sorted(fitted.metrics), len(fitted.curve), fitted.predictions["test"].shape
        (['test', 'train', 'valid'], 30, torch.Size([20, 2]))
    """
    chosen = machine.choose_device(device)
    data = as_dataset(data, metric, task)
    metric = metric or data.metric
    names = tuple(data.environments if environments is None else environments)
    data.graphs(*names)  # an unknown name is refused before the training
    name = model if isinstance(model, str) else type(model).__name__
    plan = plan or _plan_of_own(data, name, settings or {}, seed, budget or BUDGET)
    if not isinstance(model, str) and settings:
        raise ValueError("settings are for a model given by name; this one is built already.")
    with _ONE_AT_A_TIME, machine.repeatable(seed, threads):
        meter, start = machine.Meter(chosen), time.perf_counter()
        remarks: list[str] = []
        with _collected(remarks):
            network = None if isinstance(model, str) else model
            try:
                network = network or build(plan, data)
                done = train(
                    network,
                    data,
                    plan.budget,
                    metric=metric,
                    seed=seed,
                    device=chosen,
                    environments=names,
                    progress=plan.label() if progress else None,
                )
            except (MemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
                done = Training("out of memory", "no memory for this run on this machine")
        outcome = Outcome(
            metric=metric,
            status=done.status,
            reason=done.reason,
            remarks=remarks,
            metrics=done.metrics,
            valid_metric=_best(done),
            chosen_epoch=done.chosen_epoch,
            epochs=done.epochs,
            train=list(data.train),
            valid=list(data.valid),
            test=[each for each in data.test if each in names],
            parameters=_parameters(network),
            seconds_per_epoch=_rounded(statistics.median(done.seconds_per_epoch)) if done.seconds_per_epoch else None,
            seconds=_rounded(time.perf_counter() - start),
            cpu_seconds=_rounded(meter.cpu_seconds()),
            peak_memory_gb=_rounded(meter.gigabytes()),
        )
        record = Record(plan, outcome, Provenance.here(chosen))
    return Fitted(network and network.eval(), done.curve, done.predictions, record)


def as_dataset(data: Dataset | Data | Mapping[str, Any], metric: str | None = None, task: str = "node") -> Dataset:
    """Named environments from whatever a user has; the metric is needed where the data do not say it."""
    if isinstance(data, Dataset):
        return data
    if metric is None:
        raise ValueError("metric is None; data of your own need one: accuracy, roc_auc, mse or rmse.")
    if isinstance(data, Data):
        return Dataset.from_masks(data, metric=metric)
    return Dataset.from_graphs(data, task=task, metric=metric)


def build(plan: Plan, data: Dataset) -> torch.nn.Module:
    """The model of a plan, for these data."""
    settings = dict(plan.settings)
    hidden: Any = settings.pop("hidden_channels", 64)
    model: torch.nn.Module = nn.build(
        plan.model, data.in_channels, hidden, data.out_channels, task=data.task, edge_dim=data.edge_dim, **settings
    )
    return model


def _plan_of_own(data: Dataset, model: str, settings: Mapping[str, Any], seed: int, budget: Budget) -> Plan:
    return Plan("", data.name, data.options, model, settings, seed, None, "", budget)


def _parameters(model: torch.nn.Module | None) -> int | None:
    """Numbers that are trained."""
    return None if model is None else sum(each.numel() for each in model.parameters() if each.requires_grad)


def _best(done: Training) -> float | None:
    """The validation metric of the chosen epoch, of a run that went well."""
    return done.curve[done.chosen_epoch] if done.status == "finished" and done.chosen_epoch is not None else None


@contextmanager
def _collected(remarks: list[str]) -> Iterator[None]:
    """Collect the model's warnings about its own equation, which come at every step; show others once.

    Those that differ only in their numbers, as a condition number does from step to step, become one remark.
    """
    with warnings.catch_warnings(record=True) as caught:
        yield
    alike: dict[str, list[str]] = {}
    for category, message in dict.fromkeys((each.category, str(each.message)) for each in caught):
        if issubclass(category, NearSingularWarning):
            alike.setdefault(re.sub(r"[\d.]+(e[+-]\d+)?", "#", message), []).append(message)
        else:
            warnings.warn(message, category, stacklevel=3)
    for messages in alike.values():
        remarks.append(messages[0] + (f" (the first of {len(messages)} like it)" if len(messages) > 1 else ""))


def _is_out_of_memory(error: BaseException) -> bool:
    text = str(error)
    return (
        isinstance(error, MemoryError | torch.OutOfMemoryError)
        or "can't allocate memory" in text
        or "not enough memory" in text
    )


def _rounded(number: float) -> float:
    """Four digits: times and sizes are not known better."""
    return float(f"{number:.4g}")
