"""The series on one graph as a single operator, ``torch.ops.advdiff.series``, for ``torch.compile``.

Its kernels, forward and backward, are those of ``advdiff.propagation.powers``, so that compiled code is as fast as
they are. It has a first gradient only. What it does not cover is recorded step by step
(:mod:`advdiff.operators.plain`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from advdiff.operators.gradients import Moments
from advdiff.operators.pattern import Pattern
from advdiff.operators.propagator import Propagator
from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity
from advdiff.propagation.by_hand import gradient_of_powers, states_and_moments


def fits(P: Propagator) -> bool:
    """One graph, with attention and edges that are constants, and β a number."""
    if P.velocity is None or P.velocity.num_edges == 0 or P.velocity.entries.requires_grad:
        return False
    return P.sums_to_one == "rows" and P.segments.num_graphs == 1 and not isinstance(P.beta, Tensor)


def recorded_powers(P: Propagator, Z: Tensor, source: Tensor | None, order: int) -> list[Tensor]:
    """The K states after Z."""
    assert P.velocity is not None and P.left is not None and P.right is not None
    value, back_value, structure = P.velocity.arrays(Z.dtype)
    return _series(P.left, P.right, Z, source, value, back_value, structure, float(P.beta), order)[:order]


def _operator(
    left: Tensor, right: Tensor, value: Tensor, back_value: Tensor, structure: Sequence[Tensor], beta: float
) -> Propagator:
    """P of its tensors."""
    nodes, dtype = left.size(0), left.dtype
    forward = Pattern(structure[0], structure[1], structure[4])
    backward = Pattern(structure[2], structure[3], structure[5])
    matrices = {(dtype, False): forward.matrix(value), (dtype, True): backward.matrix(back_value)}
    edges = structure[1].expand(2, -1)  # only their number is asked for
    velocity = Velocity(edges, value, nodes, "symmetric", dtype, False, 1.0, (forward, backward), matrices)  # type: ignore[arg-type]
    return Propagator(left, right, Segments(nodes, None, left.device), velocity, beta, True, "rows")


@torch.library.custom_op("advdiff::series", mutates_args=())
def _series(
    left: Tensor,
    right: Tensor,
    Z: Tensor,
    source: Tensor | None,
    value: Tensor,
    back_value: Tensor,
    structure: Sequence[Tensor],
    beta: float,
    order: int,
) -> list[Tensor]:
    operator = _operator(left, right, value, back_value, structure, beta)
    states, moments = states_and_moments(operator, Z, source, order)
    return [*states, *(tensor for pair in moments for tensor in pair if tensor is not None)]


@_series.register_fake
def _(left: Tensor, right: Tensor, Z: Tensor, *others: Any) -> list[Tensor]:
    order = others[-1]
    nodes, heads, rank = left.shape
    width = Z.size(2)
    states = [Z.new_empty(nodes, heads, width) for _ in range(order)]
    moments = []
    for k in range(order):
        moments += [Z.new_empty(1, heads if k else Z.size(1), width), Z.new_empty(1, heads, rank, width)]
    return [*states, *moments]


@torch.library.custom_op("advdiff::series_backward", mutates_args=())
def _series_backward(
    left: Tensor,
    right: Tensor,
    Z: Tensor,
    source: Tensor | None,
    value: Tensor,
    back_value: Tensor,
    structure: Sequence[Tensor],
    beta: float,
    kept: Sequence[Tensor],
    grads: Sequence[Tensor],
) -> list[Tensor]:
    operator = _operator(left, right, value, back_value, structure, beta)
    order = len(grads)
    moments = [Moments(*pair) for pair in zip(kept[order - 1 :: 2], kept[order::2], strict=True)]
    needs = (True, True, False, False)
    found = gradient_of_powers(operator, [Z, *kept[: order - 1]], source, moments, grads, needs)
    return [found[0], found[1], found[4], *([] if source is None else [found[5]])]  # type: ignore[list-item]


@_series_backward.register_fake
def _(left: Tensor, right: Tensor, Z: Tensor, source: Tensor | None, *others: Any) -> list[Tensor]:
    nodes, heads, rank = left.shape
    padded = Segments.padded(rank)
    factors = [left.new_empty(nodes, heads, padded)[..., :rank] for _ in range(2)]
    return [*factors, Z.new_empty(Z.shape), *([] if source is None else [source.new_empty(source.shape)])]


def _keep(ctx: Any, inputs: tuple[Any, ...], output: list[Tensor]) -> None:
    left, right, Z, source, value, back_value, structure, ctx.beta, ctx.order = inputs
    kept = [*output[: ctx.order - 1], *output[ctx.order :]]
    ctx.save_for_backward(left, right, Z, source, value, back_value, *structure, *kept, output[ctx.order - 1])


def _backward(ctx: Any, grads: list[Tensor | None]) -> tuple[Any, ...]:
    left, right, Z, source, value, back_value, *rest = ctx.saved_tensors
    structure, kept, last = rest[:6], rest[6:-1], rest[-1]
    given = [torch.zeros_like(last) if g is None else g for g in grads[: ctx.order]]
    found = _series_backward(left, right, Z, source, value, back_value, structure, ctx.beta, kept, given)
    return *found[:3], None if source is None else found[3], None, None, [None] * 6, None, None


_series.register_autograd(_backward, setup_context=_keep)
