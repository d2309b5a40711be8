"""Products and powers of P in plain steps, for recorded and transformed code and for second gradients.

The versions by hand (:mod:`advdiff.propagation.by_hand`) overwrite buffers and know their own gradient: faster, but
closed to torch. A backward pass by hand that is itself to be differentiated replays the plain version.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from advdiff.operators.propagator import Propagator


def plain_product(P: Propagator, Z: Tensor) -> Tensor:
    """P Z for Z [N, 1 or H, F] → [N, H, F]."""
    out: Tensor | float = 0.0
    if P.left is not None and P.right is not None:
        # The column of ones apart: rows of d numbers are aligned, those of d + 1 are not.
        total = P.segments.per_node(P.segments.sum(P.right[..., :1] * Z))
        moments = P.segments.outer(P.right[..., 1:], Z)
        out = P.segments.product(P.left[..., 1:], moments) + P.left[..., :1] * total
    if P.velocity is not None and P.velocity.num_edges:
        beta = P.beta.view(-1, 1).to(Z.dtype) if isinstance(P.beta, Tensor) else P.beta
        out = out + beta * P.velocity.product(Z.flatten(1)).view(Z.shape)
    if P.identity:
        out = out + P.identity * Z
    return out if isinstance(out, Tensor) else Z.new_zeros(Z.size(0), P.heads, Z.size(2))


def plain_powers(P: Propagator, Z: Tensor, source: Tensor | None, order: int) -> list[Tensor]:
    """The K states after Z, Z^{(k)} = P(Z^{(k-1)} + source)."""
    if P.has_small_graphs:
        return _block_powers(P, Z, source, order)
    states = [Z]
    for _ in range(order):
        states.append(plain_product(P, states[-1] if source is None else states[-1] + source))
    return states[1:]


def _block_powers(P: Propagator, Z: Tensor, source: Tensor | None, order: int) -> list[Tensor]:
    """The same where P is a small dense matrix for each graph."""
    blocks, pad = P.blocks(Z.dtype), P.segments.pad
    state, extra, states = pad(Z), None if source is None else pad(source), []
    for _ in range(order):
        state = blocks @ (state if extra is None else state + extra)
        states.append(P.segments.unpad(state))
    return states


def with_tensors(
    P: Propagator, left: Tensor | None, right: Tensor | None, beta: Tensor | None, entries: Tensor | None
) -> Propagator:
    """A constant P as a function of what ``Propagator.tensors`` lists."""
    velocity = P.velocity
    if velocity is not None and entries is not None and entries.requires_grad:
        velocity = replace(velocity, entries=entries, _cache={})
    return replace(P, left=left, right=right, beta=P.beta if beta is None else beta, velocity=velocity)


def replayed_gradient(
    function: Callable[..., Sequence[Tensor]],
    inputs: Sequence[Tensor | None],
    grads: Sequence[Tensor | None],
    needs: Sequence[bool],
) -> list[Tensor | None]:
    """The gradient of ``function(*inputs)`` as torch's own tape finds it, itself on the tape.

    The inputs may depend on each other: aliases of them keep their gradients apart.
    """
    with torch.enable_grad():
        aliases = [None if t is None else t.view_as(t) for t in inputs]
        outputs = function(*aliases)
        pairs = [(out, g) for out, g in zip(outputs, grads, strict=True) if g is not None and out.requires_grad]
        wanted = [t for t, need in zip(aliases, needs, strict=True) if need and t is not None and t.requires_grad]
        found: Sequence[Tensor | None] = [None] * len(wanted)
        if pairs and wanted:
            outs, given = zip(*pairs, strict=True)
            found = torch.autograd.grad(outs, wanted, given, create_graph=True, allow_unused=True)
    rest = iter(found)
    return [
        next(rest) if need and t is not None and t.requires_grad else None
        for t, need in zip(aliases, needs, strict=True)
    ]
