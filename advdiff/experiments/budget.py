"""How long and how fast a run trains."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

#: See :mod:`advdiff.experiments.objectives`.
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
        objective: what is minimised over the training environments, see :mod:`advdiff.experiments.objectives`.
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
