"""From names to plans: every run that a call asks for, completely described."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from advdiff import nn
from advdiff.checks import check_choice
from advdiff.experiments.recipe import BUDGET_FIELDS, Budget, Recipe
from advdiff.nn.registry import NEUTRAL

ALIASES = {"lr": "learning_rate"}


@dataclass(frozen=True)
class Plan:
    """A run to make. All fields are plain data, so that it travels to other processes and machines.

    Attributes:
        experiment: name of the recipe; empty for data of one's own.
        dataset, options: which data, without their seed.
        model, settings: which model, with all of its settings and ``hidden_channels``.
        seed: of initialisation, dropout and the order of batches.
        data_seed: of the data, or None where nothing about them is random.
        only_valid: runs of a search look at training and validation data only.
    """

    experiment: str
    dataset: str
    options: Mapping[str, Any]
    model: str
    settings: Mapping[str, Any]
    seed: int
    data_seed: int | None
    profile: str
    budget: Budget
    only_valid: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Everything that decides the result, as JSON takes it."""
        return {**asdict(self), "budget": self.budget.as_dict()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Plan:
        known = {each.name: content[each.name] for each in fields(cls) if each.name in content}
        return cls(**{**known, "budget": Budget(**content["budget"])})

    @functools.cached_property
    def key(self) -> str:
        """A hash of everything that decides the result, by which a record is found again."""
        text = json.dumps(self.as_dict(), sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def all_settings(self) -> dict[str, Any]:
        """Settings of the model and fields of the budget."""
        return {**self.settings, **self.budget.as_dict()}

    def label(self) -> str:
        """For progress bars and messages."""
        options = " ".join(str(value) for value in self.options.values() if isinstance(value, str))
        return f"{self.model} {options} seed {self.seed}".replace("  ", " ")


def plans(
    recipe: Recipe,
    model: str | Iterable[str] = "all",
    seeds: int | Iterable[int] = (0,),
    profile: str | None = None,
    settings: Mapping[str, Any] | None = None,
    data_seed: int | None = None,
    options: Mapping[str, Any] | None = None,
    only_valid: bool = False,
) -> list[Plan]:
    """The plans of a call of :func:`advdiff.experiments.run`, checked."""
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
                    Plan(
                        experiment=recipe.name,
                        dataset=recipe.dataset,
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
    neutral = NEUTRAL.get(model, {})
    settings = {name: value for name, value in settings.items() if name not in neutral or value != neutral[name]}
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
