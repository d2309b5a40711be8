"""The diffusion models of the paper's synthetic study: ∂Z/∂t = (C − I)Z with four choices of the coupling C."""

from __future__ import annotations

import math

from torch import Tensor, nn

from advdiff.checks import check_choice, check_nonnegative
from advdiff.nn.baselines.edges import Edges, edges_of
from advdiff.nn.baselines.integrate import check_integration, integrate
from advdiff.nn.cache import velocity_of
from advdiff.operators import Attention, Generator
from advdiff.operators.graph import NORMALIZATIONS
from advdiff.operators.velocity import Velocity
from advdiff.propagation import exponential


def diffuse(velocity: Velocity, Z: Tensor, time: float, tol: float) -> Tensor:
    """e^{-(I − V)T}Z."""
    return exponential(Generator(None, velocity, beta=1.0), Z, time, tol=tol)


class LinearDiffusion(nn.Module):
    r"""Diff-Linear: local diffusion with the constant coupling :math:`\mathbf C = \tilde{\mathbf A}`, in closed form.

    .. math::
        \mathbf Z(T) = e^{-(\mathbf I - \mathbf C) T}\, \mathbf Z(0), \qquad
        \mathbf C = \mathbf D^{-1/2} \mathbf A \mathbf D^{-1/2}

    It has no parameters, and K layers without anything between are one of time K·T. Edge weights enter A. An isolated
    node has a zero row in C, so its state decays by e^{-T}.

    Args:
        channels: width d.
        time: T, of each layer.
        normalization: ``"symmetric"`` or ``"row"`` (C = D⁻¹A).
        tol: relative error of the exponential.
    """

    def __init__(self, channels: int, time: float = 1.0, normalization: str = "symmetric", tol: float = 1e-6) -> None:
        super().__init__()
        check_nonnegative("time", time)
        check_choice("kind of normalisation", normalization, NORMALIZATIONS)
        self.time, self.normalization, self.tol = time, normalization, tol

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        velocity = velocity_of(edge_index, z.size(0), edge_weight, self.normalization)
        return diffuse(velocity, z, self.time, self.tol)

    def extra_repr(self) -> str:
        return f"time={self.time:g}, normalization={self.normalization!r}"


class PiecewiseDiffusion(LinearDiffusion):
    r"""Diff-MultiLayer: a piece of local diffusion and a feature transformation (the paper's Appendix A).

    .. math::
        \mathbf Z(t_k; k) = e^{-(\mathbf I - \mathbf C)(t_k - t_{k-1})}\, \mathbf Z(t_{k-1}; k), \qquad
        \mathbf Z(t_k; k+1) = \phi_{int}^{(k)}(\mathbf Z(t_k; k))

    φ_int is a fully connected layer; the ReLU of the stack follows between the pieces. One Euler step of τ = 1 a piece
    would be a GCN. Edge weights enter A.

    Args:
        channels: width d.
        time: t_k − t_{k−1}, of each piece.
        normalization, tol: see :class:`LinearDiffusion`.
    """

    def __init__(self, channels: int, time: float = 0.5, normalization: str = "symmetric", tol: float = 1e-6) -> None:
        super().__init__(channels, time, normalization, tol)
        self.transform = nn.Linear(channels, channels)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        out: Tensor = self.transform(super().forward(z, edge_index, edge_weight, edge_attr, batch))
        return out


class AttentionHeads(nn.Module):
    """W_Q and W_K of H heads of full width, as in AdvDIFFormer; the coupling is the mean over the heads."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        if heads < 1:
            raise ValueError(f"heads is {heads}; it must be at least 1.")
        self.channels, self.heads = channels, heads
        self.query = nn.Linear(channels, heads * channels, bias=False)
        self.key = nn.Linear(channels, heads * channels, bias=False)

    def project(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys [N, H, d]."""
        shape = (z.size(0), self.heads, self.channels)
        return self.query(z).view(shape), self.key(z).view(shape)


class TimeDependentDiffusion(AttentionHeads):
    r"""Diff-Time: local diffusion whose coupling follows the state, attention on the edges.

    .. math::
        \frac{\partial \mathbf Z(t)}{\partial t} = (\mathbf C(\mathbf Z(t); \mathbf A) - \mathbf I)\, \mathbf Z(t),
        \qquad c_{uv} = \frac{a_{uv}\, e^{\mathbf q_u^\top \mathbf k_v / \sqrt d}}
        {\sum_{w} a_{uw}\, e^{\mathbf q_u^\top \mathbf k_w / \sqrt d}}, \quad
        \mathbf q_u = \mathbf W_Q \mathbf z_u(t),\ \mathbf k_v = \mathbf W_K \mathbf z_v(t)

    The paper leaves the attention open; this is the scaled dot product, on the edges only, with W_Q and W_K the same
    at all times. An Euler step with τ = 1 is a layer of dot-product graph attention.

    Args:
        channels: width d.
        heads: H; C is the mean of the heads' attentions.
        time: T, of each layer.
        steps: number of steps, τ = T/steps.
        method: ``"euler"``, ``"rk4"`` or ``"dopri5"``, see :func:`advdiff.nn.baselines.integrate.integrate`.
    """

    def __init__(self, channels: int, heads: int = 1, time: float = 1.0, steps: int = 4, method: str = "euler") -> None:
        super().__init__(channels, heads)
        check_integration(time, steps, method)
        self.time, self.steps, self.method = time, steps, method

    def coupling(self, z: Tensor, edges: Edges) -> Tensor:
        """C on the edges, [1, E]."""
        query, key = (projected.transpose(0, 1) for projected in self.project(z))
        return edges.softmax(edges.dot(query / math.sqrt(self.channels), key)).mean(0, keepdim=True)

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        edges = edges_of(edge_index, z.size(0), edge_weight)

        def field(state: Tensor) -> Tensor:
            return edges.sum(self.coupling(state, edges), state[None])[0] - state

        return integrate(field, z, self.time, self.steps, self.method)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, time={self.time:g}, steps={self.steps}, method={self.method!r}"


class NonLocalDiffusion(TimeDependentDiffusion):
    r"""Diff-NonLocal: diffusion over all pairs of nodes of a graph, with the paper's global attention.

    .. math::
        \frac{\partial \mathbf Z(t)}{\partial t} = (\mathbf C(\mathbf Z(t)) - \mathbf I)\, \mathbf Z(t), \qquad
        c_{uv} = \frac{1 + \hat{\mathbf q}_u^\top \hat{\mathbf k}_v}
        {\sum_w (1 + \hat{\mathbf q}_u^\top \hat{\mathbf k}_w)}

    AdvDIFFormer without its advection, with an attention that follows the state; O(N) by the low rank of C. It does not
    see the graph: edges, their weights and their features have no effect. Arguments as in
    :class:`TimeDependentDiffusion`.
    """

    def forward(
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        def field(state: Tensor) -> Tensor:
            return (Attention(*self.project(state), batch) @ state).mean(1) - state

        return integrate(field, z, self.time, self.steps, self.method)
