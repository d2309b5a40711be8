"""The propagation layer of the Advective Diffusion Transformer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from advdiff.checks import (
    check_all_finite,
    check_choice,
    check_floating,
    check_nonnegative,
    check_precision,
    check_rows,
    check_tolerance,
    is_traced,
    values_checked,
)
from advdiff.nn.cache import check_graph, segments_of, velocity_of
from advdiff.nn.edge_mask import EdgeMask
from advdiff.nn.inputs import Edges, plain_edges, refuse_several_kinds_of_nodes
from advdiff.nn.learned import LEARNABLE, learned_values
from advdiff.nn.model import check_edge_attr, edge_signal
from advdiff.operators import Attention, Generator
from advdiff.operators.graph import NORMALIZATIONS
from advdiff.operators.segments import Segments
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
        in_channels: width d of the input, and of queries and keys, or -1: that of the first input.
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
        learn: which of ``"beta"`` (one for each head), ``"theta"`` (one, above the largest β) and ``"time"`` become
            parameters of the layer, starting from the values given and staying positive. The coefficients of the series
            need no such thing: W_O is them.

    Shapes:
        x [N, in_channels], edge_index [2, E], edge_weight [E], edge_attr [E, edge_dim], batch [N] → [N, out_channels].

        For ``edge_index``, PyG's ``EdgeIndex``, ``adj_t`` as a sparse torch tensor, or V itself
        (:func:`advdiff.normalize_adjacency`) will do.

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
        learn: Sequence[str] = (),
    ) -> None:
        super().__init__()
        check_choice("solver", solver, SOLVERS)
        check_choice("kind of normalisation", normalization, NORMALIZATIONS)
        check_nonnegative("beta", beta)
        check_nonnegative("time", time)
        check_tolerance(tol)
        if min(1 if in_channels == -1 else in_channels, out_channels, heads) < 1 or order < 0:
            raise ValueError(
                f"in_channels={in_channels}, out_channels={out_channels} and heads={heads} must be at least 1, "
                f"and order={order} at least 0."
            )
        learn = (learn,) if isinstance(learn, str) else tuple(learn)
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.solver, self.order, self.normalization, self.edge_dim, self.tol = (
            solver, order, normalization, edge_dim, tol,
        )  # fmt: skip
        self.learned = learned_values(learn, solver, heads, beta, theta, time)
        for name, value in (("beta", beta), ("theta", theta), ("time", time)):
            if name not in learn:  # the others are looked up in ``learned``
                setattr(self, name, value)
        self.query = self.key = self.edge = None
        lazy, width = in_channels == -1, heads * in_channels
        if diffusion:  # a lazy one learns its width with the first input
            self.query = nn.LazyLinear(heads, bias=False) if lazy else nn.Linear(in_channels, width, bias=False)
            self.key = nn.LazyLinear(heads, bias=False) if lazy else nn.Linear(in_channels, width, bias=False)
        self._blocks = order + 1 if solver == "series" else 1
        #: W_{O,h}, block k, as [K + 1, H, d, out]
        self.output: nn.Parameter | UninitializedParameter
        if lazy:
            if edge_dim is not None:
                raise ValueError("in_channels=-1 with edge features leaves their width open; give in_channels.")
            self.output = UninitializedParameter()
            self.register_load_state_dict_pre_hook(_materialise_from_state)
        else:
            self.output = nn.Parameter(torch.empty(self._blocks, heads, in_channels, out_channels))
            self.edge = None if edge_dim is None else nn.Linear(edge_dim, in_channels, bias=False)
        self.mask = EdgeMask()
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for projection in (self.query, self.key):
            if projection is not None:
                projection.reset_parameters()
        if not isinstance(self.output, UninitializedParameter):
            blocks, heads, channels, _ = self.output.shape
            bound = 1.0 / math.sqrt(blocks * heads * channels)  # as nn.Linear on the concatenation
            nn.init.uniform_(self.output, -bound, bound)
        if self.edge is not None:
            self.edge.reset_parameters()
        for learned in self.learned.values():
            learned.reset_parameters()  # type: ignore[operator]

    def materialise(self, in_channels: int) -> None:
        """Give the weights of a layer made with ``in_channels=-1`` their size."""
        self.in_channels = in_channels
        for projection in (self.query, self.key):
            if projection is not None:
                projection.out_features = self.heads * in_channels
        assert isinstance(self.output, UninitializedParameter)
        self.output.materialize((self._blocks, self.heads, in_channels, self.out_channels))
        self.reset_parameters()

    def value(self, name: str) -> float | Tensor:
        """``"beta"``, ``"theta"`` or ``"time"``: a number, or what the parameters make of it where it is learned."""
        if name not in self.learned:
            number: float | Tensor = getattr(self, name)
            return number
        found: Tensor = self.learned[name]()
        if name == "theta":
            beta = self.value("beta")
            found = found + (beta.amax() if isinstance(beta, Tensor) else beta)
        return found

    def __getattr__(self, name: str) -> Any:
        if name in LEARNABLE and name in self.__dict__["_modules"].get("learned", ()):
            return self.value(name)
        return super().__getattr__(name)

    def attention(self, x: Tensor, batch: Tensor | Segments | None = None) -> Attention | None:
        """C_h of every head, as x induces it; None with ``diffusion=False``."""
        if self.query is None or self.key is None:
            return None
        shape = (x.size(0), self.heads, self.in_channels)
        return Attention(self.query(x).view(shape), self.key(x).view(shape), segments_of(x.size(0), batch, x.device))

    def generator(self, x: Tensor, velocity: Velocity, batch: Tensor | Segments | None = None) -> Generator:
        """L_h = I − C_h − βV of every head, with the attention that x induces."""
        return Generator(self.attention(x, batch), velocity, self.value("beta"))

    def prepare(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None,
        batch: Tensor | None,
        num_graphs: int | None = None,
        traced: bool = False,
    ) -> tuple[Velocity, Segments]:
        """V and the graphs of a batch, which the layer takes in place of ``edge_index`` and ``batch``.

        With ``traced``, V as torch's recording operators want it, too.
        """
        velocity = velocity_of(edge_index, x.size(0), edge_weight, self.normalization)
        if self.mask.explain:
            velocity = self.mask(velocity)
        if traced:
            velocity.arrays(x.dtype)
        return velocity, segments_of(x.size(0), batch, x.device, num_graphs)

    def forward(
        self,
        x: Tensor,
        edge_index: Edges | Velocity,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | Segments | None = None,
    ) -> Tensor:
        traced = is_traced()
        if isinstance(edge_index, Velocity) and isinstance(batch, Segments):
            velocity, segments = edge_index, batch
        else:
            velocity, segments = self._enter(x, edge_index, edge_weight, edge_attr, batch, traced)
        if traced:
            return self._propagate(x, velocity, edge_attr, segments)
        with values_checked():
            return self._propagate(x, velocity, edge_attr, segments)

    @torch.compiler.disable  # see GraphModel
    def _enter(
        self,
        x: Tensor,
        edge_index: Edges | Velocity,
        edge_weight: Tensor | None,
        edge_attr: Tensor | None,
        batch: Tensor | Segments | None,
        traced: bool,
    ) -> tuple[Velocity, Segments]:
        """Check everything at the door; V and the graphs."""
        refuse_several_kinds_of_nodes(x)
        check_floating("x", x)
        if self.in_channels == -1 and x.dim() == 2:
            self.materialise(x.size(1))
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise ValueError(f"x has shape {tuple(x.shape)}; the layer expects [N, {self.in_channels}].")
        check_precision("x", x, self.output)
        if isinstance(edge_index, Velocity):
            check_rows("x", x, edge_index.num_nodes)
            segments = segments_of(x.size(0), batch, x.device)
            segments.check_edges(edge_index.edge_index)
            check_edge_attr(edge_attr, edge_index.edge_index, self.edge_dim)
            check_all_finite({"x": x, "edge_attr": edge_attr})
            return edge_index, segments
        batch = batch.batch if isinstance(batch, Segments) else batch
        features = {"x": x, "edge_attr": edge_attr}
        while True:
            index, weight, adj_t = plain_edges(edge_index, edge_weight, edge_attr, x.size(0))
            check_edge_attr(edge_attr, index, self.edge_dim)
            if check_graph(index, x.size(0), weight, batch, x.device, features, adj_t):
                break
        with values_checked(index, weight, batch):
            return self.prepare(x, index, weight, batch, traced=traced)

    def _propagate(self, x: Tensor, velocity: Velocity, edge_attr: Tensor | None, segments: Segments) -> Tensor:
        L = self.generator(x, velocity, segments)
        source = None if self.edge is None or edge_attr is None else edge_signal(self.edge, velocity, edge_attr, x)
        if self.solver == "series":
            states = powers(L.propagator, x, self.order, source=source)
            # The heads share Z^(0), so their first blocks add up before the product.
            out = x @ self.output[0].sum(0)
            for state, weight in zip(states[1:], self.output[1:], strict=True):
                out = torch.addmm(out, state.flatten(1), _stacked(weight, state))
            return out
        state = self._solve(L, x if source is None else x + source)
        return state.flatten(1) @ _stacked(self.output[0], state)

    @torch.compiler.disable  # the solvers decide by values
    def _solve(self, L: Generator, Z: Tensor) -> Tensor:
        if self.solver == "inverse":
            return resolvent(L, Z, self.value("theta"), tol=self.tol, indefinite=True)
        return exponential(L, Z, self.value("time"), tol=self.tol)

    def __repr__(self) -> str:
        own = {"series": "order", "inverse": "theta", "exponential": "time"}[self.solver]
        detail = f"order={self.order}" if own == "order" else self._shown(own)
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, solver={self.solver!r}, "
            f"heads={self.heads}, {self._shown('beta')}, {detail}{'' if self.query else ', diffusion=False'})"
        )

    def _shown(self, name: str) -> str:
        value = self.value(name)
        numbers = value.detach().flatten().tolist() if isinstance(value, Tensor) else [value]
        text = ", ".join(f"{number:.4g}" for number in numbers)
        return f"{name}={text if len(numbers) == 1 else f'[{text}]'}{' (learned)' if name in self.learned else ''}"


def _materialise_from_state(layer: AdvDiffConv, state: dict[str, Tensor], prefix: str, *_: Any) -> None:
    """A lazy layer takes the sizes of the weights that it is given."""
    output = state.get(f"{prefix}output")
    if isinstance(layer.output, UninitializedParameter) and not isinstance(output, UninitializedParameter | None):
        layer.materialise(output.size(2))


def _stacked(weight: Tensor, state: Tensor) -> Tensor:
    """W_{O,h} of all heads for the heads' states side by side; added up where the heads share one state [N, d]."""
    return weight.flatten(0, 1) if state.dim() == 3 else weight.sum(0)
