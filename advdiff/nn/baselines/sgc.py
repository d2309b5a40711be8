"""SGC: K steps of propagation, then one linear map."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import SGConv

from advdiff.nn.cache import velocity_of
from advdiff.nn.model import GraphModel


class SGC(SGConv):
    r"""The simplified graph convolution of Wu et al. (2019), PyTorch Geometric's ``SGConv``:
    :math:`\mathbf Z' = \hat{\mathbf A}^K \mathbf Z \mathbf W + \mathbf b`.

    Edge weights enter A; see :class:`~advdiff.nn.baselines.gcn.GCN` for Â.

    Args:
        channels: width d.
        hops: power K of Â.
    """

    def __init__(self, channels: int, hops: int = 2) -> None:
        if hops < 1:
            raise ValueError(f"hops is {hops}; it must be at least 1.")
        super().__init__(channels, channels, K=hops)

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


def linear_ends(model: GraphModel, dropout: float) -> None:
    """Put linear maps where the encoder and the decoder were, so that an SGC is one linear map of Â^K X.

    Three linear maps in a row are one of rank at most the width; dropout comes before the last.
    """
    encoder, decoder = model.encoder, model.decoder
    into, out_of, out = encoder[0], decoder[0], decoder[-1]
    assert isinstance(into, nn.Linear) and isinstance(out_of, nn.Linear) and isinstance(out, nn.Linear)
    model.encoder = nn.Sequential(nn.Linear(into.in_features, into.out_features))
    model.decoder = nn.Sequential(nn.Dropout(dropout), nn.Linear(out_of.in_features, out.out_features))
