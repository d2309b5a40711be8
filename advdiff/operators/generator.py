"""The operators of the advective diffusion equation: C, V and the generator L = I − C − βV."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from advdiff.checks import check_floating, check_nonnegative, expects, values_checked
from advdiff.operators.attention import Attention
from advdiff.operators.precision import widened
from advdiff.operators.propagator import Propagator
from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity

__all__ = ["Attention", "Generator", "Propagator", "Velocity"]


class Generator:
    r"""The generator of advective diffusion on a graph.

    .. math::
        \frac{\partial \mathbf Z(t)}{\partial t} = -\mathbf L\, \mathbf Z(t), \qquad
        \mathbf L = \mathbf I - \mathbf C - \beta \mathbf V

    ``L @ Z`` and ``L.T @ Z`` cost O(N + E) and are differentiable in query, key, β, edge weights and Z;
    ``L.to_dense()`` is the dense oracle, [N, N] or [H, N, N]. ``L.propagator`` is P = C + βV.

    Special cases: ``velocity=None`` is non-local diffusion, I − C; ``coupling=None, beta=1`` is local
    diffusion, I − V.

    Args:
        coupling: the attention C, or None.
        velocity: V from :func:`advdiff.normalize_adjacency`, or None.
        beta: weight β ≥ 0 of the advection: a number, a tensor with one element, or a tensor [H] with one for each
            head.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> L = advdiff.Generator(advdiff.Attention(torch.ones(2, 1), torch.ones(2, 1)), V, beta=0.5)
        >>> L @ torch.ones(2)
        tensor([-0.5000, -0.5000])
    """

    @expects
    def __init__(
        self, coupling: Attention | None = None, velocity: Velocity | None = None, beta: float | Tensor = 0.5
    ) -> None:
        if coupling is None and velocity is None:
            raise ValueError("the generator needs a coupling, a velocity or both; both are None.")
        if isinstance(beta, Tensor):
            heads = None if coupling is None else coupling.heads
            if beta.numel() != 1 and (beta.dim() != 1 or beta.numel() != (heads or beta.numel())):
                each = "one for each head" if heads is None else f"one for each of the {heads} heads"
                raise ValueError(f"beta has shape {tuple(beta.shape)}; it must be a single number or {each}.")
        check_nonnegative("beta", beta)
        self.coupling, self.velocity, self.beta = coupling, velocity, beta
        if coupling is not None:
            if velocity is not None and velocity.num_nodes != coupling.num_nodes:
                raise ValueError(
                    f"the velocity has {velocity.num_nodes} nodes and the coupling {coupling.num_nodes}; "
                    "build both from the same graph."
                )
            if velocity is not None and velocity.device != coupling.left.device:
                raise ValueError(
                    f"the velocity lies on {velocity.device} and the coupling on {coupling.left.device}; "
                    "move both to one device."
                )
            here = coupling.segments.reductions
            there = here if velocity is None else velocity.reductions
            if not (here is there or (here.is_whole and there.is_whole)):
                raise ValueError(
                    "the velocity and the coupling hold different parts of the graph; build both from the same one."
                )
            if velocity is not None:
                coupling.segments.check_edges(velocity.edge_index)
            left, right, segments = coupling.left, coupling.right, coupling.segments
            self.propagator = Propagator(
                left, right, segments, velocity, beta, coupling.multi_head, coupling.sums_to_one
            )
        elif velocity is not None:
            segments = Segments(velocity.num_nodes, None, velocity.device, reductions=velocity.reductions)
            self.propagator = Propagator(
                None, None, segments, velocity, beta, isinstance(beta, Tensor) and beta.numel() > 1
            )

    @property
    def num_nodes(self) -> int:
        """Number N of nodes."""
        return self.propagator.num_nodes

    @property
    def T(self) -> Generator:
        """The transpose Lᵀ, the generator of the backward flow."""
        coupling = None if self.coupling is None else self.coupling.T
        velocity = None if self.velocity is None else self.velocity.T
        with values_checked():  # they were when L was made
            return Generator(coupling, velocity, self.beta)

    def to(self, *args: Any, **kwargs: Any) -> Generator:
        """L on another device or in another dtype, called like ``Tensor.to``."""
        coupling = None if self.coupling is None else self.coupling.to(*args, **kwargs)
        velocity = None if self.velocity is None else self.velocity.to(*args, **kwargs)
        beta = self.beta.to(*args, **kwargs) if isinstance(self.beta, Tensor) else self.beta
        with values_checked():
            return Generator(coupling, velocity, beta)

    def __matmul__(self, Z: Tensor) -> Tensor:
        check_floating("Z", Z)
        wide = widened(Z)
        product = self.propagator @ wide
        return ((wide if Z.shape == product.shape else wide.unsqueeze(1)) - product).to(Z.dtype)

    def to_dense(self) -> Tensor:
        """L as a dense matrix, [N, N] or [H, N, N] (an oracle for small N)."""
        P = self.propagator.to_dense()
        return torch.eye(self.num_nodes, dtype=P.dtype, device=P.device) - P

    def __repr__(self) -> str:
        return f"Generator(coupling={self.coupling}, velocity={self.velocity}, beta={self.propagator.beta_value:g})"
