"""DIFFormer: steps of global and local diffusion."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from advdiff.checks import check_choice
from advdiff.nn.baselines.diffusion import AttentionHeads
from advdiff.nn.cache import velocity_of
from advdiff.operators import Attention
from advdiff.operators.graph import NORMALIZATIONS


class Difformer(AttentionHeads):
    r"""The layer of DIFFormer (Wu et al., 2023) with simple diffusivity: an Euler step of global and local diffusion.

    .. math::
        \mathbf Z^{(k+1)} = \text{LN}\Big((1 - \tau) \mathbf Z^{(k)}
        + \frac{\tau}{2H} \sum_{h=1}^H (\mathbf C_h^{(k)} + \tilde{\mathbf A})\, \mathbf Z^{(k)} \mathbf W_{V,h}\Big),
        \qquad c_{uv} = \frac{1 + \hat{\mathbf q}_u^\top \hat{\mathbf k}_v}
        {\sum_w (1 + \hat{\mathbf q}_u^\top \hat{\mathbf k}_w)}

    The attention is AdvDIFFormer's, in O(N). Edge weights enter Ã. Without the graph the step is
    (1 − τ)Z + (τ/H) Σ_h C_h Z W_{V,h}. LN is the layer norm of the authors' code, which has no activation
    between its layers either; dropout follows it.

    Args:
        channels: width d, of each head too.
        heads: number H of heads.
        tau: step τ in (0, 1].
        use_graph: add Ã (False: edges, their weights and their features have no effect).
        normalization: of Ã, ``"symmetric"`` or ``"row"``.
        layer_norm: normalise after each step.
        dropout: rate, after each step.
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        tau: float = 0.5,
        use_graph: bool = True,
        normalization: str = "symmetric",
        layer_norm: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__(channels, heads)
        check_choice("kind of normalisation", normalization, NORMALIZATIONS)
        if not 0.0 < tau <= 1.0:
            raise ValueError(f"tau is {tau:g}; it must lie in (0, 1].")
        self.tau, self.use_graph, self.normalization, self.dropout = tau, use_graph, normalization, dropout
        self.value = nn.Linear(channels, heads * channels, bias=False)
        self.norm = nn.LayerNorm(channels) if layer_norm else nn.Identity()

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
        return F.dropout(self.norm(torch.lerp(z, spread, self.tau)), self.dropout, self.training)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, tau={self.tau:g}, use_graph={self.use_graph}"
