"""Do one run: load, build, train, and say how it went. This is what a worker, here or on another machine, calls."""

from __future__ import annotations

import functools
import json
import re
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from advdiff import datasets, nn
from advdiff.datasets import Dataset
from advdiff.experiments import provenance
from advdiff.experiments.devices import choose_device, repeatable
from advdiff.experiments.jobs import Job
from advdiff.experiments.records import Record
from advdiff.experiments.training import Outcome, train
from advdiff.propagation import NearSingularWarning

#: torch has one random state and one number of threads per process, so a worker with several threads (as Dask's may be)
#: makes one run after the other.
_ONE_AT_A_TIME = threading.Lock()


@functools.lru_cache(maxsize=2)
def _load(dataset: str, options: str) -> Dataset:
    return datasets.load(dataset, **json.loads(options))


def load(job: Job) -> Dataset:
    """The data of a job; the last ones stay in memory, since the models of a sweep share them."""
    options = dict(job.options)
    if job.data_seed is not None:
        options["seed"] = job.data_seed
    return _load(job.dataset, json.dumps(options, sort_keys=True))


def build(job: Job, data: Dataset) -> torch.nn.Module:
    """The model of a job, for these data."""
    settings = dict(job.settings)
    hidden: Any = settings.pop("hidden_channels")
    model: torch.nn.Module = nn.build(
        job.model, data.in_channels, hidden, data.out_channels, task=data.task, edge_dim=data.edge_dim, **settings
    )
    return model


def execute(job: Job, device: str = "auto", threads: int | None = None, progress: bool = False) -> Record:
    """Make a run and return its record.

    Running out of memory is an outcome; any other error is raised.
    """
    chosen = choose_device(device)
    with _ONE_AT_A_TIME, repeatable(job.seed, threads):
        memory = provenance.PeakMemory(chosen)
        data = load(job)
        parameters = None
        remarks: list[str] = []
        try:
            with _collected(remarks):
                model = build(job, data)
                parameters = sum(each.numel() for each in model.parameters() if each.requires_grad)
                outcome = train(
                    model,
                    data,
                    job.budget,
                    seed=job.seed,
                    device=chosen,
                    environments=(*data.train, *data.valid) if job.only_valid else None,
                    progress=job.label() if progress else None,
                )
        except (MemoryError, RuntimeError) as error:
            if not _is_out_of_memory(error):
                raise
            outcome = Outcome("out of memory", {}, None, None, 0, None, 0.0, "no memory for this run on this machine")
        return Record(
            key=job.key,
            **job.definition(),
            status=outcome.status,
            reason=outcome.reason,
            remarks=remarks,
            metrics=outcome.metrics,
            valid_metric=outcome.valid_metric,
            chosen_epoch=outcome.chosen_epoch,
            epochs=outcome.epochs,
            seconds_per_epoch=None if outcome.seconds_per_epoch is None else _rounded(outcome.seconds_per_epoch),
            seconds=_rounded(outcome.seconds),
            train=list(data.train),
            valid=list(data.valid),
            test=[] if job.only_valid else list(data.test),
            parameters=parameters,
            peak_memory_gb=_rounded(memory.gigabytes()),
            versions=provenance.versions(),
            device=str(chosen),
            machine=provenance.machine(chosen),
            commit=provenance.commit(),
            time=provenance.now(),
        )


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
