"""How far the trial is: what is done, what is not converged, and how many CPU-hours remain."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from advdiff.experiments.protocol import Protocol, Study
from advdiff.experiments.trial import Records, is_converged, stages


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Attributes:
        search, final, curves, published: (runs made, runs in all). A run of the search counts as soon as it is known
            to be needed, so the number in all can only be told once the search is over; until then it is what the
            protocol will need.
        not_converged: final runs that chose their epoch in the last tenth of a schedule shorter than the whole one.
        spent, left: CPU-hours, the second estimated from the runs of the same model that were made.
    """

    study: str
    search: tuple[int, int]
    final: tuple[int, int]
    curves: tuple[int, int]
    published: tuple[int, int]
    not_converged: int
    spent: float
    left: float | None


def progress(protocol: Protocol, done: Records) -> list[Progress]:
    """The state of every study."""
    return [_progress(protocol, study, done) for study in protocol.studies]


def _progress(protocol: Protocol, study: Study, done: Records) -> Progress:
    made: dict[str, int] = {"search": 0, "final": 0, "curves": 0, "published": 0}
    open_ended = 0
    epochs_made: dict[str, float] = {}
    seconds_made: dict[str, float] = {}
    epochs_left: dict[str, float] = {}
    own_curves = [curve for curve in protocol.curves if curve.study == study.name]
    for model in study.models:
        candidates = len(protocol.candidates(study, model))
        ahead = sum(min(entering, candidates) * epochs for entering, epochs in study.rungs)
        of_curves = sum(len(each.values) * len(each.seeds) for each in own_curves if each.model == model)
        finals = len(study.seeds) * (2 if model in study.published else 1)
        ahead += (finals + of_curves) * study.epochs
        for stage in stages(protocol, study, model, done):
            kind = stage.what if stage.what in made else "curves"
            for record in (done[plan.key] for plan in stage.plans if plan.key in done):
                made[kind] += 1
                open_ended += kind == "final" and not is_converged(study, record)
                ahead -= record.plan.budget.epochs
                epochs_made[model] = epochs_made.get(model, 0.0) + record.plan.budget.epochs
                seconds_made[model] = seconds_made.get(model, 0.0) + (record.outcome.cpu_seconds or 0.0)
        epochs_left[model] = max(ahead, 0)
    rates = {model: seconds_made[model] / epochs_made[model] for model in epochs_made}
    usual = statistics.fmean(rates.values()) if rates else None
    left = None if usual is None else sum(epochs_left[m] * rates.get(m, usual) for m in study.models) / 3600
    models = len(study.models)
    searching = sum(min(n, len(protocol.candidates(study, m))) for m in study.models for n, _ in study.rungs)
    return Progress(
        study=study.name,
        search=(made["search"], searching),
        final=(made["final"], models * len(study.seeds)),
        curves=(made["curves"], sum(len(each.values) * len(each.seeds) for each in own_curves)),
        published=(made["published"], len(study.published) * len(study.seeds)),
        not_converged=open_ended,
        spent=sum(seconds_made.values()) / 3600,
        left=left,
    )
