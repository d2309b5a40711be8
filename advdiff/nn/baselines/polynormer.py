"""Polynormer: products of features, first along the edges and then over the whole graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv

from advdiff.checks import check_choice
from advdiff.nn.baselines.gat import GAT
from advdiff.nn.baselines.gcn import GCN
from advdiff.nn.model import check_heads
from advdiff.operators import Attention
from advdiff.operators.segments import Segments

LOCAL = ("gat", "gcn")


class PlainGAT(GAT):
    """:class:`~advdiff.nn.baselines.gat.GAT` without self-loops and bias."""

    def __init__(self, channels: int, heads: int = 1) -> None:
        GATConv.__init__(self, channels, channels // heads, heads, add_self_loops=False, bias=False)


class _Mixed(nn.Module):
    """What both kinds of layers have: a gate of their own, a norm, and β = σ(b) for each feature, learned."""

    def __init__(self, channels: int, dropout: float) -> None:
        super().__init__()
        self.gate, self.norm = nn.Linear(channels, channels), nn.LayerNorm(channels)
        self.mix = nn.Parameter(torch.zeros(channels))
        self.dropout = nn.Dropout(dropout)

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.mix)


class LocalLayer(_Mixed):
    r"""A local layer.

    .. math::
        \mathbf X = \text{ReLU}\big(\text{GAT}(\mathbf Z) + \mathbf Z \mathbf W_X\big), \qquad
        \mathbf Z' = (1 - \beta) \odot \text{LN}\big(\text{ReLU}(\mathbf Z \mathbf W_H) \odot \mathbf X\big)
        + \beta \odot \mathbf X

    Args:
        channels: width d.
        local: the layer of message passing.
        dropout: rate, on X.
    """

    def __init__(self, channels: int, local: nn.Module, dropout: float = 0.0) -> None:
        super().__init__(channels, dropout)
        self.local, self.skip = local, nn.Linear(channels, channels)

    def forward(self, z: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        passed = self.dropout(F.relu(self.local(z, edge_index, edge_weight) + self.skip(z)))
        return torch.lerp(self.norm(F.relu(self.gate(z)) * passed), passed, self.mix.sigmoid())


class GlobalLayer(_Mixed):
    r"""A global layer, in O(N) and within each graph.

    .. math::
        \mathbf Z' = \text{ReLU}\big((\text{LN}(\mathbf C \mathbf Z \mathbf W_V) \odot (\mathbf Z \mathbf W_H + \beta))
        \mathbf W_O\big), \qquad c_{uv} \propto \sigma(\mathbf q_u)^\top \sigma(\mathbf k_v)

    with the logistic function σ.

    Args:
        channels: width d, a multiple of ``heads``, which share it.
        heads: number H of heads.
        dropout: rate, at the end.
    """

    def __init__(self, channels: int, heads: int = 1, dropout: float = 0.0) -> None:
        super().__init__(channels, dropout)
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(channels, channels, bias=False) for _ in range(3))
        self.output = nn.Linear(channels, channels)

    def forward(self, z: Tensor, segments: Segments) -> Tensor:
        shape = (z.size(0), self.heads, -1)
        query, key = (linear(z).sigmoid().unflatten(1, shape[1:]) for linear in (self.query, self.key))
        row_sum = (query * segments.per_node(segments.sum(key))).sum(-1, keepdim=True)
        attention = Attention.from_factors(query / (row_sum + 1e-6), key, segments, multi_head=True)
        spread = (attention @ self.value(z).unflatten(1, shape[1:])).flatten(1)
        spread = self.norm(spread) * (self.gate(z) + self.mix.sigmoid())
        out: Tensor = self.dropout(F.relu(self.output(spread)))
        return out


class Polynormer(nn.Module):
    r"""Polynormer (Deng et al., 2024): the sum of all local layers' outputs, normalised, then global layers.

    Its outputs are polynomials of the features whose degree grows with the depth. The authors first train the local
    layers with a read-out of their own and then all of it; here everything is trained from the start. Edge weights
    enter the local part.

    Args:
        channels: width d, a multiple of ``heads``, which share it.
        num_layers: number of local layers.
        attention_layers: number of global layers.
        heads: number H of heads, in both.
        local: ``"gat"`` or ``"gcn"``, the message passing.
        dropout: rate.
    """

    def __init__(
        self,
        channels: int,
        num_layers: int = 5,
        attention_layers: int = 2,
        heads: int = 1,
        local: str = "gat",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        check_heads(channels, heads)
        check_choice("local", local, LOCAL)
        if attention_layers < 1:
            raise ValueError(f"attention_layers is {attention_layers}; it must be at least 1.")
        self.locals = nn.ModuleList(
            LocalLayer(channels, PlainGAT(channels, heads) if local == "gat" else GCN(channels), dropout)
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(channels)
        self.globals = nn.ModuleList(GlobalLayer(channels, heads, dropout) for _ in range(attention_layers))

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        total = torch.zeros_like(z)
        for layer in self.locals:
            z = layer(z, edge_index, edge_weight)
            total = total + z
        segments = Segments(z.size(0), batch, z.device)
        z = self.norm(total)
        for layer in self.globals:
            z = layer(z, segments)
        return z
