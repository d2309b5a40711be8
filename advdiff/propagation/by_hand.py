"""The states of the series and their gradient, outside of autograd: in place, one sparse product per order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from advdiff.operators.gradients import Moments
from advdiff.operators.propagator import Propagator


def states_and_moments(
    operator: Propagator, Z: Tensor, source: Tensor | None, order: int
) -> tuple[list[Tensor], list[Moments]]:
    """The K states after Z, and what C has read of each state that it was multiplied with."""
    state, states, moments = Z.contiguous(), [], []
    for _ in range(order):
        given = state if source is None else state + source
        out = given.new_empty(given.size(0), operator.heads, given.size(2))
        if operator.left is not None:  # what is not written yet serves as scratch
            moments.append(operator.moments(given, out if out.shape == given.shape else None))
        if given.size(1) == out.size(1):
            operator.add_advection_(out, given, keep=0.0)
        else:  # one product for the heads that share ``given``
            out.copy_(operator.spread_advection(given))
        if operator.left is not None:
            operator.add_coupling_(out, moments[-1])
        states.append(out)
        state = out
    return states, moments


def gradient_of_powers(
    operator: Propagator,
    states: Sequence[Tensor],
    source: Tensor | None,
    moments: Sequence[Moments],
    grads: Sequence[Tensor | None],
    needs: Sequence[bool],
    shape_of_beta: torch.Size | None = None,
) -> tuple[Tensor | None, ...]:
    """∂U, ∂W, ∂β, ∂V, ∂Z and ∂source from the gradients of the K states; ``states`` are those that were multiplied."""
    Z, segments, transposed = states[0], operator.segments, operator.T
    gradients = operator.gradients(needs)
    adjoint = spare = total_source = None
    for k in reversed(range(len(grads))):
        # ``adjoint`` is the gradient of state k + 1; only buffers made here are overwritten.
        incoming, owned = grads[k], adjoint is not None
        if incoming is not None:
            adjoint = incoming.contiguous() if adjoint is None else adjoint.add_(incoming)
        if adjoint is None:
            continue
        given = states[k] if source is None else states[k] + source
        is_first_shared = k == 0 and Z.size(1) < operator.heads
        if is_first_shared:
            back, advect_ = adjoint.new_empty(Z.shape), transposed.summed_advection_
        else:
            back, advect_ = (
                torch.empty_like(adjoint) if spare is None else spare,
                partial(transposed.add_advection_, keep=0.0),
            )
        if operator.left is None or operator.right is None:
            gradients.add(given, adjoint)
            advect_(back, adjoint)
        else:
            back_moments = segments.outer(operator.left, adjoint)
            scratch = back if back.shape == given.shape else None
            gradients.add(given, adjoint, moments[k], back_moments, scratch)
            advect_(back, adjoint)
            if is_first_shared:
                back += _apply_and_sum(operator, back_moments)
            else:
                segments.add_apply_(back, operator.right, back_moments)
        if source is not None:
            summed = back if back.shape == source.shape else back.sum(1, keepdim=True)
            total_source = summed.clone() if total_source is None else total_source.add_(summed)
        spare = adjoint if owned else None
        adjoint = back
    return *gradients.tensors(shape_of_beta), adjoint, total_source


def _apply_and_sum(operator: Propagator, moments: Tensor) -> Tensor:
    """Σ_h W_h S_h as [N, 1, F]: one product over heads and rank together."""
    assert operator.right is not None
    if moments.size(0) == 1:
        return (operator.right.flatten(1) @ moments[0].flatten(0, 1)).unsqueeze(1)
    return operator.segments.apply(operator.right, moments).sum(1, keepdim=True)
