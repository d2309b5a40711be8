"""Baselines that discretise a differential equation on the graph: GRAND, A-DGN and CDE."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch_geometric.nn import AntiSymmetricConv

from advdiff.nn.convolutions import GCN
from advdiff.nn.diffusion import TimeDependentDiffusion
from advdiff.nn.edges import edges_of
from advdiff.nn.integrate import integrate
from advdiff.nn.velocity_cache import velocity_of

#: Edges that the convection treats at once, so that its E × d intermediates stay in the cache.
CHUNK = 8192


class Grand(TimeDependentDiffusion):
    r"""Graph neural diffusion of Chamberlain et al. (2021) in its linear version: attention fixed at time 0.

    .. math::
        \frac{\partial \mathbf Z(t)}{\partial t} = (\mathbf C(\mathbf Z(0)) - \mathbf I)\, \mathbf Z(t), \qquad
        c_{uv} = \frac1H \sum_{h=1}^H
        \underset{v}{\text{softmax}}\,\frac{(\mathbf W_{K,h} \mathbf z_v)^\top \mathbf W_{Q,h} \mathbf z_u}{\sqrt d}

    over the edges and one self-loop per node, so that the rows of C sum to 1. Edge weights multiply the softmax.
    The learnable time scale and the source term of the authors' code are not part of the equation and left out.

    The arguments are those of :class:`~advdiff.nn.diffusion.TimeDependentDiffusion`.
    """

    def __init__(self, channels: int, heads: int = 1, time: float = 1.0, steps: int = 4, method: str = "rk4") -> None:
        super().__init__(channels, heads, time, steps, method)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        edges = edges_of(edge_index, z.size(0), edge_weight, self_loops=True)
        coupling = self.coupling(z, edges)
        return integrate(
            lambda state: edges.sum(coupling, state[None])[0] - state, z, self.time, self.steps, self.method
        )


class ADGN(AntiSymmetricConv):
    r"""The anti-symmetric network of Gravina et al. (2023), PyTorch Geometric's ``AntiSymmetricConv``.

    .. math::
        \mathbf z_u^{(k+1)} = \mathbf z_u^{(k)} + \epsilon \tanh\big((\mathbf W - \mathbf W^\top - \gamma \mathbf I)
        \mathbf z_u^{(k)} + \Phi(\mathbf Z^{(k)}, \mathcal N_u) + \mathbf b\big)

    with :class:`~advdiff.nn.convolutions.GCN` (without bias) as Φ and the same weights at all steps of a layer. Edge
    weights enter Φ.

    Args:
        channels: width d.
        steps: number of steps.
        epsilon: their length ε.
        gamma: strength γ of the damping.
    """

    def __init__(self, channels: int, steps: int = 4, epsilon: float = 0.1, gamma: float = 0.1) -> None:
        if steps < 1:
            raise ValueError(f"steps is {steps}; it must be at least 1.")
        phi = GCN(channels)
        phi.register_parameter("bias", None)
        super().__init__(channels, phi, num_iters=steps, epsilon=epsilon, gamma=gamma)

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


class CDE(TimeDependentDiffusion):
    r"""The convection–diffusion equation of Zhao et al. (2023), made for heterophilic graphs.

    .. math::
        \frac{\partial \mathbf Z(t)}{\partial t} = (\mathbf C(\mathbf Z(t)) - \mathbf I)\, \mathbf Z(t)
        + \text{div}(\mathbf V(t) \circ \mathbf Z(t)), \qquad
        \mathbf v_{uv}(t) = \tanh\big(\mathbf M (\mathbf z_v(t) - \mathbf z_u(t))\big), \quad
        \text{div}(\mathbf V \circ \mathbf Z)_u = \sum_v \tilde a_{uv}\, \mathbf v_{uv} \odot \mathbf z_v

    The diffusion is that of :class:`~advdiff.nn.diffusion.TimeDependentDiffusion` with one self-loop per node. The
    published divergence is the plain sum over neighbours (``convection="sum"``: ã_uv = a_uv), which grows with the
    degree; the default divides by the degree, ã = D⁻¹A. Edge weights enter both terms.

    Args:
        channels, heads, time, steps, method: see :class:`~advdiff.nn.diffusion.TimeDependentDiffusion`.
        convection: ``"mean"`` or ``"sum"``.
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        time: float = 1.0,
        steps: int = 4,
        method: str = "euler",
        convection: str = "mean",
    ) -> None:
        super().__init__(channels, heads, time, steps, method)
        if convection not in ("mean", "sum"):
            raise ValueError(f"unknown convection {convection!r}; choose one of: mean, sum.")
        self.convection = convection
        self.velocity = nn.Linear(channels, channels, bias=False)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        edges = edges_of(edge_index, z.size(0), edge_weight, self_loops=True)
        if self.convection == "mean":
            weight = velocity_of(edge_index, z.size(0), edge_weight, "row").exact.to(z.dtype)
        else:
            weight = z.new_ones(edge_index.size(1)) if edge_weight is None else edge_weight.detach().to(z.dtype)

        def field(state: Tensor) -> Tensor:
            diffused = edges.sum(self.coupling(state, edges), state[None])[0]
            convected: Tensor = _Convection.apply(self.velocity(state), state, edge_index, weight)
            return diffused - state + convected

        return integrate(field, z, self.time, self.steps, self.method)


class _Convection(torch.autograd.Function):
    """Σ_v a_uv tanh(y_v − y_u) ⊙ z_v; nothing of size E × d is kept, the backward pass computes it again."""

    @staticmethod
    def forward(ctx, Y: Tensor, Z: Tensor, edge_index: Tensor, weight: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(Y, Z, edge_index, weight)
        out = torch.zeros_like(Z)
        for source, target, a in _chunks(edge_index, weight):
            speed = _tanh_(Y.index_select(0, source).sub_(Y.index_select(0, target)))
            out.index_add_(0, target, speed.mul_(Z.index_select(0, source)).mul_(a))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        Y, Z, edge_index, weight = ctx.saved_tensors
        grad_Y, grad_Z = torch.zeros_like(Y), torch.zeros_like(Z)
        for source, target, a in _chunks(edge_index, weight):
            speed = _tanh_(Y.index_select(0, source).sub_(Y.index_select(0, target)))
            arriving = grad.index_select(0, target).mul_(a)
            grad_Z.index_add_(0, source, arriving * speed)
            slope = arriving.mul_(Z.index_select(0, source)).mul_(speed.square_().neg_().add_(1.0))
            grad_Y.index_add_(0, source, slope)
            grad_Y.index_add_(0, target, slope, alpha=-1.0)
        return grad_Y, grad_Z, None, None


def _tanh_(X: Tensor) -> Tensor:
    """tanh x = 2σ(2x) − 1 in place: torch's sigmoid is several times faster than its tanh on a CPU."""
    return X.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


def _chunks(edge_index: Tensor, weight: Tensor) -> zip[tuple[Tensor, Tensor, Tensor]]:
    return zip(edge_index[0].split(CHUNK), edge_index[1].split(CHUNK), weight[:, None].split(CHUNK), strict=True)
