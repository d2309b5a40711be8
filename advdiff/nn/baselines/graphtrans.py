"""GraphTrans: a graph convolution first, then a Transformer over the nodes of each graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from advdiff.nn.baselines.gcn import GCN
from advdiff.nn.cache import segments_of
from advdiff.nn.model import check_heads
from advdiff.operators.segments import Segments

#: Most nodes of one graph for which GraphTrans computes its softmax attention, whose time grows as N².
MAX_NODES = 32_768


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

    def forward(self, z: Tensor, segments: Segments) -> Tensor:
        mask = segments.mask
        if mask is not None:
            mask[:, 0] = True  # a graph without nodes: the softmax of nothing would be NaN
            mask = mask[:, None, None]
        query, key, value = self.project(z).unflatten(1, (3 * self.heads, -1)).chunk(3, dim=1)
        out = F.scaled_dot_product_attention(
            segments.pad(query), segments.pad(key), segments.pad(value), attn_mask=mask
        )
        z = self.norms[0](z + self.output(segments.unpad(out).flatten(1)))
        after: Tensor = self.norms[1](z + self.forward_part(z))
        return after


class Transformer(nn.Module):
    r"""The second half of GraphTrans: a Transformer over the nodes of each graph, without positions.

    .. math::
        \mathbf H^{(0)} = \text{LN}(\mathbf Z \mathbf W), \quad
        \bar{\mathbf H} = \text{LN}\big(\mathbf H + \text{MHA}(\mathbf H)\big), \quad
        \mathbf H' = \text{LN}\big(\bar{\mathbf H} + \text{FFN}(\bar{\mathbf H})\big)

    All pairs of nodes attend. Time grows as N²; memory does not, as torch's ``scaled_dot_product_attention`` forms no
    N×N matrix, for which reason dropout acts on the attention's output and not on its weights. A graph of more than
    32,768 nodes is refused.

    Args:
        channels: width d, a multiple of ``heads``.
        heads: number H of heads.
        attention_layers: number of Transformer layers.
        dropout: rate, after attention and inside and after the feed-forward part (of width 4d).
        token: read each graph out by a token of its own, [CLS], which attends and is attended to. Its final state is
            returned in equal parts by the nodes of its graph, so that their sum, a model's read-out, is the token.
    """

    def __init__(
        self, channels: int, heads: int = 1, attention_layers: int = 1, dropout: float = 0.0, token: bool = False
    ) -> None:
        super().__init__()
        check_heads(channels, heads)
        if attention_layers < 1:
            raise ValueError(f"attention_layers is {attention_layers}; it must be at least 1.")
        self.start = nn.Sequential(nn.Linear(channels, channels), nn.LayerNorm(channels))
        self.blocks = nn.ModuleList(SelfAttention(channels, heads, dropout) for _ in range(attention_layers))
        self.token = nn.Parameter(torch.empty(1, channels)) if token else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        if self.token is not None:
            nn.init.normal_(self.token)

    def forward(self, z: Tensor, batch: Tensor | None = None) -> Tensor:
        nodes, z = z.size(0), self.start(z)
        segments = segments_of(nodes, batch, z.device)
        if segments.largest > MAX_NODES:
            raise ValueError(
                f"graphtrans attends between all pairs of nodes, and a graph has {segments.largest}; beyond "
                f"{MAX_NODES} nodes use a model of linear cost: graphgps, difformer or advdifformer-s."
            )
        if self.token is not None:
            z = torch.cat([z, self.token.expand(segments.num_graphs, -1)])
            tokens = torch.arange(segments.num_graphs, device=z.device)
            with_tokens = None if batch is None else torch.cat([batch.long(), tokens])
            attending = Segments(z.size(0), with_tokens, z.device)
        else:
            attending = segments
        for block in self.blocks:
            z = block(z, attending)
        if self.token is None:
            return z
        share = z[nodes:] / segments.counts.clamp(min=1).to(z.dtype)[:, None]
        return segments.per_node(share)


class GraphTrans(nn.Module):
    """GraphTrans (Wu et al., 2021): graph convolutions, then a :class:`Transformer`.

    The convolutions are those of :class:`~advdiff.nn.baselines.gcn.GCN` with ReLU and dropout after each; edge weights
    enter there. A graph is read out by the Transformer's [CLS] token; nodes and edges need none.

    Args:
        channels: width d, a multiple of ``heads``.
        num_layers: number of convolutions.
        attention_layers: number of Transformer layers.
        heads: number H of heads.
        dropout: rate.
        batch_norm: normalise after each convolution.
        residual: add a convolution's input to its output.
        task: ``"node"``, ``"edge"`` or ``"graph"``.
    """

    def __init__(
        self,
        channels: int,
        num_layers: int = 2,
        attention_layers: int = 1,
        heads: int = 1,
        dropout: float = 0.0,
        batch_norm: bool = False,
        residual: bool = False,
        task: str = "node",
    ) -> None:
        super().__init__()
        self.residual = residual
        self.convolutions = nn.ModuleList(GCN(channels) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(channels) if batch_norm else nn.Identity() for _ in range(num_layers))
        self.activation = nn.Sequential(nn.ReLU(), nn.Dropout(dropout))
        self.transformer = Transformer(channels, heads, attention_layers, dropout, token=task == "graph")

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        for convolution, norm in zip(self.convolutions, self.norms, strict=True):
            convolved = norm(convolution(z, edge_index, edge_weight))
            z = self.activation(z + convolved if self.residual else convolved)
        out: Tensor = self.transformer(z, batch)
        return out
