"""Graph convolutions: the layers of PyTorch Geometric with their products by our sparse kernels.

Parameters, initialisation and formula are PyTorch Geometric's. Only the product with the normalised adjacency, there a
gather and a scatter of one row per edge at every step, is that of a sparse matrix which is normalised once per graph:
eight times faster at 1,000 nodes of degree 28, and without the E × d memory.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, SGConv

from advdiff.checks import check_nonnegative
from advdiff.nn.diffusion import diffuse
from advdiff.nn.edges import edges_of
from advdiff.nn.model import check_heads
from advdiff.nn.velocity_cache import velocity_of


class Pointwise(nn.Linear):
    r"""The layer of the graph-blind MLP, :math:`\mathbf Z \mathbf W + \mathbf b`: a GCN without its graph.

    Edges, their weights and their features have no effect.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels)

    def forward(self, z: Tensor, *graph: Tensor | None) -> Tensor:
        return super().forward(z)


class GCN(GCNConv):
    r"""The graph convolution of Kipf and Welling (2017), PyTorch Geometric's ``GCNConv``.

    .. math::
        \mathbf Z' = \hat{\mathbf A} \mathbf Z \mathbf W + \mathbf b, \qquad
        \hat{\mathbf A} = \hat{\mathbf D}^{-1/2} (\mathbf A + \mathbf I) \hat{\mathbf D}^{-1/2}

    Edge weights enter A. On directed graphs our two-sided degrees are used, and a self-loop of the graph adds to
    that of the identity; else the results are those of ``GCNConv``.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        adjacency = velocity_of(edge_index, z.size(0), edge_weight, "symmetric", self_loops="all")
        out = adjacency @ self.lin(z)
        return out if self.bias is None else out + self.bias


class SGC(SGConv):
    r"""The simplified graph convolution of Wu et al. (2019), PyTorch Geometric's ``SGConv``:
    :math:`\mathbf Z' = \hat{\mathbf A}^K \mathbf Z \mathbf W + \mathbf b`.

    Edge weights enter A; see :class:`GCN` for Â.

    Args:
        channels: width d.
        order: power K of Â.
    """

    def __init__(self, channels: int, order: int = 2) -> None:
        if order < 1:
            raise ValueError(f"order is {order}; it must be at least 1.")
        super().__init__(channels, channels, K=order)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        adjacency = velocity_of(edge_index, z.size(0), edge_weight, "symmetric", self_loops="all")
        for _ in range(self.K):
            z = adjacency @ z
        out: Tensor = self.lin(z)
        return out


class GDC(nn.Linear):
    r"""Graph diffusion convolution with the heat kernel (Gasteiger et al., 2019).

    .. math::
        \mathbf Z' = \mathbf S \mathbf Z \mathbf W + \mathbf b, \qquad
        \mathbf S = \sum_{k=0}^\infty e^{-T} \frac{T^k}{k!} \hat{\mathbf A}^k = e^{-(\mathbf I - \hat{\mathbf A}) T}

    a GCN whose adjacency matrix is the heat kernel of Â = D̂^{-1/2}(A + I)D̂^{-1/2}. The ``GDC`` transform of PyTorch
    Geometric forms the dense N×N matrix S before training, drops its small entries and normalises the rest. Here S acts
    exactly, as a matrix exponential, on graphs of any size, and nothing is dropped. Edge weights enter A.

    Args:
        channels: width d.
        time: T, the heat kernel's t.
        tol: relative error of the exponential.
    """

    def __init__(self, channels: int, time: float = 3.0, tol: float = 1e-6) -> None:
        super().__init__(channels, channels)
        check_nonnegative("time", time)
        self.time, self.tol = time, tol

    def forward(  # type: ignore[override]
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        adjacency = velocity_of(edge_index, z.size(0), edge_weight, "symmetric", self_loops="all")
        return diffuse(adjacency, F.linear(z, self.weight), self.time, self.tol) + self.bias


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
        edges = edges_of(edge_index, z.size(0), edge_weight, self_loops=True)
        state = self.lin(z).view(z.size(0), self.heads, self.out_channels)
        at_source, at_target = ((state * a).sum(-1).T for a in (self.att_src, self.att_dst))
        score = at_source[:, edges.source] + at_target[:, edges.target]
        attention = edges.softmax(F.leaky_relu(score, self.negative_slope))
        attention = F.dropout(attention, self.dropout, self.training)
        return edges.sum(attention, state.transpose(0, 1)).transpose(0, 1).flatten(1) + self.bias
