"""Graph Transformers of linear cost: GraphGPS with Performer attention, and DIFFormer. Attention stays in a graph."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GPSConv

from advdiff.checks import check_choice
from advdiff.graph import NORMALIZATIONS
from advdiff.nn.convolutions import GCN
from advdiff.nn.diffusion import AttentionHeads
from advdiff.nn.model import check_heads
from advdiff.nn.velocity_cache import velocity_of
from advdiff.operators import Attention
from advdiff.segments import Segments


class GraphGPS(GPSConv):
    r"""The layer of GraphGPS (Rampášek et al., 2022), PyTorch Geometric's ``GPSConv`` with GCN and Performer.

    .. math::
        \mathbf Z' = \text{BN}\big(\mathbf H + \text{FFN}(\mathbf H)\big), \quad
        \mathbf H = \text{BN}\big(\mathbf Z + \text{GCN}(\mathbf Z)\big)
        + \text{BN}\big(\mathbf Z + \text{Performer}(\mathbf Z)\big)

    Performer: :math:`c_{uv} \propto \phi(\mathbf q_u)^\top \phi(\mathbf k_v)` with φ(x) = ReLU(Px) + 0.001 and P a
    random matrix of orthogonal rows, fixed at the start: PyTorch Geometric's choice (the approximation of softmax has
    exponentials instead). Of low rank like our C, it goes through the same kernel, in O(N) and within each graph; in
    ``GPSConv`` the padding of smaller graphs leaks into the row sums. Edge weights enter the GCN. No
    positional encodings are added.

    Args:
        channels: width d, a multiple of ``heads`` and at least twice as large.
        heads: number H of heads.
        dropout: rate, after both parts and in the feed-forward part (of width 2d).
    """

    def __init__(self, channels: int, heads: int = 1, dropout: float = 0.0) -> None:
        check_heads(channels, heads)
        if channels < 2 * heads:
            raise ValueError(f"hidden_channels={channels} must be at least twice heads={heads} for random features.")
        options = {"head_channels": channels // heads}
        super().__init__(channels, GCN(channels), heads, dropout, attn_type="performer", attn_kwargs=options)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        near = F.dropout(self.conv(z, edge_index, edge_weight), self.dropout, self.training)
        far = F.dropout(self.performer(z, batch), self.dropout, self.training)
        z = self.norm1(near + z) + self.norm2(far + z)
        out: Tensor = self.norm3(z + self.mlp(z))
        return out

    def performer(self, z: Tensor, batch: Tensor | None) -> Tensor:
        shape = (z.size(0), self.heads, self.attn.head_channels)
        query, key, value = (linear(z).view(shape) for linear in (self.attn.q, self.attn.k, self.attn.v))
        projection = self.attn.fast_attn.projection_matrix.T
        left, right = (F.relu(x @ projection) + 0.001 for x in (query, key))
        segments = Segments(z.size(0), batch, z.device)
        row_sum = (left * segments.per_node(segments.sum(right))).sum(-1, keepdim=True)
        attention = Attention.from_factors(left / row_sum, right, segments, multi_head=True)
        out: Tensor = self.attn.attn_out((attention @ value).flatten(1))
        return out


class Difformer(AttentionHeads):
    r"""The layer of DIFFormer (Wu et al., 2023) with simple diffusivity: an Euler step of global and local diffusion.

    .. math::
        \mathbf Z^{(k+1)} = (1 - \tau) \mathbf Z^{(k)}
        + \frac{\tau}{2H} \sum_{h=1}^H (\mathbf C_h^{(k)} + \tilde{\mathbf A})\, \mathbf Z^{(k)} \mathbf W_{V,h}, \qquad
        c_{uv} = \frac{1 + \hat{\mathbf q}_u^\top \hat{\mathbf k}_v}
        {\sum_w (1 + \hat{\mathbf q}_u^\top \hat{\mathbf k}_w)}

    The attention is AdvDIFFormer's, in O(N). Edge weights enter Ã. Without the graph the step is
    (1 − τ)Z + (τ/H) Σ_h C_h Z W_{V,h}. The layer norm of the authors' code is not used.

    Args:
        channels: width d, of each head too.
        heads: number H of heads.
        tau: step τ in (0, 1].
        use_graph: add Ã (False: edges, their weights and their features have no effect).
        normalization: of Ã, ``"symmetric"`` or ``"row"``.
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        tau: float = 0.5,
        use_graph: bool = True,
        normalization: str = "symmetric",
    ) -> None:
        super().__init__(channels, heads)
        check_choice("kind of normalisation", normalization, NORMALIZATIONS)
        if not 0.0 < tau <= 1.0:
            raise ValueError(f"tau is {tau:g}; it must lie in (0, 1].")
        self.tau, self.use_graph, self.normalization = tau, use_graph, normalization
        self.value = nn.Linear(channels, heads * channels, bias=False)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        value = self.value(z).view(z.size(0), self.heads, self.channels)
        spread = (Attention(*self.project(z), batch) @ value).mean(1)
        if self.use_graph:
            adjacency = velocity_of(edge_index, z.size(0), edge_weight, self.normalization)
            spread = 0.5 * (spread + adjacency @ value.mean(1))
        return torch.lerp(z, spread, self.tau)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, tau={self.tau:g}, use_graph={self.use_graph}"
