"""The propagation layer of the Advective Diffusion Transformer."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from advdiff.checks import (
    check_choice,
    check_floating,
    check_nonnegative,
    check_precision,
    check_tensor,
    values_checked,
)
from advdiff.nn.cache import check_graph, segments_of, velocity_of
from advdiff.nn.model import check_edge_attr, edge_signal
from advdiff.operators import Attention, Generator
from advdiff.operators.graph import NORMALIZATIONS
from advdiff.operators.velocity import Velocity
from advdiff.propagation import exponential, powers, resolvent

SOLVERS = ("series", "inverse", "exponential")


class AdvDiffConv(nn.Module):
    r"""Multi-head advective diffusion (the paper's Appendix D).

    With one attention :math:`\mathbf C_h` per head, :math:`\mathbf P_h = \mathbf C_h + \beta \mathbf V` and
    :math:`\mathbf L_h = (1+\theta)\mathbf I - \mathbf P_h`,

    .. math::
        \mathbf Z = \sum_{h=1}^H [\mathbf Z^{(0)}, \mathbf P_h \mathbf Z^{(0)}, \dots, \mathbf P_h^K \mathbf Z^{(0)}]\,
        \mathbf W_{O,h} \quad\text{(series)}

    .. math::
        \mathbf Z = \sum_{h=1}^H \mathbf L_h^{-1} \mathbf Z^{(0)}\, \mathbf W_{O,h} \quad\text{(inverse)}, \qquad
        \mathbf Z = \sum_{h=1}^H e^{-(\mathbf I - \mathbf P_h)T} \mathbf Z^{(0)}\, \mathbf W_{O,h}
        \quad\text{(exponential)}.

    Edge features enter as :math:`\mathbf m_u = \sum_v v_{uv} \mathbf W_E \mathbf e_{uv}`: the series propagates
    :math:`\mathbf P_h(\mathbf Z^{(k-1)} + \mathbf M)`, the other two start from :math:`\mathbf Z^{(0)} + \mathbf M`.

    Args:
        in_channels: width d of the input, and of queries and keys.
        out_channels: width of the output (the paper: d).
        solver: ``"series"`` (-s), ``"inverse"`` (-i) or ``"exponential"`` (the closed form itself).
        heads: number H of heads.
        beta: weight β of the advection.
        theta: θ of the inverse.
        order: K of the series.
        time: T of the exponential.
        normalization: of V, ``"symmetric"`` or ``"row"``.
        edge_dim: number of edge features, or None.
        tol: relative error of the inverse and the exponential.
        diffusion: False leaves the attention out, P = βV: the paper's ablation "w/o diffusion". (β = 0 leaves the
            advection out.) The heads then differ in their output weights only.

    Shapes:
        x [N, in_channels], edge_index [2, E], edge_weight [E], edge_attr [E, edge_dim], batch [N] → [N, out_channels]

    Example:
        >>> import torch
        >>> from advdiff.nn import AdvDiffConv
        >>> AdvDiffConv(8, 8, solver="series", heads=2, order=3)
        AdvDiffConv(8, 8, solver='series', heads=2, beta=0.5, order=3)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        solver: str = "series",
        heads: int = 1,
        beta: float = 0.5,
        theta: float = 1.0,
        order: int = 2,
        time: float = 1.0,
        normalization: str = "symmetric",
        edge_dim: int | None = None,
        tol: float = 1e-6,
        *,
        diffusion: bool = True,
    ) -> None:
        super().__init__()
        check_choice("solver", solver, SOLVERS)
        check_choice("kind of normalisation", normalization, NORMALIZATIONS)
        check_nonnegative("beta", beta)
        check_nonnegative("time", time)
        if min(in_channels, out_channels, heads) < 1 or order < 0:
            raise ValueError(
                f"in_channels={in_channels}, out_channels={out_channels} and heads={heads} must be at least 1, "
                f"and order={order} at least 0."
            )
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.solver, self.beta, self.theta, self.order, self.time = solver, beta, theta, order, time
        self.normalization, self.edge_dim, self.tol = normalization, edge_dim, tol
        self.query = nn.Linear(in_channels, heads * in_channels, bias=False) if diffusion else None
        self.key = nn.Linear(in_channels, heads * in_channels, bias=False) if diffusion else None
        blocks = order + 1 if solver == "series" else 1
        #: W_{O,h}, block k, as [K + 1, H, d, out]
        self.output = nn.Parameter(torch.empty(blocks, heads, in_channels, out_channels))
        self.edge = None if edge_dim is None else nn.Linear(edge_dim, in_channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for projection in (self.query, self.key):
            if projection is not None:
                projection.reset_parameters()
        blocks, heads, channels, _ = self.output.shape
        bound = 1.0 / math.sqrt(blocks * heads * channels)  # as nn.Linear on the concatenation
        nn.init.uniform_(self.output, -bound, bound)
        if self.edge is not None:
            self.edge.reset_parameters()

    def attention(self, x: Tensor, batch: Tensor | None = None) -> Attention | None:
        """C_h of every head, as x induces it; None with ``diffusion=False``."""
        if self.query is None or self.key is None:
            return None
        shape = (x.size(0), self.heads, self.in_channels)
        return Attention(self.query(x).view(shape), self.key(x).view(shape), segments_of(x.size(0), batch, x.device))

    def generator(self, x: Tensor, velocity: Velocity, batch: Tensor | None = None) -> Generator:
        """L_h = I − C_h − βV of every head, with the attention that x induces."""
        return Generator(self.attention(x, batch), velocity, self.beta)

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        check_floating("x", x)
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise ValueError(f"x has shape {tuple(x.shape)}; the layer expects [N, {self.in_channels}].")
        check_precision("x", x, self.output)
        check_tensor("edge_index", edge_index)
        check_edge_attr(edge_attr, edge_index, self.edge_dim)
        check_graph(edge_index, x.size(0), edge_weight, batch, x.device, {"x": x, "edge_attr": edge_attr})
        with values_checked(edge_index, edge_weight, batch):
            return self._propagate(x, edge_index, edge_weight, edge_attr, batch)

    def _propagate(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None,
        edge_attr: Tensor | None,
        batch: Tensor | None,
    ) -> Tensor:
        velocity = velocity_of(edge_index, x.size(0), edge_weight, self.normalization)
        L = self.generator(x, velocity, batch)
        source = None if self.edge is None or edge_attr is None else edge_signal(self.edge, velocity, edge_attr, x)
        if self.solver == "series":
            states = powers(L.propagator, x, self.order, source=source)
            # The heads share Z^(0), so their first blocks add up before the product.
            out = x @ self.output[0].sum(0)
            for state, weight in zip(states[1:], self.output[1:], strict=True):
                out = torch.addmm(out, state.flatten(1), _stacked(weight, state))
            return out
        start = x if source is None else x + source
        if self.solver == "inverse":
            state = resolvent(L, start, self.theta, tol=self.tol, indefinite=True)
        else:
            state = exponential(L, start, self.time, tol=self.tol)
        return state.flatten(1) @ _stacked(self.output[0], state)

    def __repr__(self) -> str:
        detail = {
            "series": f"order={self.order}",
            "inverse": f"theta={self.theta:g}",
            "exponential": f"time={self.time:g}",
        }[self.solver]
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, solver={self.solver!r}, "
            f"heads={self.heads}, beta={self.beta:g}, {detail}{'' if self.query is not None else ', diffusion=False'})"
        )


def _stacked(weight: Tensor, state: Tensor) -> Tensor:
    """W_{O,h} of all heads for the heads' states side by side; added up where the heads share one state [N, d]."""
    return weight.flatten(0, 1) if state.dim() == 3 else weight.sum(0)
