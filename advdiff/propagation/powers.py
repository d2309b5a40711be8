r"""``powers``: [Z, PZ, …, P^K Z], the states of the paper's series model.

With edge features the recurrence is Z^{(k)} = P(Z^{(k-1)} + M) (the paper's Appendix D). The backward pass is written
by hand: in place, one sparse product per order for all heads, a narrower one at the first, where they share Z.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from advdiff.checks import check_all_finite, check_floating, expects, is_exported, is_traced, values_checked
from advdiff.operators import Attention, Generator, Propagator, Velocity
from advdiff.operators.blocks import Blocks
from advdiff.operators.gradients import Moments
from advdiff.operators.plain import plain_powers, replayed_gradient, with_tensors
from advdiff.operators.precision import full_precision
from advdiff.propagation.by_hand import gradient_of_powers, states_and_moments
from advdiff.propagation.series_op import fits, recorded_powers


@full_precision
@expects
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
        check_floating("Z", Z)
        check_all_finite({"Z": Z, "source": source})
        states = [Z]
        with values_checked():
            for _ in range(order):
                states.append(P @ (states[-1] if source is None else states[-1] + source))
        return states
    spread = P.spread(Z)
    extra = None if source is None else P.spread(source, "source")
    if order == 0:
        return [Z]
    if is_traced():
        recorded = recorded_powers if torch.compiler.is_compiling() and not is_exported() and fits(P) else plain_powers
        return [Z, *(P.restore(state, Z) for state in recorded(P, spread, extra, order))]
    states = (_BlockPowers if P.has_small_graphs else _Powers).apply(*P.tensors, spread, extra, P, order)
    return [Z, *(P.restore(state, Z) for state in states)]


class _Powers(torch.autograd.Function):
    """The K states after Z as a differentiable function of U, W, β, the entries of V, Z and the source."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx: Any,
        left: Tensor | None,
        right: Tensor | None,
        beta: Tensor | None,
        entries: Tensor | None,
        Z: Tensor,
        source: Tensor | None,
        operator: Propagator,
        order: int,
    ):
        operator = operator.detach()
        states, moments = states_and_moments(operator, Z, source, order)
        ctx.operator, ctx.order = operator, order
        ctx.beta_shape = None if beta is None else beta.shape
        ctx.set_materialize_grads(False)
        kept = (*states[:-1], *(tensor for pair in moments for tensor in pair))
        ctx.inputs = left, right, beta, entries  # the operator holds them anyway
        ctx.save_for_backward(Z, source, *kept)
        return tuple(states)

    @staticmethod
    @full_precision
    def backward(ctx: Any, *grads: Tensor | None):  # type: ignore[no-untyped-def]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grads)
        Z, source, *rest = ctx.saved_tensors
        states, kept = [Z, *rest[: ctx.order - 1]], rest[ctx.order - 1 :]
        moments = [Moments(*pair) for pair in zip(kept[::2], kept[1::2], strict=True)]
        needs, shape = ctx.needs_input_grad[:4], ctx.beta_shape
        return *gradient_of_powers(ctx.operator, states, source, moments, grads, needs, shape), None, None


class _BlockPowers(torch.autograd.Function):
    """The same where P is a small dense matrix for each graph."""

    @staticmethod
    def forward(  # type: ignore[no-untyped-def]
        ctx: Any,
        left: Tensor | None,
        right: Tensor | None,
        beta: Tensor | None,
        entries: Tensor | None,
        Z: Tensor,
        source: Tensor | None,
        operator: Propagator,
        order: int,
    ):
        ctx.operator, ctx.order = operator, order = operator.detach(), order
        blocks, segments = operator.blocks(Z.dtype), operator.segments
        state, extra = segments.pad(Z), None if source is None else segments.pad(source)
        states, inputs = [], []
        for _ in range(order):
            inputs.append(state if extra is None else state + extra)
            state = blocks @ inputs[-1]
            states.append(segments.unpad(state))
        ctx.heads_of_source = None if source is None else source.size(1)
        ctx.beta_shape = None if beta is None else beta.shape
        ctx.set_materialize_grads(False)
        ctx.inputs = left, right, beta, entries
        ctx.save_for_backward(Z, source, blocks.matrix, *inputs)
        return tuple(states)

    @staticmethod
    @full_precision
    def backward(ctx: Any, *grads: Tensor | None):  # type: ignore[no-untyped-def]
        if torch.is_grad_enabled():
            return _differentiable_backward(ctx, grads)
        matrix, *inputs = ctx.saved_tensors[2:]
        operator: Propagator = ctx.operator
        segments = operator.segments
        blocks, gradients = Blocks(segments, matrix), operator.gradients(ctx.needs_input_grad[:4])
        adjoint = total_source = None
        for given, incoming in zip(reversed(inputs), reversed(grads), strict=True):
            if incoming is not None:
                padded = segments.pad(incoming)
                adjoint = padded if adjoint is None else adjoint.add_(padded)
            if adjoint is None:
                continue
            gradients.add_padded(given, adjoint)
            adjoint = blocks.transposed_product(adjoint, summed=given.size(1) < adjoint.size(1))
            if ctx.heads_of_source is not None:
                summed = adjoint if adjoint.size(1) == ctx.heads_of_source else adjoint.sum(1, keepdim=True)
                total_source = summed if total_source is None else total_source + summed
        grad_Z, grad_source = (None if t is None else segments.unpad(t) for t in (adjoint, total_source))
        return *gradients.tensors(ctx.beta_shape), grad_Z, grad_source, None, None


def _differentiable_backward(ctx: Any, grads: tuple[Tensor | None, ...]) -> tuple[Tensor | None, ...]:
    """The gradient for those who differentiate it again."""

    def states(*tensors: Tensor | None) -> list[Tensor]:
        Z = tensors[4]
        assert Z is not None
        return plain_powers(with_tensors(ctx.operator, *tensors[:4]), Z, tensors[5], ctx.order)

    inputs = (*ctx.inputs, *ctx.saved_tensors[:2])
    return *replayed_gradient(states, inputs, grads, ctx.needs_input_grad[:6]), None, None
