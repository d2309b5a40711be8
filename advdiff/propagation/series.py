r"""``powers``: [Z, PZ, …, P^K Z], the states of the paper's series model.

With edge features the recurrence is Z^{(k)} = P(Z^{(k-1)} + M) (the paper's Appendix D). The backward pass is written
by hand: in place, one sparse product per order for all heads, a narrower one at the first, where they share Z.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from advdiff.blocks import Blocks
from advdiff.operators import Attention, Generator, Propagator, Velocity


def powers(
    P: Propagator | Attention | Velocity | Generator, Z: Tensor, order: int, *, source: Tensor | None = None
) -> list[Tensor]:
    r"""[Z, PZ, …, P^K Z] for P = C + βV, or Z^{(k)} = P(Z^{(k-1)} + source) if a source is given.

    Args:
        P: ``Generator(...).propagator``, or any operator of the library.
        Z: [N], [N, F] or [N, H, F]. An operator with H heads spreads an [N, F] state over them: the first entry of
            the result is Z as given and the others are [N, H, F].
        order: K ≥ 0.
        source: M, shaped like Z.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> advdiff.powers(V, torch.tensor([1.0, 0.0]), order=2)
        [tensor([1., 0.]), tensor([0., 1.]), tensor([1., 0.])]
    """
    if order < 0:
        raise ValueError(f"order is {order}; it must be 0 or larger.")
    if source is not None and source.shape != Z.shape:
        raise ValueError(f"source has shape {tuple(source.shape)} and Z {tuple(Z.shape)}; they must agree.")
    if isinstance(P, Attention):
        P = P.propagator
    if not isinstance(P, Propagator):
        states = [Z]
        for _ in range(order):
            states.append(P @ (states[-1] if source is None else states[-1] + source))
        return states
    spread = P.spread(Z)
    extra = None if source is None else P.spread(source, "source")
    if order == 0:
        return [Z]
    if P.has_small_graphs:
        states = _powers_of_blocks(P.blocks(Z.dtype), spread, extra, order)
    else:
        states = _Powers.apply(*P.tensors, spread, extra, P, order)
    return [Z, *(P.restore(state, Z) for state in states)]


def _powers_of_blocks(P: Blocks, Z: Tensor, source: Tensor | None, order: int) -> list[Tensor]:
    """The K states after Z where P is small and dense: autograd does the rest."""
    state, extra = P.gather(Z), None if source is None else P.gather(source)
    states = []
    for _ in range(order):
        state = P @ (state if extra is None else state + extra)
        states.append(P.scatter(state))
    return states


class _Powers(torch.autograd.Function):
    """The K states after Z as a differentiable function of U, W, β, Z and the source."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx: Any,
        left: Tensor | None,
        right: Tensor | None,
        beta: Tensor | None,
        Z: Tensor,
        source: Tensor | None,
        operator: Propagator,
        order: int,
    ):
        operator = operator.detach()
        segments = operator.segments
        state, states, moments = Z.contiguous(), [], []
        for _ in range(order):
            given = state if source is None else state + source
            out = given.new_empty(given.size(0), operator.heads, given.size(2))
            if operator.left is None or operator.right is None:
                out.zero_()
            else:
                moments.append(segments.outer(operator.right, given))
                segments.add_apply_(out, operator.left, moments[-1], keep=0.0)
            _add_advection(operator, out, given)
            states.append(out)
            state = out
        ctx.operator, ctx.order = operator, order
        ctx.beta_shape = None if beta is None else beta.shape
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(Z, source, *states[:-1], *moments)
        return tuple(states)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor | None):  # type: ignore[no-untyped-def]
        Z, source, *rest = ctx.saved_tensors
        operator: Propagator = ctx.operator
        segments, transposed = operator.segments, operator.T
        states, moments = [Z, *rest[: ctx.order - 1]], rest[ctx.order - 1 :]
        needs = ctx.needs_input_grad
        total_left = total_right = total_beta = total_source = None
        shape = (Z.size(0), operator.heads, Z.size(2))
        adjoint = spare = None
        for k in reversed(range(ctx.order)):
            # ``adjoint`` is the gradient of state k + 1; only buffers made here are overwritten.
            incoming, owned = grads[k], adjoint is not None
            if incoming is not None:
                adjoint = incoming.contiguous() if adjoint is None else adjoint.add_(incoming)
            if adjoint is None:
                continue
            given = states[k] if source is None else states[k] + source
            if needs[2]:
                part = operator.gradients(given.expand(shape), adjoint, (False, False, True))[2]
                total_beta = part if total_beta is None or part is None else total_beta + part
            is_first_shared = k == 0 and Z.size(1) < operator.heads
            back = spare if spare is not None else adjoint.new_empty(shape)
            if operator.left is None or operator.right is None:
                back.zero_()
            else:
                back_moments = segments.outer(operator.left, adjoint)
                total_left = _accumulate(segments, total_left, adjoint, moments[k].transpose(2, 3), needs[0])
                total_right = _accumulate(
                    segments, total_right, given.expand(shape), back_moments.transpose(2, 3), needs[1]
                )
                if is_first_shared:
                    back = _apply_and_sum(operator, back_moments)
                else:
                    segments.add_apply_(back, operator.right, back_moments, keep=0.0)
            transposed.add_advection_(back, adjoint.sum(1, keepdim=True) if is_first_shared else adjoint)
            if source is not None:
                summed = back if back.shape == source.shape else back.sum(1, keepdim=True)
                total_source = summed.clone() if total_source is None else total_source.add_(summed)
            spare = adjoint if owned else None
            adjoint = back
        if total_beta is not None:
            total_beta = total_beta.reshape(ctx.beta_shape)
        return total_left, total_right, total_beta, adjoint, total_source, None, None


def _add_advection(operator: Propagator, out: Tensor, given: Tensor) -> None:
    """out += βV given, multiplying once where the heads share ``given``."""
    if given.size(1) == out.size(1):
        operator.add_advection_(out, given)
    elif operator.velocity is not None:
        out += operator.add_advection_(torch.zeros_like(given), given)


def _accumulate(segments: Any, total: Tensor | None, A: Tensor, S: Tensor, needed: bool) -> Tensor | None:
    if not needed:
        return None
    if total is None:
        return segments.apply(A, S)
    return segments.add_apply_(total, A, S)


def _apply_and_sum(operator: Propagator, moments: Tensor) -> Tensor:
    """Σ_h W_h S_h as [N, 1, F]: one product over heads and rank together."""
    assert operator.right is not None
    if moments.size(0) == 1:
        return (operator.right.flatten(1) @ moments[0].flatten(0, 1)).unsqueeze(1)
    return operator.segments.apply(operator.right, moments).sum(1, keepdim=True)
