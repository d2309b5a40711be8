"""``run``: train models of an experiment and record what happened."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from advdiff.experiments import recipes
from advdiff.experiments.devices import choose_device
from advdiff.experiments.jobs import Job, applicable, choose_models, choose_seeds, combinations, resolve
from advdiff.experiments.recipe import Recipe
from advdiff.experiments.records import Record
from advdiff.experiments.sweep import sweep


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
        >>> [(record.model, record.seed, record.status) for record in records][:2]
        [('mlp', 0, 'finished'), ('advdifformer-s', 0, 'finished')]
    """
    recipe = recipes.find(experiment)
    planned = plan(recipe, model, seeds, profile, settings, data_seed, options)
    choose_device(device)
    return sweep(
        planned,
        results_file(results, recipe.name),
        device=device,
        workers=jobs,
        dask=dask,
        threads=threads,
        progress=progress,
    )


def plan(
    recipe: Recipe,
    model: str | Iterable[str] = "all",
    seeds: int | Iterable[int] = (0,),
    profile: str | None = None,
    settings: Mapping[str, Any] | None = None,
    data_seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    only_valid: bool = False,
) -> list[Job]:
    """The runs of a call of :func:`advdiff.experiments.run`, checked."""
    profile = profile or default_profile()
    models = choose_models(recipe, model)
    chosen_seeds = choose_seeds(seeds)
    overrides = applicable(models, settings)
    if data_seed is not None and not recipe.seeded_data:
        raise ValueError(f"the data of {recipe.name} are not drawn: data_seed has no meaning there.")
    planned = []
    for combination in combinations(recipe, profile, options or {}):
        for seed in chosen_seeds:
            for name in models:  # innermost, so that the data are loaded once for all of them
                resolved, budget = resolve(recipe, name, profile, overrides[name])
                planned.append(
                    Job(
                        experiment=recipe.name,
                        dataset=recipe.dataset,
                        metric=recipe.metric_of(combination),
                        options=combination,
                        model=name,
                        settings=resolved,
                        seed=seed,
                        data_seed=(seed if data_seed is None else data_seed) if recipe.seeded_data else None,
                        profile=profile,
                        budget=budget,
                        only_valid=only_valid,
                    )
                )
    return planned


def default_profile() -> str:
    """``$ADVDIFF_PROFILE``, else quick."""
    return os.environ.get("ADVDIFF_PROFILE") or "quick"


def results_file(results: str | os.PathLike[str], name: str) -> Path:
    """``results/<name>.jsonl``, or the file itself where one is given."""
    path = Path(results)
    return path if path.suffix == ".jsonl" else path / f"{name}.jsonl"
