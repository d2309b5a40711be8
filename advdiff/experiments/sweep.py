"""``run``: make the runs of an experiment that are not recorded yet, and record them as they are finished."""

from __future__ import annotations

import functools
import json
import os
import traceback
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from tqdm import tqdm

from advdiff import datasets
from advdiff.datasets import Dataset
from advdiff.experiments import records
from advdiff.experiments.fitting import fit
from advdiff.experiments.machine import choose_device
from advdiff.experiments.packing import packed
from advdiff.experiments.plan import Plan, plans
from advdiff.experiments.recipes import find
from advdiff.experiments.records import Record
from advdiff.experiments.workers import Failure, Result, SweepError, results_of


def run(
    experiment: str,
    model: str | Iterable[str] = "all",
    seeds: int | Iterable[int] = (0,),
    profile: str | None = None,
    device: str = "auto",
    jobs: int = 1,
    dask: str | None = None,
    results: str | os.PathLike[str] = "results",
    settings: Mapping[str, Any] | None = None,
    data_seed: int | None = None,
    threads: int | None = None,
    progress: bool = True,
    **options: Any,
) -> list[Record]:
    """Train models on the data of an experiment and return the records, one per run.

    Runs that are recorded in ``results`` already are not made again: after an interruption, the same call goes on.

    Args:
        experiment: name of a recipe, ``"synthetic"`` for example.
        model: a name, several, or ``"all"`` of the recipe.
        seeds: list of seeds, or how many. A seed decides the data, where they are drawn, and the initialisation; so
            models are compared on the same data, seed by seed.
        profile: ``"quick"`` or ``"full"``; by default ``$ADVDIFF_PROFILE``, else quick.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, ``"mps"``.
        jobs: processes. Each has one thread; alone, a run uses torch's number of threads.
        dask: address of a Dask scheduler, instead of local processes.
        results: folder of the records, or a file that ends in ``.jsonl``.
        settings: replace settings of the models, or of the budget (``epochs``, ``lr``, …). With several models, each
            takes what it has.
        data_seed: the same data for all seeds.
        threads: torch threads of a run. Sums depend in their last digits on it.
        progress: show bars on a terminal.
        options: of the data set; a list means each of its values.

    Example:
        >>> import tempfile
        >>> from advdiff.experiments import run
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     records = run("synthetic", ["mlp", "advdifformer-s"], seeds=2, settings={"epochs": 2}, num_nodes=30,
        ...                   shift="none", profile="quick", device="cpu", results=folder, progress=False)
        >>> [(record.plan.model, record.plan.seed, record.outcome.status) for record in records][:2]
        [('mlp', 0, 'finished'), ('advdifformer-s', 0, 'finished')]
    """
    recipe = find(experiment)
    planned = plans(recipe, model, seeds, profile, settings, data_seed, options)
    choose_device(device)
    return sweep(
        planned,
        results_file(results, recipe.name),
        device=device,
        processes=jobs,
        dask=dask,
        threads=threads,
        progress=progress,
    )


def sweep(
    planned: Sequence[Plan],
    path: Path,
    *,
    device: str = "auto",
    processes: int = 1,
    dask: str | None = None,
    threads: int | None = None,
    progress: bool = True,
) -> list[Record]:
    """Make the runs that are not recorded in ``path`` yet, and return the records of all, in the order given.

    A run that raises does not stop the others; what was raised is told at the end.

    Args:
        processes: on this machine; 1 is this one.
        dask: address of a Dask scheduler, ``"tcp://host:8786"``, instead of local processes.
        threads: torch threads of a run. With several processes 1, alone what torch has.
    """
    if processes < 1:
        raise ValueError(f"jobs is {processes}; it must be at least 1.")
    found = {record.key: record for record in records.read(path) if record.complete}
    todo = list({plan.key: plan for plan in planned if plan.key not in found}.values())
    if todo:
        records.check_writable(path)
    failures: list[Failure] = []
    alone = dask is None and min(processes, len(todo)) <= 1
    work = functools.partial(
        attempt,
        device=device,
        threads=threads if threads is not None or alone else 1,
        progress=progress and alone,
    )
    results = results_of(work, todo, 1 if alone else processes, dask)
    bar = tqdm(
        total=len(planned),
        initial=len(planned) - len(todo),
        desc="runs",
        unit="run",
        disable=None if progress else True,
    )
    with closing(results), bar:  # closed at once, also when interrupted: then the workers end
        for result in results:
            if isinstance(result, Record):
                _write(path, result)
                found[result.key] = result
            else:
                failures.append(result)
            bar.update()
    if failures:
        first = f"{failures[0].plan.label()}: {failures[0].why}"
        raise SweepError(f"{len(failures)} of {len(todo)} runs failed, the others are in {path}; {first}", failures)
    return [found[plan.key] for plan in planned]


def execute(
    plan: Plan,
    device: str = "auto",
    threads: int | None = None,
    progress: bool = False,
    protocol: str | None = None,
    keep: int = 0,
) -> Record:
    """Make one run: load its data, build its model, train, and say how it went.

    Args:
        protocol: hash of the protocol that asks for the run.
        keep: put the predictions on the test data into the record if they are at most so many numbers.
    """
    data = load(plan)
    fitted = fit(
        plan.model,
        data,
        seed=plan.seed,
        device=device,
        threads=threads,
        environments=(*data.train, *data.valid) if plan.only_valid else None,
        progress=progress,
        plan=plan,
    )
    tests = {name: fitted.predictions[name] for name in data.test if name in fitted.predictions}
    few = sum(each.numel() for each in tests.values()) <= keep
    kept = {name: [packed(each), packed(_labels(data, name))] for name, each in tests.items() if few}
    record = fitted.record
    return replace(
        record,
        outcome=replace(record.outcome, predictions=kept),
        provenance=replace(record.provenance, protocol=protocol),
    )


def _labels(data: Dataset, environment: str) -> Tensor:
    """The labels of the rows that count."""
    rows = [graph.y if graph.get("mask") is None else graph.y[graph.mask] for graph in data.graphs(environment)]
    return torch.cat(rows)


def load(plan: Plan) -> Dataset:
    """The data of a plan; the last ones stay in memory, since the models of a sweep share them."""
    options = dict(plan.options)
    if plan.data_seed is not None:
        options["seed"] = plan.data_seed
    return _load(plan.dataset, json.dumps(options, sort_keys=True))


@functools.lru_cache(maxsize=2)
def _load(dataset: str, options: str) -> Dataset:
    return datasets.load(dataset, **json.loads(options))


def attempt(plan: Plan, **how: Any) -> Result:
    """A record, or why there is none."""
    try:
        return execute(plan, **how)
    except Exception as error:
        return Failure(plan, f"{type(error).__name__}: {error}", traceback.format_exc())


def _write(path: Path, record: Record) -> None:
    try:
        records.append(path, record)
    except OSError as error:
        raise SweepError(
            f"could not write {path} ({error.strerror or error}); what is in it is complete: "
            "make room or choose another folder, and give the same command again."
        ) from error


def results_file(results: str | os.PathLike[str], name: str) -> Path:
    """``results/<name>.jsonl``, or the file itself where one is given."""
    path = Path(results)
    is_folder = path.suffix != ".jsonl"
    if path.exists() and path.is_dir() != is_folder:
        raise ValueError(
            f"{path} is a {'file' if is_folder else 'folder'}; results are kept in a folder or in a file .jsonl."
        )
    return path / f"{name}.jsonl" if is_folder else path
