"""SGFormer: simple global attention beside a graph convolution."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from advdiff.nn.baselines.diffusion import AttentionHeads
from advdiff.nn.baselines.gcn import GCN
from advdiff.operators import Attention
from advdiff.operators.segments import Segments


class SimpleAttention(AttentionHeads):
    r"""The attention of SGFormer, in O(N) and within each graph of n nodes.

    .. math::
        \mathbf z'_u = \frac1H \sum_{h=1}^H
        \frac{n \mathbf v_u + \sum_w (\hat{\mathbf q}_u^\top \hat{\mathbf k}_w) \mathbf v_w}
        {n + \sum_w \hat{\mathbf q}_u^\top \hat{\mathbf k}_w}

    with unit vectors q̂ and k̂ (in PyTorch Geometric, too; the authors' code divides by the norm of the whole matrix,
    with which the second terms fade as N grows). A query opposite to all keys keeps its value.

    Args:
        channels: width d, of each head too.
        heads: number H of heads.
    """

    def __init__(self, channels: int, heads: int = 1) -> None:
        super().__init__(channels, heads)
        self.value = nn.Linear(channels, heads * channels, bias=False)

    def forward(self, z: Tensor, segments: Segments) -> Tensor:
        query, key = (F.normalize(x, dim=-1) for x in self.project(z))
        value = self.value(z).view(query.shape)
        size = segments.per_node(segments.counts.to(z.dtype)[:, None, None])
        below = size + (query * segments.per_node(segments.sum(key))).sum(-1, keepdim=True)
        above = size * value + Attention.from_factors(query, key, segments, multi_head=True) @ value
        alone = below <= 1e-6 * size
        return (above / below.masked_fill(alone, 1.0)).where(~alone, value).mean(1)


class SGFormer(nn.Module):
    r"""SGFormer (Wu et al., 2023), the model of PyTorch Geometric without its last linear layer.

    .. math::
        \mathbf Z' = w\, \mathbf Z_{GCN} + (1 - w)\, \mathbf Z_{attention}

    Both branches start with a linear layer of their own, a norm and ReLU. The layers of the one are GCN, batch norm
    and ReLU, with the branch's start added; those of the other are :class:`SimpleAttention`, the mean with its
    input, layer norm and ReLU. Edge weights enter the GCN.

    Args:
        channels: width d, of each head of the attention too.
        num_layers: number of graph convolutions.
        attention_layers: number of attention layers.
        heads: number H of heads.
        graph_weight: w in [0, 1].
        dropout: rate, after every layer.
    """

    def __init__(
        self,
        channels: int,
        num_layers: int = 2,
        attention_layers: int = 1,
        heads: int = 1,
        graph_weight: float = 0.5,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0.0 <= graph_weight <= 1.0:
            raise ValueError(f"graph_weight is {graph_weight:g}; it must lie in [0, 1].")
        if attention_layers < 1:
            raise ValueError(f"attention_layers is {attention_layers}; it must be at least 1.")
        self.graph_weight = graph_weight
        self.activation = nn.Sequential(nn.ReLU(), nn.Dropout(dropout))
        self.starts = nn.ModuleList(nn.Linear(channels, channels) for _ in range(2))
        self.convolutions = nn.ModuleList(GCN(channels) for _ in range(num_layers))
        self.graph_norms = nn.ModuleList(nn.BatchNorm1d(channels) for _ in range(num_layers + 1))
        self.attentions = nn.ModuleList(SimpleAttention(channels, heads) for _ in range(attention_layers))
        self.norms = nn.ModuleList(nn.LayerNorm(channels) for _ in range(attention_layers + 1))

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        near = start = self.activation(self.graph_norms[0](self.starts[0](z)))
        for convolution, norm in zip(self.convolutions, self.graph_norms[1:], strict=True):
            near = self.activation(norm(convolution(near, edge_index, edge_weight))) + start
        segments = Segments(z.size(0), batch, z.device)
        far = self.activation(self.norms[0](self.starts[1](z)))
        for attention, norm in zip(self.attentions, self.norms[1:], strict=True):
            far = self.activation(norm(0.5 * (attention(far, segments) + far)))
        out: Tensor = self.graph_weight * near + (1.0 - self.graph_weight) * far
        return out
