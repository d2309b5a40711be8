r"""The gradient of the propagator, the one place where every solver's backward pass ends.

Whatever a solver computes, its gradient with respect to P is a sum of products λzᵀ of a state z and an adjoint λ
(one for a product and a resolvent, K for the powers, an integral for the exponential). With P = U Wᵀ + βV,

.. math::
    \partial \mathbf U = \sum \boldsymbol\lambda\, (\mathbf W^\top \mathbf z)^\top, \qquad
    \partial \mathbf W = \sum \mathbf z\, (\mathbf U^\top \boldsymbol\lambda)^\top, \qquad
    \partial \beta = \sum \langle \boldsymbol\lambda, \mathbf V \mathbf z \rangle, \qquad
    \partial v_{uv} = \beta \sum \boldsymbol\lambda_u^\top \mathbf z_v .

Where the rows of C sum to one by construction, a constant added to z has no effect on query and key. It is taken out
first, since it can be so much larger than the rest that single precision loses two digits; the gradient of β needs it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from advdiff.operators.propagator import Propagator


class Moments(NamedTuple):
    """What C = U Wᵀ reads of a state: its mean per graph [G, 1 or H, F] and Wᵀ(z − mean) [G, H, r, F].

    The mean is None, and nothing is taken from z, where the rows of C do not sum to one by construction.
    """

    mean: Tensor | None
    centred: Tensor


class Gradients:
    """Adds up ∂⟨λ, P z⟩ with respect to U, W, β and the entries of V, in place, over the pairs (z, λ) it is given.

    Args:
        operator: P as constants.
        needs: which of the four gradients are wanted.

    Example:
        >>> import torch, advdiff
        >>> C = advdiff.Attention(torch.eye(2), torch.eye(2))
        >>> gradients = Gradients(C.propagator.detach(), (True, False, False, False))
        >>> gradients.add(torch.full((2, 1, 1), 7.0), torch.ones(2, 1, 1))  # a constant: no effect
        >>> float(gradients.tensors()[0].abs().max())
        0.0
    """

    def __init__(self, operator: Propagator, needs: Sequence[bool]) -> None:
        self.operator = operator
        self.needs_factors = (needs[0] or needs[1]) and operator.left is not None
        self.needs_left, self.needs_right = needs[0] and self.needs_factors, needs[1] and self.needs_factors
        self.needs_beta, self.needs_entries = (need and operator.velocity is not None for need in needs[2:4])
        self._left: Tensor | None = None
        self._right: Tensor | None = None
        self._beta: Tensor | None = None
        self._entries: Tensor | None = None
        self._blocks: Tensor | None = None  # ∂C of small graphs, [G, H, n, n]

    def add(
        self,
        states: Tensor,
        adjoints: Tensor,
        moments: Moments | None = None,
        back_moments: Tensor | None = None,
        scratch: Tensor | None = None,
    ) -> None:
        """One pair, z [N, 1 or H, F] and λ [N, H, F].

        ``operator.moments(z)`` and Uᵀλ are used if they are known already; ``scratch``, like z, is overwritten.
        """
        if self.operator.has_small_graphs:
            pad = self.operator.segments.pad
            return self.add_padded(pad(states), pad(adjoints))
        self._add_advection(states, adjoints)
        if not self.needs_factors:
            return None
        operator, segments = self.operator, self.operator.segments
        assert operator.left is not None and operator.right is not None
        if operator.sums_to_one == "rows":
            mean = segments.mean(states) if moments is None or moments.mean is None else moments.mean
            states = torch.sub(states, segments.per_node(mean), out=scratch)
        elif operator.sums_to_one == "columns":
            adjoints, back_moments = segments.centred(adjoints), None
        if self.needs_left:
            S = segments.outer(operator.right, states) if moments is None else moments.centred
            self._left = self._accumulate(self._left, adjoints, S)
        if self.needs_right:
            S = segments.outer(operator.left, adjoints) if back_moments is None else back_moments
            self._right = self._accumulate(self._right, states.expand(-1, operator.heads, -1), S)
        return None

    def add_padded(self, states: Tensor, adjoints: Tensor) -> None:
        """One pair for small graphs, padded: z [G, 1 or H, n, F] and λ [G, H, n, F]."""
        segments = self.operator.segments
        if self.needs_beta or self.needs_entries:
            self._add_advection(segments.unpad(states), segments.unpad(adjoints))
        if not self.needs_factors:
            return
        counts = segments.counts.clamp(min=1).to(states.dtype).view(-1, 1, 1, 1)
        # What this puts into the padding meets the zero rows of the padded factors.
        if self.operator.sums_to_one == "rows":
            states = states - states.sum(2, keepdim=True) / counts
        elif self.operator.sums_to_one == "columns":
            adjoints = adjoints - adjoints.sum(2, keepdim=True) / counts
        # Heads that share z are one taller product.
        start, end = (0, 1) if states.size(1) == adjoints.size(1) else (1, 2)
        A, B = adjoints.flatten(start, end), states.flatten(0, 1).transpose(1, 2)
        if self._blocks is None:
            self._blocks = (A @ B).view(*adjoints.shape[:3], -1)
        else:
            self._blocks.view(*A.shape[:2], -1).baddbmm_(A, B)

    def tensors(
        self, shape_of_beta: torch.Size | None = None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
        """∂U, ∂W, ∂β and ∂V, entry by entry; None where not wanted."""
        if self._blocks is not None:
            operator, segments = self.operator, self.operator.segments
            assert operator.left is not None and operator.right is not None
            if self.needs_left:
                self._left = segments.unpad(self._blocks @ segments.pad(operator.right))
            if self.needs_right:
                self._right = segments.unpad(self._blocks.transpose(2, 3) @ segments.pad(operator.left))
        beta = self._beta if self._beta is None or shape_of_beta is None else self._beta.reshape(shape_of_beta)
        return self._left, self._right, beta, self._entries

    def _add_advection(self, states: Tensor, adjoints: Tensor) -> None:
        operator = self.operator
        if self.needs_beta:
            advection = replace(operator, beta=1.0)
            states = states.contiguous()
            part = adjoints * advection.add_advection_(torch.empty_like(states), states, keep=0.0)
            part = part.sum() if operator.beta_per_head is None else part.sum((0, 2))
            self._beta = part if self._beta is None else self._beta + part
        if self.needs_entries and operator.velocity is not None:
            per_head, scale = operator.beta_per_head, 1.0
            if per_head is None:
                scale = operator.beta_value
            else:
                adjoints = adjoints * per_head.to(adjoints.dtype)
            if states.size(1) < adjoints.size(1):
                adjoints = adjoints.sum(1, keepdim=True)
            part = operator.velocity.edge_products(adjoints.flatten(1), states.flatten(1)).mul_(scale)
            self._entries = part if self._entries is None else self._entries.add_(part)

    def _accumulate(self, total: Tensor | None, A: Tensor, S: Tensor) -> Tensor:
        """total + A Sᵀ, in place from the second time on."""
        segments, S = self.operator.segments, S.transpose(2, 3)
        return segments.apply(A, S) if total is None else segments.add_apply_(total, A, S)
