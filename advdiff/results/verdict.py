"""Verdicts on the paper's statements: one function of the protocol and the records, and nothing else.

Every statement of the protocol is a set of contrasts, differences of two means over seeds, positive where the statement
is right. Variances are pooled over all models of the study (for molecules, these are drawn again together with the
seeds), intervals have the level 95 %, and a sign counts if it survives Holm's correction over the statement's family. A
contrast is then

- *level* if its interval lies within the margin below which a difference does not matter,
- *right* or *wrong* if its interval lies wholly on one side of zero and the sign survives,
- *open* otherwise.

Nothing is said from runs that are missing or were still improving when their schedule ended.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from advdiff.experiments import metrics
from advdiff.experiments.protocol import Protocol, Statement, Study
from advdiff.experiments.records import Record
from advdiff.experiments.trial import is_converged, stages
from advdiff.results.compare import Contrast, pooled
from advdiff.results.curvature import curvature
from advdiff.results.frame import value_of
from advdiff.results.resample import interval, resampled_means

VERDICTS = ("holds", "holds with a condition", "level", "not decided", "fails")
LEVEL = 0.95


@dataclass(frozen=True)
class Verdict:
    """What became of a statement.

    Attributes:
        contrasts: the differences that decided; ``relations`` what each of them says: ``"right"``, ``"wrong"``,
            ``"level"`` or ``"open"``.
        waiting: what is missing, where it cannot be judged yet.
    """

    statement: Statement
    verdict: str
    contrasts: tuple[Contrast, ...] = ()
    relations: tuple[str, ...] = ()
    waiting: str = ""


class _WaitingError(Exception):
    """Runs that a statement needs are not there, or not converged."""


def verdicts(protocol: Protocol, done: Mapping[str, Record]) -> dict[str, Verdict]:
    """The verdict on every statement of the protocol, by its name."""
    found: dict[str, list[Contrast]] = {}
    waiting: dict[str, str] = {}
    for statement in protocol.statements:
        try:
            found[statement.name] = _contrasts(protocol, statement, done)
        except _WaitingError as why:
            waiting[statement.name] = str(why)
    signs = _surviving(protocol, found)
    result = {}
    for statement in protocol.statements:
        if statement.name in waiting:
            result[statement.name] = Verdict(statement, "not decided", waiting=waiting[statement.name])
            continue
        margin = _study_of(protocol, statement).margin
        contrasts = tuple(found[statement.name])
        relations = tuple(
            relation(each, margin, (statement.name, place) in signs) for place, each in enumerate(contrasts)
        )
        result[statement.name] = Verdict(statement, decide(relations, statement.top), contrasts, relations)
    return result


def relation(contrast: Contrast, margin: float, sign_survives: bool) -> str:
    """What a contrast says: see the head of this module.

    Example:
        >>> relation(Contrast("a", "b", 2.0, 1.0, 3.0, (5, 5), p=0.001), margin=0.5, sign_survives=True)
        'right'
        >>> relation(Contrast("a", "b", 0.1, -0.2, 0.4, (5, 5), p=0.3), margin=0.5, sign_survives=False)
        'level'
    """
    if -margin <= contrast.low and contrast.high <= margin:
        return "level"
    if sign_survives and contrast.low > 0:
        return "right"
    if sign_survives and contrast.high < 0:
        return "wrong"
    return "open"


def decide(relations: Sequence[str], top: int = 1) -> str:
    """The verdict on "among the best ``top``", from the relations to all others.

    Example:
        >>> decide(["right", "right"]), decide(["right", "level"]), decide(["level"]), decide(["right", "open"])
        ('holds', 'holds with a condition', 'level', 'not decided')
        >>> decide(["right", "wrong"]), decide(["right", "wrong"], top=2)
        ('fails', 'holds')
    """
    count = {name: list(relations).count(name) for name in ("right", "wrong", "level", "open")}
    needed = len(relations) - (top - 1)  # so many others have to be behind
    if count["wrong"] >= top:
        return "fails"
    if count["right"] >= needed:
        return "holds"
    if count["level"] == len(relations):
        return "level"
    if count["right"] + count["level"] >= needed and count["right"]:
        return "holds with a condition"
    return "not decided"


def _study_of(protocol: Protocol, statement: Statement) -> Study:
    names = {curve.name: curve.study for curve in protocol.curves}
    return protocol.study(names[statement.curve] if statement.curve else statement.study)


def _contrasts(protocol: Protocol, statement: Statement, done: Mapping[str, Record]) -> list[Contrast]:
    study = _study_of(protocol, statement)
    if statement.superlinear:
        return [curvature(_runs(protocol, study, statement.model, "final", done), LEVEL)]
    columns = statement.columns or (statement.column or study.column,)
    runs: dict[str, list[Record]] = {}
    if statement.curve:
        (curve,) = (each for each in protocol.curves if each.name == statement.curve)
        for record in _runs(protocol, study, curve.model, curve.name, done):
            runs.setdefault(str(record.plan.all_settings[curve.axis]), []).append(record)
        pairs = [(str(better), str(than)) for better in statement.better for than in statement.than]
    else:
        runs = {model: _runs(protocol, study, model, "final", done) for model in study.models}
        pairs = [(statement.model, other) for other in statement.others or study.models if other != statement.model]
    if study.resampled:
        means = resampled_means(runs, columns[0])
        seeds = {name: len(group) for name, group in runs.items()}
        return [_resampled(name, other, means, seeds) for name, other in pairs]
    numbers = {name: [[goodness(study, record, column) for record in group] for column in columns]
                for name, group in runs.items()}  # fmt: skip
    if statement.columns:
        first, second = (dict(zip(numbers, column, strict=True)) for column in zip(*numbers.values(), strict=True))
        both = {"first": first[statement.model], "second": second[statement.model]}
        (found,) = pooled(both, "first", level=LEVEL, paired=True)
        return [replace(found, model=f"{statement.model} on {columns[0]}", other=f"{statement.model} on {columns[1]}")]
    groups = {name: group[0] for name, group in numbers.items()}
    return [pooled(groups, name, [other], LEVEL, paired=study.paired)[0] for name, other in pairs]


def _resampled(name: str, other: str, means: Mapping[str, np.ndarray], seeds: Mapping[str, int]) -> Contrast:
    """A contrast in per cent, over molecules and seeds that could have been others."""
    first, second = 100.0 * means[name], 100.0 * means[other]
    low, high, p = interval(first, second, LEVEL)
    return Contrast(name, other, float(np.nanmean(first - second)), low, high, (seeds[name], seeds[other]), p)


def goodness(study: Study, record: Record, column: str) -> float:
    """A number of a run, larger is better: per cent of shares, minus errors, minus their logarithms where paired."""
    value = value_of(record, column)
    if value is None:
        raise _WaitingError(f"a run of {record.plan.model} has no number for {column}: {record.outcome.reason}")
    metric = record.outcome.metric
    value = 100.0 * value if metric in metrics.PERCENT else value
    value = math.log(value) if study.paired else value
    return value if metric in metrics.HIGHER_IS_BETTER else -value


def _runs(protocol: Protocol, study: Study, model: str, what: str, done: Mapping[str, Record]) -> list[Record]:
    """The records of a stage; refused unless all are there and converged."""
    for stage in stages(protocol, study, model, done):
        if stage.what == what:
            missing = stage.missing(done)
            if missing:
                raise _WaitingError(f"{len(missing)} of {len(stage.plans)} runs of {model} on {study.name} are missing")
            found = [done[plan.key] for plan in stage.plans]
            cut = sum(not is_converged(study, record) for record in found)
            if cut:
                raise _WaitingError(f"{cut} of {len(found)} runs of {model} on {study.name} are not converged")
            return found
    raise _WaitingError(f"the search for {model} on {study.name} is not finished")


def _surviving(protocol: Protocol, found: Mapping[str, list[Contrast]]) -> set[tuple[str, int]]:
    """Which contrasts (statement, place) keep their sign by Holm's correction within their family.

    From the smallest p-value to the largest, the k-th of m may be at most (1 − level)/(m − k + 1); the first that is
    larger ends it. A family that waits for runs is corrected for those contrasts that are there.
    """
    families: dict[str, list[tuple[float, str, int]]] = {}
    for statement in protocol.statements:
        for place, each in enumerate(found.get(statement.name, ())):
            families.setdefault(statement.family, []).append((each.p, statement.name, place))
    survivors = set()
    for members in families.values():
        for place, (p, name, number) in enumerate(sorted(members)):
            if p > (1 - LEVEL) / (len(members) - place):
                break
            survivors.add((name, number))
    return survivors
