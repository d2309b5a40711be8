"""Every model of the book by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from advdiff.checks import check_choice
from advdiff.nn.advdifformer import AdvDIFFormer
from advdiff.nn.baselines.a_dgn import ADGN
from advdiff.nn.baselines.cde import CDE
from advdiff.nn.baselines.difformer import Difformer
from advdiff.nn.baselines.diffusion import (
    LinearDiffusion,
    NonLocalDiffusion,
    PiecewiseDiffusion,
    TimeDependentDiffusion,
)
from advdiff.nn.baselines.gat import GAT
from advdiff.nn.baselines.gcn import GCN
from advdiff.nn.baselines.gdc import GDC
from advdiff.nn.baselines.grand import Grand
from advdiff.nn.baselines.graphgps import GraphGPS
from advdiff.nn.baselines.graphtrans import GraphTrans
from advdiff.nn.baselines.mlp import Pointwise
from advdiff.nn.baselines.polynormer import Polynormer
from advdiff.nn.baselines.sgc import SGC, linear_ends
from advdiff.nn.baselines.sgformer import SGFormer
from advdiff.nn.model import GraphModel

#: What every model accepts.
COMMON: dict[str, Any] = {"num_layers": 1, "dropout": 0.0, "batch_norm": False, "residual": False}


Space = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Spec:
    """How a model is made: ``num_layers`` of ``layer``, or one ``layer`` that takes ``num_layers`` itself."""

    #: What the model is called in prose.
    title: str
    layer: Callable[..., nn.Module]
    #: Values worth trying of the settings that are the model's own.
    search: Space = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: For the stack, whether there is a ReLU between layers, and what becomes of edge features.
    stack: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        own = {name: value for name, value in _defaults(self.layer).items() if name not in ("task", "edge_dim")}
        return {**COMMON, **own, **self.defaults}

    def build(self, in_channels: int, hidden_channels: int, out_channels: int, settings: dict[str, Any]) -> GraphModel:
        chosen = {**self.settings, **settings}
        num_layers, taken = chosen["num_layers"], _defaults(self.layer)
        if num_layers < 1:
            raise ValueError(f"num_layers is {num_layers}; it must be at least 1.")

        def layers() -> Iterator[nn.Module]:
            for _ in range(1 if "num_layers" in taken else num_layers):
                yield self.layer(hidden_channels, **{name: chosen[name] for name in taken})

        stack = {name: chosen[name] for name in ("dropout", "task", "edge_dim")}
        # A layer that has norms and residuals between its own parts gets none around it.
        stack |= {name: chosen[name] and name not in taken for name in ("batch_norm", "residual")}
        model = GraphModel(in_channels, hidden_channels, out_channels, layers(), **stack, **self.stack)
        if chosen.get("linear"):
            linear_ends(model, chosen["dropout"])
        return model


@dataclass(frozen=True)
class AdvDIFFormerSpec:
    """AdvDIFFormer with one of its solvers, and the setting that belongs to this solver alone."""

    title: str
    solver: str
    own: str
    search: Space

    @property
    def settings(self) -> dict[str, Any]:
        others = {"order", "theta", "time"} - {self.own}
        skipped = {
            "in_channels",
            "hidden_channels",
            "out_channels",
            "solver",
            "task",
            "edge_dim",
            "tol",
            "learn",
        } | others
        given = _defaults(AdvDIFFormer)
        return {**COMMON, **{name: value for name, value in given.items() if name not in skipped}}

    def build(self, in_channels: int, hidden_channels: int, out_channels: int, settings: dict[str, Any]) -> GraphModel:
        return AdvDIFFormer(in_channels, hidden_channels, out_channels, solver=self.solver, **settings)


def _defaults(part: Callable[..., nn.Module]) -> dict[str, Any]:
    parameters = inspect.signature(part).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


#: Layers that are steps of one equation: nothing comes between them.
_LINEAR = {"activate": False}
#: Models that do not look at the graph.
_BLIND = {"edge_features": "ignored"}
_HEADS: Space = {"heads": (1, 2, 4)}
_DEPTH: Space = {"num_layers": (1, 2, 3, 4)}
_TIME: Space = {"time": (0.5, 1.0, 2.0, 4.0)}
#: The paper's grids for networks, molecules and proteins, and the depth, which only its code has.
_PAPER: Space = {**_HEADS, "beta": (0.2, 0.3, 0.5, 0.75, 0.8, 1.0), "num_layers": (1, 2, 3, 5)}

MODELS: dict[str, Spec | AdvDIFFormerSpec] = {
    "advdifformer-s": AdvDIFFormerSpec("AdvDIFFormer-s", "series", "order", {**_PAPER, "order": (1, 2, 3, 4)}),
    "advdifformer-i": AdvDIFFormerSpec("AdvDIFFormer-i", "inverse", "theta", {**_PAPER, "theta": (0.5, 1.0, 1.5)}),
    "advdifformer-e": AdvDIFFormerSpec("AdvDIFFormer-e", "exponential", "time", {**_PAPER, **_TIME}),
    "diff-linear": Spec("Diff-Linear", LinearDiffusion, _TIME, stack=_LINEAR),
    "diff-multilayer": Spec("Diff-MultiLayer", PiecewiseDiffusion, {**_TIME, **_DEPTH}, {"num_layers": 2}),
    "diff-time": Spec("Diff-Time", TimeDependentDiffusion, {**_TIME, **_HEADS, **_DEPTH}),
    "diff-nonlocal": Spec("Diff-NonLocal", NonLocalDiffusion, {**_TIME, **_HEADS, **_DEPTH}, stack=_BLIND),
    "mlp": Spec("MLP", Pointwise, _DEPTH, stack=_BLIND),
    "gcn": Spec("GCN", GCN, _DEPTH, {"num_layers": 2}),
    "gat": Spec("GAT", GAT, {**_DEPTH, "heads": (1, 2, 4, 8)}, {"num_layers": 2}),
    # Linear as published; False gives it the encoder and the decoder that all other models have.
    "sgc": Spec("SGC", SGC, {"hops": (1, 2, 3, 4, 8), "linear": (True, False)}, {"linear": True}),
    "gdc": Spec("GDC", GDC, {**_DEPTH, "t": (1.0, 3.0, 5.0, 10.0), "neighbours": (16, 32, 64, 128)}, {"num_layers": 2}),
    "grand": Spec("GRAND", Grand, {**_HEADS, "integration_time": (1.0, 2.0, 4.0, 8.0, 16.0), "source": (True, False)}),
    "a-dgn": Spec(
        "A-DGN",
        ADGN,
        {"num_layers": (2, 5, 10, 20), "epsilon": (1.0, 0.1, 0.01), "gamma": (1.0, 0.1, 0.01, 0.001)},
        stack=_LINEAR,
    ),
    "cde": Spec(
        "CDE",
        CDE,
        {
            **_HEADS,
            "integration_time": (1.0, 2.0, 3.0, 4.0),
            "source": (True, False),
            "convection": ("sum", "mean"),
            "velocity": ("tanh", "relu"),
        },
    ),
    "graphtrans": Spec("GraphTrans", GraphTrans, {**_DEPTH, **_HEADS, "attention_layers": (1, 2, 4)}),
    "graphgps": Spec("GraphGPS", GraphGPS, {**_HEADS, "num_layers": (1, 2, 3, 5), "walk_length": (0, 8, 16, 20)}),
    "difformer": Spec(
        "DIFFormer",
        Difformer,
        {**_HEADS, "num_layers": (1, 2, 3, 4, 8), "tau": (0.1, 0.25, 0.5, 0.75), "layer_norm": (True, False)},
        {"num_layers": 2},
        stack=_LINEAR,
    ),
    "sgformer": Spec(
        "SGFormer",
        SGFormer,
        {**_HEADS, **_DEPTH, "attention_layers": (1, 2), "graph_weight": (0.2, 0.5, 0.8)},
    ),
    "polynormer": Spec(
        "Polynormer",
        Polynormer,
        {
            "heads": (1, 2, 4, 8),
            "num_layers": (3, 5, 7, 10),
            "attention_layers": (1, 2, 3, 4),
            "local": ("gat", "gcn"),
        },
    ),
}


def model_names() -> tuple[str, ...]:
    """The names that :func:`build` knows: AdvDIFFormer, the diffusion models of the synthetic study, the baselines.

    Example:
        >>> from advdiff.nn import model_names
        >>> model_names()[:4]
        ('advdifformer-s', 'advdifformer-i', 'advdifformer-e', 'diff-linear')
    """
    return tuple(MODELS)


def model_settings(name: str) -> dict[str, Any]:
    """The settings of a model with their defaults.

    Example:
        >>> from advdiff.nn import model_settings
        >>> model_settings("sgc")
        {'num_layers': 1, 'dropout': 0.0, 'batch_norm': False, 'residual': False, 'hops': 2, 'linear': True}
    """
    check_choice("model", name, MODELS)
    return MODELS[name].settings


def search_space(name: str) -> dict[str, tuple[Any, ...]]:
    """Values worth trying of the settings that are a model's own, for a search that is equally large for every model.

    What all models share, width, dropout, batch norm, residuals and the optimiser, is not among them. Each axis
    holds the default; those of AdvDIFFormer hold the paper's grids, the others come from the papers and their code
    where these give any (see the page on baselines).

    Example:
        >>> from advdiff.nn import search_space
        >>> search_space("sgc")
        {'hops': (1, 2, 3, 4, 8), 'linear': (True, False)}
    """
    check_choice("model", name, MODELS)
    return dict(MODELS[name].search)


def build(
    name: str,
    in_channels: int,
    hidden_channels: int,
    out_channels: int,
    *,
    task: str = "node",
    edge_dim: int | None = None,
    **settings: Any,
) -> GraphModel:
    """A model by its name, called as ``model(x, edge_index, edge_weight, edge_attr, batch, edge_label_index)``.

    Args:
        name: one of :func:`model_names`.
        in_channels: number D of node features.
        hidden_channels: width d.
        out_channels: number of outputs.
        task: ``"node"``, ``"edge"`` or ``"graph"``.
        edge_dim: number of edge features, or None.
        settings: see :func:`model_settings`.

    Example:
        >>> import torch
        >>> from advdiff.nn import build
        >>> model = build("difformer", 8, 16, 3, heads=2)
        >>> model(torch.randn(4, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([4, 3])
    """
    known = model_settings(name)
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ValueError(
            f"{name} has no setting {', '.join(map(repr, unknown))}; its settings are: {', '.join(known)}."
        )
    return MODELS[name].build(
        in_channels, hidden_channels, out_channels, {**settings, "task": task, "edge_dim": edge_dim}
    )
