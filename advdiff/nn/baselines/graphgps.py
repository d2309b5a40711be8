"""GraphGPS: message passing and attention side by side, with positional encodings."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GPSConv

from advdiff.checks import check_choice
from advdiff.nn.baselines.gcn import GCN
from advdiff.nn.baselines.walks import return_probabilities
from advdiff.nn.model import check_heads
from advdiff.operators import Attention
from advdiff.operators.segments import Segments

LOCAL = ("auto", "gcn", "gine")
ATTENTION = ("performer", "softmax")


class GINE(nn.Module):
    r"""The graph isomorphism network with edge features (Hu et al., 2020), PyTorch Geometric's ``GINEConv``.

    .. math::
        \mathbf z'_u = \text{MLP}\Big(\mathbf z_u + \sum_v a_{uv}\, \text{ReLU}(\mathbf z_v + \mathbf W \mathbf e_{uv}
        + \mathbf b)\Big)

    Edge weights a_uv, which ``GINEConv`` does not know, multiply the messages.

    Args:
        channels: width d.
        edge_dim: number of edge features, or None for none.
    """

    def __init__(self, channels: int, edge_dim: int | None = None) -> None:
        super().__init__()
        self.nn = nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, channels))
        self.lin = nn.Linear(edge_dim, channels) if edge_dim else None

    def reset_parameters(self) -> None:
        for module in self.modules():
            if isinstance(module, nn.Linear):
                module.reset_parameters()

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        source, target = edge_index
        message = z[source]
        if self.lin is not None and edge_attr is not None:
            message = message + self.lin(edge_attr)
        message = message.relu()
        if edge_weight is not None:
            message = message * edge_weight.detach().to(z.dtype)[:, None]
        out: Tensor = self.nn(z.index_add(0, target, message))
        return out


class GPSLayer(GPSConv):
    r"""One layer, PyTorch Geometric's ``GPSConv`` with Performer or with softmax attention.

    .. math::
        \mathbf Z' = \text{BN}\big(\mathbf H + \text{FFN}(\mathbf H)\big), \quad
        \mathbf H = \text{BN}\big(\mathbf Z + \text{local}(\mathbf Z)\big)
        + \text{BN}\big(\mathbf Z + \text{attention}(\mathbf Z)\big)

    Performer: :math:`c_{uv} \propto \phi(\mathbf q_u)^\top \phi(\mathbf k_v)` with φ(x) = ReLU(Px) + 0.001 and P a
    random matrix of orthogonal rows, fixed at the start: PyTorch Geometric's choice (the approximation of softmax has
    exponentials instead). Of low rank like our C, it goes through the same kernel, in O(N) and within each graph; in
    ``GPSConv`` the padding of smaller graphs leaks into the row sums.

    Softmax: torch's multi-head attention over all pairs of nodes of a graph, quadratic in the largest one. The authors
    take it for molecules, where it costs a fraction of Performer's d log d random features.

    Args:
        channels: width d, a multiple of ``heads`` and for Performer at least twice as large.
        local: the layer of message passing.
        heads: number H of heads.
        dropout: rate, after both parts and in the feed-forward part (of width 2d).
        attention: ``"performer"`` or ``"softmax"``.
    """

    def __init__(
        self, channels: int, local: nn.Module, heads: int = 1, dropout: float = 0.0, attention: str = "performer"
    ) -> None:
        check_heads(channels, heads)
        if attention == "softmax":
            super().__init__(channels, local, heads, dropout)
            return
        if channels < 2 * heads:
            raise ValueError(f"hidden_channels={channels} must be at least twice heads={heads} for random features.")
        options = {"head_channels": channels // heads}
        super().__init__(channels, local, heads, dropout, attn_type="performer", attn_kwargs=options)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        near = F.dropout(self.conv(z, edge_index, edge_weight, edge_attr), self.dropout, self.training)
        attend = self.performer if self.attn_type == "performer" else self.softmax
        far = F.dropout(attend(z, Segments(z.size(0), batch, z.device)), self.dropout, self.training)
        z = self.norm1(near + z) + self.norm2(far + z)
        out: Tensor = self.norm3(z + self.mlp(z))
        return out

    def softmax(self, z: Tensor, segments: Segments) -> Tensor:
        mask = segments.mask
        if mask is not None:
            mask[:, 0] = True  # a graph without nodes: the softmax of nothing would be NaN
            mask = ~mask
        padded = segments.pad(z.unsqueeze(1)).squeeze(1)
        out, _ = self.attn(padded, padded, padded, key_padding_mask=mask, need_weights=False)
        return segments.unpad(out.unsqueeze(1)).squeeze(1)

    def performer(self, z: Tensor, segments: Segments) -> Tensor:
        shape = (z.size(0), self.heads, self.attn.head_channels)
        query, key, value = (linear(z).view(shape) for linear in (self.attn.q, self.attn.k, self.attn.v))
        projection = self.attn.fast_attn.projection_matrix.T
        left, right = (F.relu(x @ projection) + 0.001 for x in (query, key))
        row_sum = (left * segments.per_node(segments.sum(right))).sum(-1, keepdim=True)
        attention = Attention.from_factors(left / row_sum, right, segments, multi_head=True)
        out: Tensor = self.attn.attn_out((attention @ value).flatten(1))
        return out


class GraphGPS(nn.Module):
    r"""GraphGPS (Rampášek et al., 2022): encodings first, then :class:`GPSLayer`.

    .. math::
        \mathbf Z^{(0)} \leftarrow \mathbf Z^{(0)} + \text{BN}(\mathbf P) \mathbf W + \mathbf b, \qquad
        p_{uk} = (\mathbf D^{-1} \mathbf A)^k_{uu}, \quad k = 1, \dots, K

    The encodings are the random-walk ones of the paper, see
    :func:`~advdiff.nn.baselines.walks.return_probabilities` for their cost. The local part is :class:`GINE` where there
    are edge features and GCN elsewhere. Edge weights enter the local part and the walks.

    Args:
        channels: width d, a multiple of ``heads`` and for Performer at least twice as large.
        num_layers: number of layers.
        heads: number H of heads.
        dropout: rate, after both parts and in the feed-forward part of each layer.
        walk_length: K; 0 goes without encodings.
        local: ``"auto"``, ``"gcn"`` or ``"gine"``.
        attention: ``"performer"``, in O(N), or ``"softmax"``, for small graphs.
        edge_dim: number of edge features, or None.
    """

    def __init__(
        self,
        channels: int,
        num_layers: int = 2,
        heads: int = 1,
        dropout: float = 0.0,
        walk_length: int = 16,
        local: str = "auto",
        attention: str = "performer",
        edge_dim: int | None = None,
    ) -> None:
        super().__init__()
        check_choice("local", local, LOCAL)
        check_choice("attention", attention, ATTENTION)
        if walk_length < 0:
            raise ValueError(f"walk_length is {walk_length}; it must be at least 0.")
        self.walk_length = walk_length
        self.position = (
            nn.Sequential(nn.BatchNorm1d(walk_length), nn.Linear(walk_length, channels)) if walk_length else None
        )
        gine = local == "gine" or (local == "auto" and edge_dim is not None)
        self.layers = nn.ModuleList(
            GPSLayer(channels, GINE(channels, edge_dim) if gine else GCN(channels), heads, dropout, attention)
            for _ in range(num_layers)
        )

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        if self.position is not None:
            walks = return_probabilities(edge_index, z.size(0), edge_weight, batch, self.walk_length, z.dtype)
            z = z + self.position(walks)
        for layer in self.layers:
            z = layer(z, edge_index, edge_weight, edge_attr, batch)
        return z
