"""CDE: convection and diffusion, for heterophilic graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from advdiff.checks import check_choice
from advdiff.nn.baselines.edges import edges_of
from advdiff.nn.baselines.grand import EdgeDiffusion
from advdiff.nn.cache import velocity_of

#: Edges that the convection treats at once, so that its E × d intermediates stay in the cache.
CHUNK = 8192


class CDE(EdgeDiffusion):
    r"""The convection–diffusion equation of Zhao et al. (2023).

    .. math::
        \frac{\partial \mathbf Z(t)}{\partial t} = \sigma(\alpha) \big((\mathbf C(\mathbf Z(t)) - \mathbf I)\,
        \mathbf Z(t) + \lambda\, \text{div}(\mathbf V(t) \circ \mathbf Z(t))\big) + \beta \mathbf Z(0), \qquad
        \mathbf v_{uv} = s\big(\mathbf M (\mathbf z_v - \mathbf z_u)\big), \quad
        \text{div}(\mathbf V \circ \mathbf Z)_u = \sum_v a_{uv}\, \mathbf v_{uv} \odot \mathbf z_v

    The diffusion is that of :class:`~advdiff.nn.baselines.grand.Grand` with an attention that follows the state. The
    divergence is the published one, the plain sum over neighbours; as it grows with the degree, the authors' code
    learns its strength λ from 0 on, and so do we. ``convection="mean"`` divides it by the degree (D⁻¹A instead of A).
    The paper leaves the activation s open; the authors' code has ReLU for the equation and tanh, our default since it
    keeps the velocity bounded, for the version in discrete time. Edge weights enter both terms.

    Args:
        channels, heads, integration_time, steps, method, source: see
            :class:`~advdiff.nn.baselines.grand.EdgeDiffusion`.
        convection: ``"sum"`` or ``"mean"``.
        velocity: s, ``"tanh"`` or ``"relu"``.
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        integration_time: float = 2.0,
        steps: int = 4,
        method: str = "euler",
        source: bool = True,
        convection: str = "sum",
        velocity: str = "tanh",
    ) -> None:
        super().__init__(channels, heads, integration_time, steps, method, source)
        check_choice("convection", convection, ("sum", "mean"))
        check_choice("velocity", velocity, ("tanh", "relu"))
        self.convection, self.velocity = convection, velocity
        self.speed = nn.Linear(channels, channels, bias=False)
        self.strength = nn.Parameter(torch.zeros(()))

    def reset_parameters(self) -> None:
        super().reset_parameters()
        nn.init.zeros_(self.strength)

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
            weight = velocity_of(edge_index, z.size(0), edge_weight, "row").entries.to(z.dtype)
        else:
            weight = z.new_ones(edge_index.size(1)) if edge_weight is None else edge_weight.detach().to(z.dtype)

        def flow(state: Tensor) -> Tensor:
            diffused = edges.sum(self.coupling(state, edges), state[None])[0]
            convected: Tensor = _Convection.apply(self.speed(state), state, edge_index, weight, self.velocity)
            return diffused - state + self.strength * convected

        return self.solve(z, flow)


class _Convection(torch.autograd.Function):
    """Σ_v a_uv s(y_v − y_u) ⊙ z_v; nothing of size E × d is kept, the backward pass computes it again."""

    @staticmethod
    def forward(ctx, Y: Tensor, Z: Tensor, edge_index: Tensor, weight: Tensor, kind: str) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.save_for_backward(Y, Z, edge_index, weight)
        ctx.kind = kind
        out = torch.zeros_like(Z)
        for source, target, a in _chunks(edge_index, weight):
            speed = _activate_(Y.index_select(0, source).sub_(Y.index_select(0, target)), kind)
            out.index_add_(0, target, speed.mul_(Z.index_select(0, source)).mul_(a))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        Y, Z, edge_index, weight = ctx.saved_tensors
        grad_Y, grad_Z = torch.zeros_like(Y), torch.zeros_like(Z)
        for source, target, a in _chunks(edge_index, weight):
            speed = _activate_(Y.index_select(0, source).sub_(Y.index_select(0, target)), ctx.kind)
            arriving = grad.index_select(0, target).mul_(a)
            grad_Z.index_add_(0, source, arriving * speed)
            slope = arriving.mul_(Z.index_select(0, source)).mul_(_slope_(speed, ctx.kind))
            grad_Y.index_add_(0, source, slope)
            grad_Y.index_add_(0, target, slope, alpha=-1.0)
        return grad_Y, grad_Z, None, None, None


def _activate_(X: Tensor, kind: str) -> Tensor:
    """s(x) in place; tanh x = 2σ(2x) − 1, as torch's sigmoid is several times faster than its tanh on a CPU."""
    return X.relu_() if kind == "relu" else X.mul_(2.0).sigmoid_().mul_(2.0).sub_(1.0)


def _slope_(speed: Tensor, kind: str) -> Tensor:
    """s'(x) from s(x), in place."""
    return speed.sign_() if kind == "relu" else speed.square_().neg_().add_(1.0)


def _chunks(edge_index: Tensor, weight: Tensor) -> zip[tuple[Tensor, Tensor, Tensor]]:
    return zip(edge_index[0].split(CHUNK), edge_index[1].split(CHUNK), weight[:, None].split(CHUNK), strict=True)
