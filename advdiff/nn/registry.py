"""Every model of the book by its name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from advdiff.checks import check_choice
from advdiff.nn.advdifformer import AdvDIFFormer
from advdiff.nn.convolutions import GAT, GCN, GDC, SGC, Pointwise
from advdiff.nn.differential import ADGN, CDE, Grand
from advdiff.nn.diffusion import (
    LinearDiffusion,
    NonLocalDiffusion,
    PiecewiseDiffusion,
    TimeDependentDiffusion,
)
from advdiff.nn.graphtrans import Transformer
from advdiff.nn.model import GraphModel
from advdiff.nn.transformers import Difformer, GraphGPS

#: What every model accepts.
COMMON: dict[str, Any] = {"num_layers": 1, "dropout": 0.0, "batch_norm": False, "residual": False}


@dataclass(frozen=True)
class Spec:
    """How a model is made: ``num_layers`` of ``layer``, then one ``last``, with the stack's own ``defaults``."""

    layer: Callable[..., nn.Module]
    last: Callable[..., nn.Module] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    #: For the stack, whether there is a ReLU between layers, and what becomes of edge features.
    stack: Mapping[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        own = {}
        for part in (self.layer, self.last):
            own.update(_defaults(part) if part is not None else {})
        return {**COMMON, **own, **self.defaults}

    def build(self, in_channels: int, hidden_channels: int, out_channels: int, settings: dict[str, Any]) -> GraphModel:
        chosen = {**self.settings, **settings}
        num_layers = chosen.pop("num_layers")
        if num_layers < 1:
            raise ValueError(f"num_layers is {num_layers}; it must be at least 1.")

        def make(part: Callable[..., nn.Module]) -> nn.Module:
            return part(hidden_channels, **{name: chosen[name] for name in _defaults(part)})

        def layers() -> Iterator[nn.Module]:
            yield from (make(self.layer) for _ in range(num_layers))
            if self.last is not None:
                yield make(self.last)

        stack = {name: chosen[name] for name in ("dropout", "batch_norm", "residual", "task", "edge_dim")}
        return GraphModel(in_channels, hidden_channels, out_channels, layers(), **stack, **self.stack)


@dataclass(frozen=True)
class AdvDIFFormerSpec:
    """AdvDIFFormer with one of its solvers, and the setting that belongs to this solver alone."""

    solver: str
    own: str

    @property
    def settings(self) -> dict[str, Any]:
        others = {"order", "theta", "time"} - {self.own}
        skipped = {"in_channels", "hidden_channels", "out_channels", "solver", "task", "edge_dim"} | others
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
    "advdifformer-s": AdvDIFFormerSpec("series", own="order"),
    "advdifformer-i": AdvDIFFormerSpec("inverse", own="theta"),
    "advdifformer-e": AdvDIFFormerSpec("exponential", own="time"),
    "diff-linear": Spec(LinearDiffusion, stack=_LINEAR),
    "diff-multilayer": Spec(PiecewiseDiffusion, defaults={"num_layers": 2}),
    "diff-time": Spec(TimeDependentDiffusion),
    "diff-nonlocal": Spec(NonLocalDiffusion, stack=_BLIND),
    "mlp": Spec(Pointwise, stack=_BLIND),
    "gcn": Spec(GCN, defaults={"num_layers": 2}),
    "gat": Spec(GAT, defaults={"num_layers": 2}),
    "sgc": Spec(SGC),
    "gdc": Spec(GDC, defaults={"num_layers": 2}),
    "grand": Spec(Grand),
    "a-dgn": Spec(ADGN, stack=_LINEAR),
    "cde": Spec(CDE),
    "graphtrans": Spec(GCN, last=Transformer, defaults={"num_layers": 2}),
    "graphgps": Spec(GraphGPS, defaults={"num_layers": 2}, stack=_LINEAR),
    "difformer": Spec(Difformer),
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
        {'num_layers': 1, 'dropout': 0.0, 'batch_norm': False, 'residual': False, 'order': 2}
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
