"""GraphTrans: a graph convolution first, then a Transformer over the nodes of each graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from advdiff.checks import has_values
from advdiff.nn.model import check_heads

#: Most nodes of one graph for which GraphTrans computes its softmax attention, whose time grows as N².
MAX_NODES = 32_768


class Padding:
    """The nodes of each graph as the rows of one padded block [G, n, …], whatever their order in the batch."""

    def __init__(self, num_nodes: int, batch: Tensor | None) -> None:
        self.graphs, self.length, self.slot, self.mask = 1, num_nodes, None, None
        # On ``meta`` nothing can be counted: shapes are the same with one graph.
        if batch is not None and num_nodes and has_values(batch):
            _, graph, counts = torch.unique(batch, return_inverse=True, return_counts=True)
            self.graphs, self.length = counts.numel(), int(counts.max())
            order = torch.argsort(graph, stable=True)
            first = (counts.cumsum(0) - counts)[graph[order]]
            slot = torch.empty_like(order)
            slot[order] = graph[order] * self.length + torch.arange(num_nodes, device=batch.device) - first
            self.slot = slot
            if self.graphs * self.length > num_nodes:
                mask = torch.zeros(self.graphs * self.length, dtype=torch.bool, device=batch.device)
                self.mask = mask.index_fill_(0, slot, True).view(self.graphs, 1, 1, self.length)

    def pad(self, X: Tensor) -> Tensor:
        """[N, H, F] → [G, H, n, F]."""
        if self.slot is not None:
            X = X.new_zeros(self.graphs * self.length, *X.shape[1:]).index_copy(0, self.slot, X)
        return X.view(self.graphs, self.length, *X.shape[1:]).transpose(1, 2)

    def unpad(self, X: Tensor) -> Tensor:
        """[G, H, n, F] → [N, H, F]."""
        X = X.transpose(1, 2).flatten(0, 1)
        return X if self.slot is None else X[self.slot]


class SelfAttention(nn.Module):
    """One layer of a Transformer, normalised after each part; see :class:`Transformer`."""

    def __init__(self, channels: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(channels, 3 * channels)
        self.output = nn.Sequential(nn.Linear(channels, channels), nn.Dropout(dropout))
        self.forward_part = nn.Sequential(
            nn.Linear(channels, 4 * channels),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(4 * channels, channels),
            nn.Dropout(dropout),
        )
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(2))

    def forward(self, z: Tensor, padding: Padding) -> Tensor:
        query, key, value = self.project(z).unflatten(1, (3 * self.heads, -1)).chunk(3, dim=1)
        out = F.scaled_dot_product_attention(
            padding.pad(query), padding.pad(key), padding.pad(value), attn_mask=padding.mask
        )
        z = self.norms[0](z + self.output(padding.unpad(out).flatten(1)))
        after: Tensor = self.norms[1](z + self.forward_part(z))
        return after


class Transformer(nn.Module):
    r"""The second half of GraphTrans (Wu et al., 2021): a Transformer over the nodes of each graph, without positions.

    .. math::
        \mathbf H^{(0)} = \text{LN}(\mathbf Z \mathbf W), \quad
        \bar{\mathbf H} = \text{LN}\big(\mathbf H + \text{MHA}(\mathbf H)\big), \quad
        \mathbf H' = \text{LN}\big(\bar{\mathbf H} + \text{FFN}(\bar{\mathbf H})\big)

    The first half are the :class:`~advdiff.nn.convolutions.GCN` layers before it; edge weights enter there. All pairs
    of nodes attend. Time grows as N²; memory does not, since torch's ``scaled_dot_product_attention`` need not form the
    N×N matrix, for which reason dropout acts on the attention's output and not on its weights. A graph of more than
    32,768 nodes is refused. The published model reads a graph out by a special token; here, as in all models, by the
    sum over its nodes.

    Args:
        channels: width d, a multiple of ``heads``.
        heads: number H of heads.
        attention_layers: number of Transformer layers.
        dropout: rate, after attention and inside and after the feed-forward part (of width 4d).
    """

    def __init__(self, channels: int, heads: int = 1, attention_layers: int = 1, dropout: float = 0.0) -> None:
        super().__init__()
        check_heads(channels, heads)
        if attention_layers < 1:
            raise ValueError(f"attention_layers is {attention_layers}; it must be at least 1.")
        self.start = nn.Sequential(nn.Linear(channels, channels), nn.LayerNorm(channels))
        self.blocks = nn.ModuleList(SelfAttention(channels, heads, dropout) for _ in range(attention_layers))

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        padding = Padding(z.size(0), batch)
        if padding.length > MAX_NODES:
            raise ValueError(
                f"graphtrans attends between all pairs of nodes, and a graph has {padding.length}; beyond {MAX_NODES} "
                "nodes use a model of linear cost: graphgps, difformer or advdifformer-s."
            )
        z = self.start(z)
        for block in self.blocks:
            z = block(z, padding)
        return z
