"""A data set and models small enough that a run takes milliseconds, put in the place of the real ones."""

from __future__ import annotations

import torch
from torch import nn
from torch_geometric.data import Data

import advdiff.datasets
import advdiff.nn
from advdiff.datasets import Dataset
from advdiff.experiments import recipes, sweep
from advdiff.experiments.recipe import Budget, Option, Profile, Recipe

RECIPE = Recipe(
    name="toy",
    dataset="toy",
    models=("linear", "wide"),
    common={"hidden_channels": 4, "beta": 0.2},
    grid={"beta": (0.2, 0.5), "learning_rate": (0.1, 0.01)},
    options={
        "kind": Option(("easy", "hard"), ("easy", "hard", "nan"), "what is learned"),
        "num_nodes": Option(20, (), "N"),
    },
    seeded_data=True,
    quick=Profile(Budget(epochs=4, learning_rate=0.05), {"num_nodes": 10}),
    full=Profile(Budget(epochs=8, learning_rate=0.05), seeds=3),
)
SETTINGS = {"linear": {"dropout": 0.0}, "wide": {"dropout": 0.1, "beta": 0.5}}


class Model(nn.Module):
    def __init__(self, in_channels, hidden, out_channels, dropout=0.0, beta=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(in_channels, hidden), nn.Tanh(), nn.Dropout(dropout), nn.Linear(hidden, out_channels)
        )
        self.beta = beta

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None, batch=None, edge_label_index=None):
        return self.net(x) + self.beta


def load(name, kind="easy", num_nodes=20, seed=0):
    assert name == "toy"
    draw = torch.Generator().manual_seed(seed)
    environments = {}
    for environment in ("a", "b", "c", "d"):
        x = torch.randn(num_nodes, 3, generator=draw)
        y = x.sum(1, keepdim=True) if kind == "easy" else x.prod(1, keepdim=True)
        if kind == "nan":
            y = y * float("inf")
        environments[environment] = [Data(x=x, edge_index=torch.zeros(2, 0, dtype=torch.long), y=y)]
    return Dataset("toy", {"kind": kind}, "node", "mse", 3, 1, environments, ("a",), ("b",), ("c", "d"))


def build(name, in_channels, hidden_channels, out_channels, *, task="node", edge_dim=None, **settings):
    return Model(in_channels, hidden_channels, out_channels, **settings)


def install(monkeypatch) -> None:
    monkeypatch.setitem(recipes.RECIPES, "toy", RECIPE)
    monkeypatch.setattr(advdiff.datasets, "load", load)
    monkeypatch.setattr(advdiff.nn, "build", build, raising=False)
    monkeypatch.setattr(advdiff.nn, "model_names", lambda: tuple(SETTINGS), raising=False)
    monkeypatch.setattr(advdiff.nn, "model_settings", lambda name: dict(SETTINGS[name]), raising=False)
    sweep._load.cache_clear()
