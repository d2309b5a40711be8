"""What an experiment is: a small frozen object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advdiff.experiments.budget import Budget

PROFILES = ("quick", "full")
Settings = Mapping[str, object]


@dataclass(frozen=True)
class Option:
    """An option of a data set: its default, or several that are swept, and the choices where they are names."""

    default: object
    choices: tuple[str, ...] = ()
    help: str = ""


@dataclass(frozen=True)
class Profile:
    """A budget, and the options of the data that go with it (smaller graphs, for example)."""

    budget: Budget
    options: Settings = field(default_factory=dict)
    seeds: int = 1


@dataclass(frozen=True)
class Recipe:
    """One experiment.

    Attributes:
        name: of the experiment, and of the file of its records.
        dataset: as in :func:`advdiff.datasets.load`.
        models: those of ``model="all"``, in the order of tables.
        common: settings for every model that has them.
        settings: model → settings of its own, which go before ``common``.
        budgets: model → fields of the budget of its own, full profile only.
        grid: the paper's search grid; names of settings or of the budget's fields.
        quick, full: the two profiles.
        options: of the data set.
        seeded_data: whether the data are drawn, from the seed of the run unless ``data_seed`` fixes it.
        columns: of the table: environments, ``"valid"``, ``"test mean"`` or ``"test worst"``.

    Example:
        >>> from advdiff.experiments import RECIPES
        >>> recipe = RECIPES["synthetic"]
        >>> recipe.dataset, recipe.profile("full").budget.epochs
        ('synthetic', 500)
    """

    name: str
    dataset: str
    models: tuple[str, ...]
    quick: Profile
    full: Profile
    common: Settings = field(default_factory=dict)
    settings: Mapping[str, Settings] = field(default_factory=dict)
    budgets: Mapping[str, Settings] = field(default_factory=dict)
    grid: Mapping[str, tuple[object, ...]] = field(default_factory=dict)
    options: Mapping[str, Option] = field(default_factory=dict)
    seeded_data: bool = False
    columns: tuple[str, ...] = ("valid", "test mean", "test worst")
    description: str = ""

    def profile(self, name: str) -> Profile:
        from advdiff.checks import check_choice  # needs torch, which a look at the recipes does not

        check_choice("profile", name, PROFILES)
        profile: Profile = getattr(self, name)
        return profile
