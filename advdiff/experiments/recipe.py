"""What an experiment is: small frozen objects, from how long a run trains to what is trained on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace

PROFILES = ("quick", "full")
Settings = Mapping[str, object]
#: See :class:`advdiff.experiments.metrics.Objective`.
OBJECTIVES = ("erm", "irm", "groupdro")


@dataclass(frozen=True)
class Budget:
    """Epochs of Adam, and when to stop before they are over.

    Attributes:
        epochs: passes over the training data.
        learning_rate: of Adam; ``lr`` for short in settings.
        weight_decay: of Adam.
        batch_size: graphs in a batch, where there is more than one to train on.
        fixed_batches: cut the training graphs into batches once, in their order, and shuffle only the batches. Where
            neighbours are alike (the snapshots of one network) nothing is padded, and each batch is normalised once.
        evaluate_every: epochs between two looks at the validation data, so that epochs can only be chosen among these.
        patience: stop after so many epochs without a better validation metric; None (the paper) never stops early.
        objective: what is minimised, see :class:`~advdiff.experiments.metrics.Objective`.
        strength: of the objective, λ or η; ``erm`` has none.

    Example:
        >>> from advdiff.experiments import Budget
        >>> Budget(epochs=500, learning_rate=1e-3).changed({"patience": 50}).patience
        50
    """

    epochs: int
    learning_rate: float
    weight_decay: float = 0.0
    batch_size: int = 32
    fixed_batches: bool = False
    evaluate_every: int = 1
    patience: int | None = None
    objective: str = "erm"
    strength: float = 1.0

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "evaluate_every", "patience"):
            value = getattr(self, name)
            if name == "patience" and value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name} is {value!r}; it must be a whole number of at least 1.")
        if not isinstance(self.fixed_batches, bool):
            raise ValueError(f"fixed_batches is {self.fixed_batches!r}; it must be true or false.")
        if self.objective not in OBJECTIVES:
            raise ValueError(f"unknown objective {self.objective!r}; choose one of: {', '.join(OBJECTIVES)}.")
        for name in ("learning_rate", "weight_decay", "strength"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < float("inf"):
                raise ValueError(f"{name} is {value!r}; it must be a finite number that is not negative.")
            object.__setattr__(self, name, float(value))  # 1 and 1.0 are one budget, and one key of a record

    def changed(self, settings: Mapping[str, object]) -> Budget:
        """The same with some fields replaced; other names are not looked at."""
        return replace(self, **{name: settings[name] for name in BUDGET_FIELDS if name in settings})  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, object]:
        """What decides a run. Plain runs do not speak of objectives, which came after the first records."""
        return {name: value for name, value in asdict(self).items() if self.objective != "erm" or name not in _LATER}


_LATER = ("objective", "strength")
BUDGET_FIELDS = tuple(field.name for field in fields(Budget))


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
