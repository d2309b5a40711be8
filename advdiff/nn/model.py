"""What all models share: an encoder, a stack of propagation layers, and a read-out of nodes, edges or graphs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from advdiff.checks import (
    check_choice,
    check_edge_index,
    check_floating,
    check_precision,
    check_tensor,
    is_traced,
    values_checked,
)
from advdiff.nn.batch_norm import BatchNorm1d
from advdiff.nn.cache import check_graph, new_memory, recall, segments_of, velocity_of
from advdiff.nn.inputs import Edges, GraphInput
from advdiff.nn.part import CURRENT_PART
from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity

TASKS = ("node", "edge", "graph")
EDGE_FEATURES = ("signal", "layers", "ignored")
_sparse = new_memory()


def mlp(in_channels: int, hidden_channels: int, out_channels: int, dropout: float) -> nn.Sequential:
    """The paper's "shallow MLP": one hidden layer with ReLU; -1 channels are counted when there is an input."""
    return nn.Sequential(
        nn.LazyLinear(hidden_channels) if in_channels == -1 else nn.Linear(in_channels, hidden_channels),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden_channels, out_channels),
    )


class GraphModel(nn.Module):
    r"""Encoder, propagation, decoder.

    .. math::
        \mathbf Z^{(0)} = \phi_{enc}(\mathbf X), \qquad
        \mathbf Z = \text{propagation}(\mathbf Z^{(0)}, \mathbf A), \qquad
        \hat{\mathbf Y} = \phi_{dec}(\mathbf Z)

    with MLPs φ_enc and φ_dec of one hidden layer. The decoder reads z_u for nodes, [z_u, z_v] for the edges of
    ``edge_label_index``, and the sum of z_u over each graph for graphs; it returns logits or values.

    Every model of the book is one of these and differs only in its ``layers``, which are called as
    ``layer(z, edge_index, edge_weight, edge_attr, batch)`` and keep the width.

    Args:
        in_channels: number D of node features, or -1: as many as the first input has.
        hidden_channels: width d.
        out_channels: number of outputs.
        layers: the propagation, made only after the encoder has its parameters (pass a generator).
        dropout: rate, in the MLPs and between layers.
        batch_norm: normalise after each layer.
        residual: add a layer's input to its output.
        activate: put ReLU and dropout between layers.
        task: ``"node"``, ``"edge"`` or ``"graph"``.
        edge_dim: number of edge features, or None.
        edge_features: ``"signal"`` adds to Z⁽⁰⁾ the paper's
            :math:`\mathbf m_u = \sum_v \tilde a_{uv} \mathbf W_E \mathbf e_{uv}`; ``"layers"`` leaves them to the
            layers; ``"ignored"`` drops them.

    Shapes:
        x [N, in_channels], edge_index [2, E], edge_weight [E], edge_attr [E, edge_dim], batch [N],
        edge_label_index [2, M] → [N, out], [M, out] or [G, out]; x may be sparse (CSR).

        ``model(data)`` reads all of them from a PyG ``Data`` or ``Batch``. For ``edge_index``, PyG's ``EdgeIndex`` or
        ``adj_t`` as a sparse torch tensor will do. ``batch_size`` is the number G of graphs (PyG's ``num_graphs``), if
        the last ones of a batch may be empty; by default it is the largest number in ``batch`` + 1.

    Example:
        >>> import torch
        >>> from advdiff.nn import AdvDiffConv, GraphModel
        >>> model = GraphModel(8, 16, 3, (AdvDiffConv(16, 16) for _ in range(2)), task="graph")
        >>> model(torch.randn(4, 8), torch.tensor([[0, 1], [1, 0]]), batch=torch.tensor([0, 0, 1, 1])).shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        layers: Iterable[nn.Module],
        *,
        dropout: float = 0.0,
        batch_norm: bool = False,
        residual: bool = False,
        activate: bool = True,
        task: str = "node",
        edge_dim: int | None = None,
        edge_features: str = "signal",
    ) -> None:
        super().__init__()
        check_choice("task", task, TASKS)
        check_choice("edge_features", edge_features, EDGE_FEATURES)
        if min(1 if in_channels == -1 else in_channels, hidden_channels, out_channels) < 1:
            raise ValueError(
                "in_channels, hidden_channels and out_channels must be at least 1 (in_channels=-1: as many as the "
                "first input has)."
            )
        self.in_channels, self.task, self.residual, self.activate = in_channels, task, residual, activate
        self.edge_dim, self.edge_features = edge_dim, edge_features
        self.encoder = mlp(in_channels, hidden_channels, hidden_channels, dropout)
        self.edge = nn.Linear(edge_dim, hidden_channels, bias=False) if edge_dim and edge_features == "signal" else None
        self.layers = nn.ModuleList(layers)
        self.norms = nn.ModuleList(BatchNorm1d(hidden_channels) if batch_norm else nn.Identity() for _ in self.layers)
        self.activation = nn.Sequential(nn.ReLU(), nn.Dropout(dropout))
        self.decoder = mlp(hidden_channels * (2 if task == "edge" else 1), hidden_channels, out_channels, dropout)

    def reset_parameters(self) -> None:
        for module in self.modules():
            if module is not self and hasattr(module, "reset_parameters"):
                module.reset_parameters()  # type: ignore[operator]

    def forward(
        self,
        x: Tensor | Data,
        edge_index: Edges | None = None,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        edge_label_index: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        traced = is_traced()
        given = (x, edge_index, edge_weight, edge_attr, batch, edge_label_index, batch_size)
        if traced:
            return self._forward(*self._enter(given, traced))
        entered = self._enter(given, traced)
        with values_checked(*entered[0].compared):
            return self._forward(*entered)

    # What is done once for each graph is Python that torch.compile need not see: one break, before its only graph.
    @torch.compiler.disable
    def _enter(
        self, given: tuple, traced: bool
    ) -> tuple[GraphInput, Velocity | None, Segments | None, list[tuple | None]]:
        """The input as plain tensors, checked; V that sums the edge features; the graphs to be read out; what layers
        want prepared of the edges."""
        if traced and CURRENT_PART.get() is not None:
            raise ValueError("torch cannot record what the parts of a graph tell each other; call the model itself.")
        graph = GraphInput.of(*given)
        if self.in_channels == -1 and graph.x.dim() == 2:
            self.in_channels = graph.x.size(1)
        while not self._check(graph):
            graph = GraphInput.of(*given)
        x, edge_index, edge_weight, edge_attr, batch, *_ = graph
        if edge_attr is not None:
            graph = graph._replace(edge_attr=edge_attr.to(x.dtype))
        with values_checked(*graph.compared):
            places = [
                layer.prepare(x, edge_index, edge_weight, batch, graph.batch_size, traced)  # type: ignore[operator]
                if hasattr(layer, "prepare")
                else None
                for layer in self.layers
            ]
            summing = None if self.edge is None else velocity_of(edge_index, x.size(0), edge_weight, "symmetric")
            graphs = segments_of(x.size(0), batch, x.device, graph.batch_size) if self.task == "graph" else None
        return graph, summing, graphs, places

    def _forward(
        self, graph: GraphInput, velocity: Velocity | None, graphs: Segments | None, places: list[tuple | None]
    ) -> Tensor:
        x, edge_index, edge_weight, edge_attr, batch, edge_label_index, *_ = graph
        z = encode(self.encoder, x)
        if self.edge is not None and velocity is not None and edge_attr is not None:
            z = z + edge_signal(self.edge, velocity, edge_attr, z)
        for number, (layer, norm, place) in enumerate(zip(self.layers, self.norms, places, strict=True)):
            given = self.activation(z) if number and self.activate else z
            if place is None:
                z = norm(layer(given, edge_index, edge_weight, edge_attr, batch))
            else:
                z = norm(layer(given, place[0], None, edge_attr, place[1]))
            if self.residual:
                z = z + given
        if self.task == "edge":
            assert edge_label_index is not None
            z = torch.cat([z[edge_label_index[0]], z[edge_label_index[1]]], dim=-1)
        elif graphs is not None:
            z = graphs.sum(z)
        out: Tensor = self.decoder(z)
        return out

    def _check(self, graph: GraphInput) -> bool:
        """Everything that a model reads, at the door: of a graph that it knows, only the values of the features.

        False if its edges are no longer those of its ``adj_t``.
        """
        x, edge_index, edge_weight, edge_attr, batch, edge_label_index, _, adj_t = graph
        check_floating("x", x, sparse=True)
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise ValueError(f"x has shape {tuple(x.shape)}; the model expects [N, {self.in_channels}].")
        if x.layout not in (torch.strided, torch.sparse_csr):
            raise ValueError(f"x is stored as {x.layout}; pass it dense or as CSR: call .to_sparse_csr() on it.")
        check_precision("x", x, self.encoder[0].weight)  # type: ignore[arg-type]
        check_tensor("edge_index", edge_index)
        if self.edge_dim is not None or edge_attr is not None:
            check_edge_attr(edge_attr, edge_index, self.edge_dim)
        if not check_graph(
            edge_index, x.size(0), edge_weight, batch, x.device, {"x": x, "edge_attr": edge_attr}, adj_t
        ):
            return False
        if self.task == "edge":
            if edge_label_index is None:
                raise ValueError("task='edge' needs edge_label_index [2, M]: the node pairs to predict.")
            check_edge_index(edge_label_index, x.size(0), "edge_label_index")
        return True


def encode(encoder: nn.Sequential, x: Tensor) -> Tensor:
    """φ_enc(X) for dense or sparse X; a sparse one is multiplied by the first weights without being made dense."""
    if x.layout != torch.sparse_csr or x.requires_grad:
        z: Tensor = encoder(x)
        return z
    first, *rest = encoder
    assert isinstance(first, nn.Linear) and first.bias is not None
    z = _SparseProduct.apply(recall(_sparse, [x], (), SparseFeatures), first.weight) + first.bias
    for module in rest:
        z = module(z)
    return z


class SparseFeatures:
    """Constant features X in CSR. The gradient of the weights needs Xᵀ, which is made once for each X."""

    def __init__(self, matrix: Tensor) -> None:
        self.matrix = matrix

    @cached_property
    def transposed(self) -> Tensor:
        return self.matrix.t().to_sparse_csr()


class _SparseProduct(torch.autograd.Function):
    """X Wᵀ."""

    @staticmethod
    def forward(ctx, x: SparseFeatures, weight: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.x = x
        return x.matrix @ weight.t()

    @staticmethod
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        return None, (ctx.x.transposed @ grad).t()


def edge_signal(linear: nn.Linear, velocity: Velocity, edge_attr: Tensor, x: Tensor) -> Tensor:
    """M with m_u = Σ_v v_uv W_E e_uv; the sum comes first, since edge features are narrow."""
    weighted = velocity.entries.to(x.dtype)[:, None] * edge_attr.to(x.dtype)
    total = x.new_zeros(x.size(0), edge_attr.size(1)).index_add_(0, velocity.edge_index[1], weighted)
    signal: Tensor = linear(total)
    return signal


def check_edge_attr(edge_attr: Tensor | None, edge_index: Tensor, edge_dim: int | None) -> None:
    """One row of ``edge_dim`` numbers per edge, or nothing if ``edge_dim`` is None."""
    if edge_dim is None:
        if edge_attr is not None:
            raise ValueError("edge_attr was given but edge_dim is None; set edge_dim to its number of columns.")
        return
    if edge_attr is None:
        raise ValueError(f"edge_dim is {edge_dim} but edge_attr was not given.")
    check_tensor("edge_attr", edge_attr)
    num_edges = edge_index.size(-1) if edge_index.dim() else 0
    if edge_attr.shape != (num_edges, edge_dim):
        raise ValueError(
            f"edge_attr has shape {tuple(edge_attr.shape)}; it must be [{num_edges}, {edge_dim}]: one row per edge."
        )


def check_heads(channels: int, heads: int) -> None:
    """Heads that share the width between them must divide it."""
    if heads < 1 or channels % heads:
        raise ValueError(f"hidden_channels={channels} must be a multiple of heads={heads}, and heads at least 1.")
