"""What to train and how: the options that ``advdiff train`` and ``python -m advdiff.distributed`` share."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Settings:
    """A model and its training. The model's options are those of :class:`advdiff.nn.AdvDIFFormer`.

    Example:
        >>> Settings(epochs=5).of_model()["solver"]
        'series'
    """

    solver: str = "series"
    hidden: int = 64
    heads: int = 1
    layers: int = 1
    order: int = 2
    beta: float = 0.5
    theta: float = 1.0
    time: float = 1.0
    normalization: str = "symmetric"
    dropout: float = 0.0
    batch_norm: bool = False
    residual: bool = False
    epochs: int = 100
    lr: float = 0.001
    weight_decay: float = 0.0
    seed: int = 0
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.lr <= 0.0 or self.weight_decay < 0.0:
            raise ValueError(
                f"epochs={self.epochs} must be at least 1, lr={self.lr:g} positive and weight_decay="
                f"{self.weight_decay:g} not negative."
            )
        if self.dtype not in ("float32", "float64"):
            raise ValueError(f"unknown dtype {self.dtype!r}; choose one of: float32, float64.")

    def of_model(self) -> dict[str, Any]:
        """Keyword arguments of the model."""
        names = (
            "solver",
            "heads",
            "order",
            "beta",
            "theta",
            "time",
            "normalization",
            "dropout",
            "batch_norm",
            "residual",
        )
        return {name: getattr(self, name) for name in names} | {"num_layers": self.layers}

    def must_agree(self) -> dict[str, Any]:
        """What a run that goes on must have in common with the one that was interrupted: all but the epochs."""
        return {name: value for name, value in asdict(self).items() if name != "epochs"}


CHOICES = {
    "solver": ("series", "inverse", "exponential"),
    "normalization": ("symmetric", "row"),
    "dtype": ("float32", "float64"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One flag for every setting, and those of the checkpoint."""
    for field in fields(Settings):
        flag = "--" + field.name.replace("_", "-")
        if isinstance(field.default, bool):
            parser.add_argument(flag, action="store_true", help="(default off)")
        else:
            parser.add_argument(
                flag,
                type=type(field.default),
                default=field.default,
                choices=CHOICES.get(field.name),
                help=f"(default {field.default})",
            )
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="written after every epoch")
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint, if there is one")
    parser.add_argument("--save", type=Path, metavar="FILE", help="the trained weights, as safetensors")
    parser.add_argument("--device", default="cpu", metavar="NAME", help="cpu or cuda (default cpu)")


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that were given on the command line."""
    return Settings(**{field.name: getattr(options, field.name) for field in fields(Settings)})
