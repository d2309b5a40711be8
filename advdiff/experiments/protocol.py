"""The protocol of the trial: what is run, how settings are searched, and what is judged, written before the runs.

``results/protocol.toml`` says it all. A record carries the hash of the protocol under which it was made; a later change
is an amendment with its date and its reason, which names the hash that it replaces.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from advdiff import nn
from advdiff.experiments.plan import Plan, plans
from advdiff.experiments.recipe import BUDGET_FIELDS
from advdiff.experiments.recipes import find

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH = Path("results/protocol.toml")
Settings = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """All models on one data set and task.

    Attributes:
        name: of the study, and of the files of its records.
        experiment, options: which recipe, and the options of its data.
        models: in the order in which they run.
        candidates: settings that are tried for each model; the first one is the released code's, else the recipe's.
        rungs: of the search, [how many candidates enter, epochs they are trained]; the best on validation data go on.
        epochs, patience: of the final runs; ``patience`` holds in the search, too.
        longest: the schedule of the paper or of the released code. Where ``epochs`` is shorter, a final run that
            chooses its epoch in the last tenth is made again with twice as many, until it does not or all are used.
        budget: other fields of the budget, for all runs.
        seeds: of the final runs.
        search_seed: of all runs of the search, so that no final run repeats one of them.
        axes: the search space of this study, before that of all models; ``model_axes`` goes before both.
        column: the number that contrasts are made of.
        margin: a difference below it does not matter, in the unit of the column (per cent for shares; of the natural
            logarithm where ``paired``).
        paired: a seed draws the data, too: models are compared seed by seed, on logarithms of their errors.
        resampled: molecules are drawn again together with seeds, see :mod:`advdiff.results.resample`.
        released: model → settings of the released code, where they are not those of the recipe.
        published: models that are also run to the end with these settings, the first candidate.
    """

    name: str
    experiment: str
    models: tuple[str, ...]
    candidates: int
    rungs: tuple[tuple[int, int], ...]
    epochs: int
    patience: int
    longest: int
    seeds: tuple[int, ...]
    column: str
    margin: float
    options: Settings = field(default_factory=dict)
    budget: Settings = field(default_factory=dict)
    axes: Settings = field(default_factory=dict)
    model_axes: dict[str, Settings] = field(default_factory=dict)
    search_seed: int = 1000
    paired: bool = False
    resampled: bool = False
    released: dict[str, Settings] = field(default_factory=dict)
    published: tuple[str, ...] = ()
    _plans: dict[str, Plan] = field(default_factory=dict, repr=False, compare=False)  # asked for again and again

    def __post_init__(self) -> None:
        entering = [entrants for entrants, _ in self.rungs]
        if not self.rungs or entering[0] != self.candidates or sorted(entering, reverse=True) != entering:
            raise ValueError(
                f"study {self.name}: the rungs {self.rungs} must begin with all {self.candidates} candidates and fall."
            )
        for name in self.models:
            nn.model_settings(name)  # refuses a name that is not known

    def space(self, common: Mapping[str, Any], model: str) -> dict[str, list[Any]]:
        """Axis → its values, for those settings that the model or the budget has."""
        known = {"hidden_channels", *nn.model_settings(model), *BUDGET_FIELDS}
        own = {**common.get("all", {}), **self.axes, **common.get(model, {}), **self.model_axes.get(model, {})}
        return {name: list(values) for name, values in own.items() if name in known}

    def plan(self, model: str, settings: Settings, epochs: int, seed: int, *, only_valid: bool) -> Plan:
        """One run."""
        key = json.dumps([model, settings, epochs, seed, only_valid], sort_keys=True)
        if key not in self._plans:
            chosen = {**self.budget, **settings, "epochs": epochs, "patience": self.patience}
            (plan,) = plans(find(self.experiment), model, [seed], "full", chosen, None, self.options, only_valid)
            self._plans[key] = plan
        return self._plans[key]


@dataclass(frozen=True)
class Curve:
    """The chosen settings of a model in a study, with one of them varied and, perhaps, others fixed (``settings``)."""

    name: str
    study: str
    model: str
    axis: str
    values: tuple[Any, ...]
    seeds: tuple[int, ...]
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class Statement:
    """A statement of the paper and the contrasts that decide it; see :mod:`advdiff.results.verdict`.

    Attributes:
        name: by which chapters ask for its verdict.
        place, label, phrase: section or table of the paper, its LaTeX label, and at most eight words of it.
        restated: what it says, in our words and symbols.
        study, curve: whose runs decide.
        model, others: who is compared with whom; ``others`` empty means all other models of the study.
        column: if not the study's own.
        columns: two of them; the claim is that ``model`` itself is better on the first than on the second.
        top: the claim is that ``model`` is among the best so many of ``model`` and ``others``.
        superlinear: the claim is that the error of ``model`` grows faster than linearly with the shift of the graph.
        better, than: for a curve, values; each of the first is claimed to be better than each of the second.
        family: statements that share Holm's correction.
    """

    name: str
    place: str
    label: str
    phrase: str
    restated: str
    family: str
    study: str = ""
    curve: str = ""
    model: str = "advdifformer-s"
    others: tuple[str, ...] = ()
    column: str = ""
    columns: tuple[str, ...] = ()
    top: int = 1
    superlinear: bool = False
    better: tuple[Any, ...] = ()
    than: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        if len(self.phrase.split()) > 8:
            raise ValueError(f"statement {self.name}: the phrase has more than eight words.")


@dataclass(frozen=True)
class Protocol:
    """The whole of it. ``hash`` is that of the file; ``earlier`` those of the versions that it amends."""

    commit: str
    axes: Settings
    studies: tuple[Study, ...]
    curves: tuple[Curve, ...]
    statements: tuple[Statement, ...]
    amendments: tuple[Settings, ...]
    hash: str

    @property
    def earlier(self) -> tuple[str, ...]:
        return tuple(str(each["replaces"]) for each in self.amendments)

    def study(self, name: str) -> Study:
        for study in self.studies:
            if study.name == name:
                return study
        raise ValueError(f"no study {name!r}; the protocol has: {', '.join(each.name for each in self.studies)}.")

    def candidates(self, study: Study, model: str) -> list[Settings]:
        """The settings to try: first the released code's or the recipe's, then points of the space, always the same."""
        space = study.space(self.axes, model)
        draw = random.Random(f"{study.name} {model}")
        found: dict[str, Settings] = {}
        first = study.released.get(model, {})
        for attempt in range(50 * study.candidates):  # a small space may have fewer points than candidates
            point = {name: draw.choice(values) for name, values in space.items()} if attempt else first
            if len(found) < study.candidates:  # a point may say the same as the recipe
                found.setdefault(study.plan(model, point, 1, 0, only_valid=True).key, point)
        return list(found.values())


def read_protocol(path: Path = PATH) -> Protocol:
    """The protocol of a file; what is wrong in it is named."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise ValueError(f"there is no protocol at {path}; run the trial from the root of the repository.") from None
    content = tomllib.loads(text.decode())
    return Protocol(
        commit=content["code"]["commit"],
        axes=content["axes"],
        studies=tuple(Study(**_tuples(each, content["defaults"])) for each in content["study"]),
        curves=tuple(Curve(**_tuples(each)) for each in content.get("curve", [])),
        statements=tuple(Statement(**_tuples(each)) for each in content["statement"]),
        amendments=tuple(content.get("amendment", [])),
        hash=hashlib.sha256(text).hexdigest()[:16],
    )


def _tuples(section: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A section of the file with what it does not say itself; lists become tuples."""

    def fixed(value: Any) -> Any:
        return tuple(fixed(each) for each in value) if isinstance(value, list) else value

    return {name: fixed(value) for name, value in {**(defaults or {}), **section}.items()}
