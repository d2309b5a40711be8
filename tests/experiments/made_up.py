"""Records of runs that were never made."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from advdiff.experiments.plan import Plan
from advdiff.experiments.recipe import Budget
from advdiff.experiments.records import Outcome, Provenance, Record


def record(seed: int = 0, status: str = "finished", **more: Any) -> Record:
    """A record with some fields replaced, whichever part of it they belong to."""
    plan = Plan("toy", "toy", {}, "linear", {"β": 0.5}, seed, seed, "quick", Budget(epochs=1, learning_rate=0.1))
    outcome = Outcome(
        metric="mse", status=status, metrics={"a": 0.1 + 0.2, "b": None}, valid_metric=0.25, chosen_epoch=1, epochs=1,
        train=["a"], valid=["b"], test=[], parameters=4, seconds_per_epoch=0.1, seconds=0.2,
    )  # fmt: skip
    return changed(Record(plan, outcome, Provenance({}, "cpu", {}, None, "")), **more)


def changed(given: Record, **more: Any) -> Record:
    parts = {"plan": given.plan, "outcome": given.outcome, "provenance": given.provenance}
    for name, part in parts.items():
        own = {each.name: more.pop(each.name) for each in fields(part) if each.name in more}
        parts[name] = replace(part, **own)
    assert not more, f"a record has no {', '.join(more)}"
    return Record(**parts)  # type: ignore[arg-type]
