"""A-DGN: the anti-symmetric deep graph network."""

from __future__ import annotations

from torch import Tensor
from torch_geometric.nn import AntiSymmetricConv

from advdiff.nn.baselines.gcn import GCN


class ADGN(AntiSymmetricConv):
    r"""The anti-symmetric network of Gravina et al. (2023), PyTorch Geometric's ``AntiSymmetricConv``.

    .. math::
        \mathbf z_u^{(k+1)} = \mathbf z_u^{(k)} + \epsilon \tanh\big((\mathbf W - \mathbf W^\top - \gamma \mathbf I)
        \mathbf z_u^{(k)} + \Phi(\mathbf Z^{(k)}, \mathcal N_u) + \mathbf b\big), \qquad k = 0, \dots, L - 1

    with :class:`~advdiff.nn.baselines.gcn.GCN` (without bias) as Φ. The layers are Euler steps of one equation up to
    time εL, so all L of them share their weights, and nothing comes between them. Edge weights enter Φ.

    Args:
        channels: width d.
        num_layers: number L of layers.
        epsilon: length ε of a step.
        gamma: strength γ of the damping.
    """

    def __init__(self, channels: int, num_layers: int = 10, epsilon: float = 0.1, gamma: float = 0.1) -> None:
        if epsilon <= 0.0:
            raise ValueError(f"epsilon is {epsilon:g}; it must be positive.")
        phi = GCN(channels)
        phi.register_parameter("bias", None)
        super().__init__(channels, phi, num_iters=num_layers, epsilon=epsilon, gamma=gamma)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        out: Tensor = super().forward(z, edge_index, edge_weight)
        return out
