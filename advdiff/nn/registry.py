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


@dataclass(frozen=True)
class Spec:
    """How a model is made: ``num_layers`` of ``layer``, or one ``layer`` that takes ``num_layers`` itself."""

    #: What the model is called in prose.
    title: str
    layer: Callable[..., nn.Module]
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

MODELS: dict[str, Spec | AdvDIFFormerSpec] = {
    "advdifformer-s": AdvDIFFormerSpec("AdvDIFFormer-s", "series", "order"),
    "advdifformer-i": AdvDIFFormerSpec("AdvDIFFormer-i", "inverse", "theta"),
    "advdifformer-e": AdvDIFFormerSpec("AdvDIFFormer-e", "exponential", "time"),
    "diff-linear": Spec("Diff-Linear", LinearDiffusion, stack=_LINEAR),
    "diff-multilayer": Spec("Diff-MultiLayer", PiecewiseDiffusion, {"num_layers": 2}),
    "diff-time": Spec("Diff-Time", TimeDependentDiffusion),
    "diff-nonlocal": Spec("Diff-NonLocal", NonLocalDiffusion, stack=_BLIND),
    "mlp": Spec("MLP", Pointwise, stack=_BLIND),
    "gcn": Spec("GCN", GCN, {"num_layers": 2}),
    "gat": Spec("GAT", GAT, {"num_layers": 2}),
    # Linear as published; False gives it the encoder and the decoder that all other models have.
    "sgc": Spec("SGC", SGC, {"linear": True}),
    "gdc": Spec("GDC", GDC, {"num_layers": 2}),
    "grand": Spec("GRAND", Grand),
    "a-dgn": Spec("A-DGN", ADGN, stack=_LINEAR),
    "cde": Spec("CDE", CDE),
    "graphtrans": Spec("GraphTrans", GraphTrans),
    "graphgps": Spec("GraphGPS", GraphGPS),
    "difformer": Spec("DIFFormer", Difformer, {"num_layers": 2}, stack=_LINEAR),
    "sgformer": Spec("SGFormer", SGFormer),
    "polynormer": Spec("Polynormer", Polynormer),
}


#: Settings that came after the first runs were recorded, with the value that changes nothing. A plan leaves them out
#: where they have it, so that its key, and with it the record, stays the same.
NEUTRAL: dict[str, dict[str, Any]] = {"graphgps": {"attention": "performer"}}


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
