"""The Advective Diffusion Transformer: encoder, propagation, decoder."""

from __future__ import annotations

from collections.abc import Sequence

from advdiff.nn.conv import AdvDiffConv
from advdiff.nn.model import GraphModel


class AdvDIFFormer(GraphModel):
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
        in_channels: number D of node features, or -1: as many as the first input has.
        hidden_channels: width d.
        out_channels: number of outputs.
        solver: ``"series"`` (AdvDIFFormer-s), ``"inverse"`` (-i) or ``"exponential"`` (the closed form itself).
        heads, beta, theta, order, time, normalization, edge_dim, diffusion, tol, learn: see :class:`AdvDiffConv`.
        num_layers: propagation layers, with ReLU and dropout between them.
        dropout: rate, in the MLPs and between layers.
        batch_norm: normalise after each layer.
        residual: add a layer's input to its output.
        task: ``"node"``, ``"edge"`` or ``"graph"``.

    Shapes:
        x [N, in_channels], edge_index [2, E], edge_weight [E], edge_attr [E, edge_dim], batch [N],
        edge_label_index [2, M] → [N, out], [M, out] or [G, out]; or ``model(data)``, see :class:`GraphModel`

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
        *,
        diffusion: bool = True,
        tol: float = 1e-6,
        learn: Sequence[str] = (),
    ) -> None:
        if num_layers < 1:
            raise ValueError(f"num_layers is {num_layers}; num_layers must be at least 1.")
        super().__init__(
            in_channels,
            hidden_channels,
            out_channels,
            (
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
                    tol=tol,
                    diffusion=diffusion,
                    learn=learn,
                )
                for _ in range(num_layers)
            ),
            dropout=dropout,
            batch_norm=batch_norm,
            residual=residual,
            task=task,
            edge_dim=edge_dim,
            edge_features="layers",
        )
