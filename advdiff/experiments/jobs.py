"""One run, completely described: what its record is found by, and what a worker needs to do it."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from advdiff import nn
from advdiff.checks import check_choice
from advdiff.experiments.budget import BUDGET_FIELDS, Budget
from advdiff.experiments.recipe import Recipe

ALIASES = {"lr": "learning_rate"}


@dataclass(frozen=True)
class Job:
    """A run to make. All fields are plain data, so that it travels to other processes and machines.

    Attributes:
        options: of the data set, without the seed.
        settings: of the model, all of them, with ``hidden_channels``.
        seed: of initialisation, dropout and the order of batches.
        data_seed: of the data, or None where nothing about them is random.
        only_valid: tuning runs look at training and validation data only.
    """

    experiment: str
    dataset: str
    metric: str
    options: Mapping[str, Any]
    model: str
    settings: Mapping[str, Any]
    seed: int
    data_seed: int | None
    profile: str
    budget: Budget
    only_valid: bool = False

    def definition(self) -> dict[str, Any]:
        """Everything that decides the result, as JSON takes it."""
        return {
            "experiment": self.experiment,
            "dataset": self.dataset,
            "metric": self.metric,
            "options": dict(self.options),
            "model": self.model,
            "settings": dict(self.settings),
            "seed": self.seed,
            "data_seed": self.data_seed,
            "profile": self.profile,
            "budget": self.budget.as_dict(),
            "only_valid": self.only_valid,
        }

    @property
    def key(self) -> str:
        """A hash of the definition."""
        text = json.dumps(self.definition(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def label(self) -> str:
        """For progress bars and messages."""
        options = " ".join(str(value) for value in self.options.values() if isinstance(value, str))
        return f"{self.model} {options} seed {self.seed}".replace("  ", " ")


def choose_models(recipe: Recipe, model: str | Iterable[str]) -> list[str]:
    """``"all"``, one name or several; in the order given, each once."""
    names = [model] if isinstance(model, str) else list(model)
    chosen: list[str] = []
    for name in names:
        chosen += recipe.models if name == "all" else [name]
    if not chosen:
        raise ValueError(f"no model was named; {recipe.name} has: {', '.join(recipe.models)}.")
    for name in chosen:
        check_choice("model", name, ("all", *nn.model_names()))
    return list(dict.fromkeys(chosen))


def choose_seeds(seeds: int | Iterable[int]) -> list[int]:
    """A list of seeds, or how many: 5 is 0 to 4."""
    chosen = list(range(seeds)) if isinstance(seeds, int) else [int(seed) for seed in seeds]
    if not chosen or min(chosen) < 0:
        raise ValueError(f"seeds is {seeds!r}; give a number of at least 1, or a list of seeds of at least 0.")
    return list(dict.fromkeys(chosen))


def combinations(recipe: Recipe, profile: str, options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All combinations of the options of the data; those not given come from the profile or the recipe."""
    for name in options:
        if name not in recipe.options:
            known = ", ".join(recipe.options) or "none"
            raise ValueError(f"{recipe.name} has no option {name!r}; its options are: {known}.")
    lists: dict[str, list[Any]] = {}
    for name, option in recipe.options.items():
        value = options.get(name)
        if value is None:
            value = recipe.profile(profile).options.get(name, option.default)
        lists[name] = list(value) if isinstance(value, list | tuple) else [value]
        for choice in lists[name] if option.choices else ():
            check_choice(name, choice, option.choices)
    return [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]


def resolve(
    recipe: Recipe, model: str, profile: str, overrides: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], Budget]:
    """All settings of a model and its budget: overrides, else the recipe's, else the model's defaults."""
    overrides = unaliased(overrides or {})
    own = {"hidden_channels": 64, **nn.model_settings(model)}
    known = [*own, *BUDGET_FIELDS]
    for name in overrides:
        if name not in known:
            raise ValueError(f"{model} has no setting {name!r}; its settings are: {', '.join(known)}.")
    wanted = {**recipe.common, **recipe.settings.get(model, {}), **overrides}
    settings = {name: wanted.get(name, default) for name, default in own.items()}
    for name, default in own.items():  # 1 and 1.0 are one setting, and one key
        value = settings[name]
        if isinstance(default, float) and isinstance(value, int) and not isinstance(value, bool):
            settings[name] = float(value)
        elif isinstance(default, bool) and not isinstance(value, bool):  # "False" would count as true
            raise ValueError(f"{name} is {value!r}; it must be true or false.")
    budget = recipe.profile(profile).budget
    if profile == "full":
        budget = budget.changed(recipe.budgets.get(model, {}))
    return settings, budget.changed(overrides)


def unaliased(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """``lr`` is ``learning_rate``."""
    return {ALIASES.get(name, name): value for name, value in overrides.items()}


def applicable(models: Iterable[str], overrides: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """Model → those overrides that it has; an override that none of the models has is an error."""
    models, overrides = list(models), unaliased(overrides or {})
    known = {model: {"hidden_channels", *nn.model_settings(model), *BUDGET_FIELDS} for model in models}
    for name in overrides:
        if not any(name in names for names in known.values()):
            whose = models[0] if len(models) == 1 else "none of these models"
            listed = ", ".join(sorted(set().union(*known.values())))
            has = "has no setting" if len(models) == 1 else "has a setting"
            raise ValueError(f"{whose} {has} {name!r}; there are: {listed}.")
    return {model: {name: value for name, value in overrides.items() if name in known[model]} for model in models}
