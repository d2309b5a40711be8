"""GRAND: linear diffusion with attention, as a differential equation."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from advdiff.checks import check_choice, check_nonnegative, check_tolerance, has_values
from advdiff.nn.baselines.edges import Edges, edges_of
from advdiff.nn.baselines.integrate import METHODS, check_integration, integrate
from advdiff.nn.model import check_heads


class EdgeDiffusion(nn.Module):
    r"""What GRAND and CDE share: attention on the edges, and the equation around it.

    .. math::
        \frac{\partial \mathbf Z(t)}{\partial t} = \sigma(\alpha)\, \mathbf F(\mathbf Z(t)) + \beta \mathbf Z(0)

    with learned numbers α and β, 0 at the start: the rate and the source term of the authors' code.

    Args:
        channels: width d, a multiple of ``heads``, which share it.
        heads: number H of heads.
        integration_time: T, of each layer.
        steps: number of steps of ``"euler"`` and ``"rk4"``.
        method: see :func:`advdiff.nn.baselines.integrate.integrate`.
        source: learn β; without it, it is 0.
    """

    def __init__(
        self, channels: int, heads: int, integration_time: float, steps: int, method: str, source: bool
    ) -> None:
        super().__init__()
        check_heads(channels, heads)
        check_nonnegative("integration_time", integration_time)
        check_integration(integration_time, steps, method)
        self.heads, self.integration_time, self.steps, self.method = heads, integration_time, steps, method
        self.query = nn.Linear(channels, channels)
        self.key = nn.Linear(channels, channels, bias=False)  # the softmax would not see one
        self.alpha = nn.Parameter(torch.zeros(()))
        self.beta = nn.Parameter(torch.zeros(())) if source else None

    def reset_parameters(self) -> None:
        for number in (self.alpha, self.beta):
            if number is not None:
                nn.init.zeros_(number)

    def coupling(self, z: Tensor, edges: Edges) -> Tensor:
        """C on the edges, [1, E]: the mean of the heads' attentions."""
        shape = (self.heads, z.size(1) // self.heads)
        query, key = (linear(z).unflatten(1, shape).transpose(0, 1) for linear in (self.query, self.key))
        return edges.softmax(edges.dot(query / math.sqrt(query.size(2)), key)).mean(0, keepdim=True)

    def solve(self, z: Tensor, flow: Callable[[Tensor], Tensor]) -> Tensor:
        """Z(T) for F = ``flow`` by steps in time."""
        rate, source = self.alpha.sigmoid(), 0.0 if self.beta is None else self.beta * z
        return integrate(lambda state: rate * flow(state) + source, z, self.integration_time, self.steps, self.method)

    def extra_repr(self) -> str:
        steps = "" if self.method in ("series", "dopri5") else f", steps={self.steps}"
        return f"heads={self.heads}, integration_time={self.integration_time:g}, method={self.method!r}{steps}"


class Grand(EdgeDiffusion):
    r"""Graph neural diffusion of Chamberlain et al. (2021) in its linear version: attention fixed at time 0.

    .. math::
        \frac{\partial \mathbf Z(t)}{\partial t} = \sigma(\alpha)\, (\mathbf C - \mathbf I)\, \mathbf Z(t)
        + \beta \mathbf Z(0), \qquad c_{uv} = \frac1H \sum_{h=1}^H
        \underset{v}{\text{softmax}}\,\frac{(\mathbf W_{K,h} \mathbf z_v)^\top \mathbf W_{Q,h} \mathbf z_u}{\sqrt{d/H}}

    with C = C(Z(0)), over the edges and one self-loop per node, so that the rows of C sum to 1. Edge weights multiply
    the softmax. Since C is constant, the solution is a series in its powers with a = σ(α) and X a Poisson
    variable of mean aT:

    .. math::
        \mathbf Z(T) = \sum_{k=0}^\infty \Big(\mathbb P(X = k) + \frac{\beta}{a}\, \mathbb P(X > k)\Big)\,
        \mathbf C^k \mathbf Z(0)

    No power of C enlarges the largest entry, so what is left out is bounded by what remains of the weights:
    ``"series"``, the default, stops at ``tol``. At T = 4 these are 9 products instead of the 16 of four steps of
    ``"rk4"``, and they are more exact.

    Args:
        channels, heads, integration_time, steps, source: see :class:`EdgeDiffusion`.
        method: ``"series"``, ``"euler"``, ``"rk4"`` or ``"dopri5"``.
        tol: of the series, relative to the largest entry of Z(0).
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        integration_time: float = 4.0,
        steps: int = 4,
        method: str = "series",
        source: bool = True,
        tol: float = 1e-4,
    ) -> None:
        check_choice("method", method, ("series", *METHODS))
        check_tolerance(tol)
        super().__init__(channels, heads, integration_time, steps, "euler" if method == "series" else method, source)
        self.method, self.tol = method, tol

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
        if self.method != "series":
            return self.solve(z, lambda state: edges.sum(coupling, state[None])[0] - state)
        first, *rest = self.weights().unbind()
        out, state = first * z, z
        for weight in rest:
            state = edges.sum(coupling, state[None])[0]
            out = out + weight * state
        return out

    def weights(self) -> Tensor:
        """The weights of C⁰, C¹, …, as many as ``tol`` asks for."""
        mean = self.alpha.sigmoid() * self.integration_time
        known = float(mean.detach()) if has_values(mean) else self.integration_time
        k = torch.arange(_terms(known, self.tol), dtype=mean.dtype, device=mean.device)
        if known == 0.0:
            return torch.ones_like(k)
        probability = (torch.xlogy(k, mean) - mean - torch.lgamma(k + 1.0)).exp()
        if self.beta is None:
            return probability
        later = (1.0 - probability.cumsum(0)).clamp(min=0.0)
        return probability + self.beta / self.alpha.sigmoid() * later


def _terms(mean: float, tol: float) -> int:
    """The smallest number K of terms with Σ_{k ≥ K − 1} P(X > k) ≤ tol for a Poisson variable X."""
    if mean == 0.0:
        return 1
    k = torch.arange(int(mean + 12.0 * math.sqrt(mean)) + 40, dtype=torch.float64)
    probability = (k * math.log(mean) - mean - torch.lgamma(k + 1.0)).exp()
    tail = probability.flip(0).cumsum(0).flip(0) - probability  # P(X > k)
    left = tail.flip(0).cumsum(0).flip(0)
    return 1 + int((left > tol).sum())
