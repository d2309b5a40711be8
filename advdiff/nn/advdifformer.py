"""The Advective Diffusion Transformer: encoder, propagation, decoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from advdiff.checks import check_choice, check_edge_index, check_finite, check_floating
from advdiff.nn.conv import AdvDiffConv

TASKS = ("node", "edge", "graph")


def _mlp(in_channels: int, hidden_channels: int, out_channels: int, dropout: float) -> nn.Sequential:
    """The paper's "shallow MLP": one hidden layer with ReLU."""
    return nn.Sequential(
        nn.Linear(in_channels, hidden_channels),
        nn.ReLU(),
        nn.Dropout(dropout),
        nn.Linear(hidden_channels, out_channels),
    )


class AdvDIFFormer(nn.Module):
    r"""AdvDIFFormer as the paper's Appendix D writes it.

    .. math::
        \mathbf Z^{(0)} = \phi_{enc}(\mathbf X), \qquad
        \mathbf Z = \text{propagation}(\mathbf Z^{(0)}, \mathbf A), \qquad
        \hat{\mathbf Y} = \phi_{dec}(\mathbf Z)

    with MLPs φ_enc and φ_dec and :class:`AdvDiffConv` between. The decoder reads z_u for nodes, [z_u, z_v] for the
    edges of ``edge_label_index``, and the sum of z_u over each graph for graphs; it returns logits or values.

    ``num_layers`` > 1, ``batch_norm``, ``residual`` and ``normalization="row"`` are extras of the authors' released
    code which the paper does not mention; they are off by default.

    Args:
        in_channels: number D of node features.
        hidden_channels: width d.
        out_channels: number of outputs.
        solver: ``"series"`` (AdvDIFFormer-s), ``"inverse"`` (-i) or ``"exponential"`` (the closed form itself).
        heads, beta, theta, order, time, normalization, edge_dim: see :class:`AdvDiffConv`.
        num_layers: propagation layers, with ReLU and dropout between them.
        dropout: rate, in the MLPs and between layers.
        batch_norm: normalise after each layer.
        residual: add a layer's input to its output.
        task: ``"node"``, ``"edge"`` or ``"graph"``.

    Shapes:
        x [N, in_channels], edge_index [2, E], edge_weight [E], edge_attr [E, edge_dim], batch [N],
        edge_label_index [2, M] → [N, out], [M, out] or [G, out]

    Example:
        >>> import torch
        >>> from advdiff.nn import AdvDIFFormer
        >>> model = AdvDIFFormer(8, 16, 3, solver="inverse", heads=2)
        >>> model(torch.randn(4, 8), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([4, 3])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        solver: str = "series",
        heads: int = 1,
        beta: float = 0.5,
        theta: float = 1.0,
        order: int = 2,
        time: float = 1.0,
        num_layers: int = 1,
        dropout: float = 0.0,
        batch_norm: bool = False,
        residual: bool = False,
        normalization: str = "symmetric",
        edge_dim: int | None = None,
        task: str = "node",
    ) -> None:
        super().__init__()
        check_choice("task", task, TASKS)
        if min(in_channels, hidden_channels, out_channels, num_layers) < 1:
            raise ValueError("in_channels, hidden_channels, out_channels and num_layers must be at least 1.")
        self.in_channels, self.task, self.residual = in_channels, task, residual
        self.encoder = _mlp(in_channels, hidden_channels, hidden_channels, dropout)
        self.layers = nn.ModuleList(
            AdvDiffConv(
                hidden_channels,
                hidden_channels,
                solver=solver,
                heads=heads,
                beta=beta,
                theta=theta,
                order=order,
                time=time,
                normalization=normalization,
                edge_dim=edge_dim,
            )
            for _ in range(num_layers)
        )
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(hidden_channels) if batch_norm else nn.Identity() for _ in range(num_layers)
        )
        self.activation = nn.Sequential(nn.ReLU(), nn.Dropout(dropout))
        self.decoder = _mlp(hidden_channels * (2 if task == "edge" else 1), hidden_channels, out_channels, dropout)

    def reset_parameters(self) -> None:
        for module in self.modules():
            if module is not self and hasattr(module, "reset_parameters"):
                module.reset_parameters()  # type: ignore[operator]

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        edge_label_index: Tensor | None = None,
    ) -> Tensor:
        self._check(x, edge_label_index)
        z = self.encoder(x)
        for number, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            given = self.activation(z) if number else z
            z = norm(layer(given, edge_index, edge_weight, edge_attr, batch))
            if self.residual:
                z = z + given
        if self.task == "edge":
            assert edge_label_index is not None
            z = torch.cat([z[edge_label_index[0]], z[edge_label_index[1]]], dim=-1)
        elif self.task == "graph":
            z = _sum_pool(z, batch)
        out: Tensor = self.decoder(z)
        return out

    def _check(self, x: Tensor, edge_label_index: Tensor | None) -> None:
        check_floating("x", x)
        if x.dim() != 2 or x.size(1) != self.in_channels:
            raise ValueError(f"x has shape {tuple(x.shape)}; the model expects [N, {self.in_channels}].")
        check_finite("x", x)
        if self.task == "edge":
            if edge_label_index is None:
                raise ValueError("task='edge' needs edge_label_index [2, M]: the node pairs to predict.")
            check_edge_index(edge_label_index, x.size(0), "edge_label_index")


def _sum_pool(z: Tensor, batch: Tensor | None) -> Tensor:
    """Σ_u z_u per graph; one graph without a batch vector (or on ``meta``, where graphs cannot be counted)."""
    if batch is None or batch.device.type == "meta" or batch.numel() == 0:
        return z.sum(0, keepdim=True)
    return z.new_zeros(int(batch.max()) + 1, z.size(1)).index_add_(0, batch, z)
