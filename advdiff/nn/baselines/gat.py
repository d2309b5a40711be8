"""GAT: attention on the edges."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GATConv

from advdiff.nn.baselines.edges import edges_of
from advdiff.nn.model import check_heads


class GAT(GATConv):
    r"""The graph attention of Veličković et al. (2018), PyTorch Geometric's ``GATConv``, heads concatenated.

    .. math::
        \mathbf z'_u = \Big\Vert_{h=1}^H \sum_{v} c^h_{uv} \mathbf W_h \mathbf z_v + \mathbf b, \qquad
        c^h_{uv} = \frac{a_{uv}\, e^{s^h_{uv}}}{\sum_w a_{uw}\, e^{s^h_{uw}}}, \quad
        s^h_{uv} = \sigma(\mathbf a_h^\top \mathbf W_h \mathbf z_u + \mathbf b_h^\top \mathbf W_h \mathbf z_v)

    over the edges and one self-loop per node, with σ the leaky ReLU. ``GATConv`` knows no edge weights; here they
    multiply the softmax, so that an edge of weight 2 counts as two edges, and weights of 1 give ``GATConv``.

    Args:
        channels: width d, a multiple of ``heads``.
        heads: number H of heads.
        dropout: rate, on the attention.
    """

    def __init__(self, channels: int, heads: int = 1, dropout: float = 0.0) -> None:
        check_heads(channels, heads)
        super().__init__(channels, channels // heads, heads, dropout=dropout)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        edges = edges_of(edge_index, z.size(0), edge_weight, self_loops=self.add_self_loops)
        state = self.lin(z).view(z.size(0), self.heads, self.out_channels)
        at_source, at_target = ((state * a).sum(-1).T for a in (self.att_src, self.att_dst))
        score = at_source[:, edges.source] + at_target[:, edges.target]
        attention = edges.softmax(F.leaky_relu(score, self.negative_slope))
        attention = F.dropout(attention, self.dropout, self.training)
        out: Tensor = edges.sum(attention, state.transpose(0, 1)).transpose(0, 1).flatten(1)
        return out if self.bias is None else out + self.bias
