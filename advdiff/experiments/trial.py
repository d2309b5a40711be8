"""The trial: search alike for every model, then train the chosen settings to the end.

A search is synchronous successive halving on validation data: all candidates of a model train for a few epochs, the
best few go on for longer, and the winner is trained with the full schedule and several seeds, which alone look at the
test data. What comes next follows from the records alone, so that a trial can be killed at any time and goes on from
there, with any number of processes, to the same end.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from advdiff.experiments import metrics, records
from advdiff.experiments.plan import Plan
from advdiff.experiments.protocol import Curve, Protocol, Settings, Study
from advdiff.experiments.records import Record
from advdiff.experiments.sweep import attempt
from advdiff.experiments.workers import Result, results_of

FOLDER = Path("results/trial")
#: Predictions on test data of at most so many numbers are kept in the records (molecules, not networks).
KEPT_PREDICTIONS = 5000
Records = Mapping[str, Record]


@dataclass(frozen=True)
class Stage:
    """Runs that do not wait for each other: a rung of a search, or the final runs of a setting."""

    study: Study
    model: str
    what: str  # "search", "final", "published" or the name of a curve
    plans: list[Plan]

    def missing(self, done: Records) -> list[Plan]:
        return [plan for plan in self.plans if plan.key not in done]


def stages(protocol: Protocol, study: Study, model: str, done: Records) -> Iterator[Stage]:
    """The stages of a model in a study, as far as the records tell which they are."""
    candidates = protocol.candidates(study, model)
    alive = list(range(len(candidates)))
    for place, (_, epochs) in enumerate(study.rungs):
        rung = [study.plan(model, candidates[c], epochs, study.search_seed, only_valid=True) for c in alive]
        stage = Stage(study, model, "search", rung)
        yield stage
        if stage.missing(done):
            return
        going_on = study.rungs[place + 1][0] if place + 1 < len(study.rungs) else 1
        alive = [alive[i] for i in ranked([done[plan.key] for plan in rung])[:going_on]]
    chosen = candidates[alive[0]]
    yield Stage(study, model, "final", final_plans(study, model, chosen, done))
    for curve in protocol.curves:
        if (curve.study, curve.model) == (study.name, model):
            yield Stage(study, model, curve.name, curve_plans(study, curve, chosen, done))
    if model in study.published:
        yield Stage(study, model, "published", final_plans(study, model, candidates[0], done))


def ranked(rung: list[Record]) -> list[int]:
    """Places in the rung, the best on validation data first; runs without a number come last, ties keep their order."""

    def badness(place: int) -> float:
        outcome = rung[place].outcome
        if outcome.valid_metric is None:
            return math.inf
        return -outcome.valid_metric if outcome.metric in metrics.HIGHER_IS_BETTER else outcome.valid_metric

    return sorted(range(len(rung)), key=badness)


def final_plans(study: Study, model: str, settings: Settings, done: Records) -> list[Plan]:
    """Every seed with the schedule that it needs."""
    return [_to_the_end(study, model, settings, seed, done) for seed in study.seeds]


def curve_plans(study: Study, curve: Curve, chosen: Settings, done: Records) -> list[Plan]:
    """The chosen settings with one of them varied."""
    points = [({**chosen, **curve.settings, curve.axis: value}, seed) for value in curve.values for seed in curve.seeds]
    return [_to_the_end(study, curve.model, settings, seed, done) for settings, seed in points]


def _to_the_end(study: Study, model: str, settings: Settings, seed: int, done: Records) -> Plan:
    """A final run; twice as long as one that was still improving at its end, until the whole schedule is used."""
    epochs = study.epochs
    while True:
        plan = study.plan(model, settings, epochs, seed, only_valid=False)
        if plan.key not in done or done[plan.key].converged or epochs >= study.longest:
            return plan
        epochs = min(2 * epochs, study.longest)


def is_converged(study: Study, record: Record) -> bool:
    """Whether a final run may be judged: it used the whole schedule, or was no longer improving when it ended."""
    return record.converged or (record.outcome.status == "finished" and record.plan.budget.epochs >= study.longest)


def all_stages(protocol: Protocol, done: Records) -> Iterator[Stage]:
    """Every stage that can be told, in the order in which they are run: study by study, published settings last."""
    later: list[Stage] = []
    for study in protocol.studies:
        for model in study.models:
            for stage in stages(protocol, study, model, done):
                if stage.what == "published":
                    later.append(stage)
                else:
                    yield stage
    yield from later


@dataclass
class Queue:
    """The runs of a trial, one by one: ``next`` is a plan, or None while all that is ready is being made."""

    protocol: Protocol
    done: dict[str, Record]
    started: dict[str, Stage] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)

    def __iter__(self) -> Queue:
        return self

    def __next__(self) -> Plan | None:
        for stage in all_stages(self.protocol, self.done):
            for plan in stage.missing(self.done):
                if plan.key not in self.started:
                    self.started[plan.key] = stage
                    return plan
        if self.started.keys() - self.done.keys() - self.failed:
            return None
        raise StopIteration


def file_of(study: Study, folder: Path = FOLDER) -> Path:
    """Where the records of a study lie."""
    return folder / f"{study.name}.jsonl"


def read_trial(protocol: Protocol, folder: Path = FOLDER) -> dict[str, Record]:
    """Key → record, for all runs that were made under this protocol or a version of it that it amends."""
    valid = {protocol.hash, *protocol.earlier}
    found = (record for study in protocol.studies for record in records.read(file_of(study, folder)))
    return {record.key: record for record in found if record.complete and record.provenance.protocol in valid}


def run_trial(
    protocol: Protocol,
    folder: Path = FOLDER,
    *,
    processes: int = 2,
    dask: str | None = None,
    device: str = "auto",
    hours: float | None = None,
    say: Callable[[str], None] = print,
) -> int:
    """Make the runs of the protocol that are not recorded yet; a line for each. Returns how many failed.

    Args:
        processes: on this machine. ``dask``: address of a scheduler, instead.
        hours: begin no further run after so many.
    """
    queue = Queue(protocol, read_trial(protocol, folder))
    unfinished = (stage.study for stage in all_stages(protocol, queue.done) if stage.missing(queue.done))
    for path in sorted({file_of(study, folder) for study in unfinished}):
        records.check_writable(path)
    began = time.monotonic()

    def until_time() -> Iterator[Plan | None]:
        for plan in queue:
            if hours is not None and time.monotonic() - began > 3600 * hours:
                return
            yield plan

    work = functools.partial(
        attempt, device=device, threads=1, progress=False, protocol=protocol.hash, keep=KEPT_PREDICTIONS
    )
    results = results_of(work, until_time(), processes, dask)
    with closing(results):
        for result in results:
            say(_line(queue, result, folder))
    return len(queue.failed)


def _line(queue: Queue, result: Result, folder: Path) -> str:
    """Record a result, and say in a line what it was."""
    stage = queue.started[result.plan.key]
    what = f"{stage.study.name:20s} {stage.what:9s} {result.plan.label()}"
    if not isinstance(result, Record):
        queue.failed.add(result.plan.key)
        return f"{what}: FAILED, {result.why}"
    records.append(file_of(stage.study, folder), result)
    queue.done[result.key] = result
    outcome = result.outcome
    number = "no number" if outcome.valid_metric is None else f"valid {outcome.metric} {outcome.valid_metric:.4f}"
    where = f"epoch {outcome.chosen_epoch} of {outcome.epochs}"
    return f"{what}: {outcome.status}, {number} at {where}, {outcome.seconds:.0f} s"
