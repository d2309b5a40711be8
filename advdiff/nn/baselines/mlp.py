"""The MLP: a network that does not see the graph."""

from __future__ import annotations

from torch import Tensor, nn


class Pointwise(nn.Linear):
    r"""The layer of the graph-blind MLP, :math:`\mathbf Z \mathbf W + \mathbf b`: a GCN without its graph.

    Edges, their weights and their features have no effect.
    """

    def __init__(self, channels: int) -> None:
        super().__init__(channels, channels)

    def forward(self, z: Tensor, *graph: Tensor | None) -> Tensor:
        return super().forward(z)
