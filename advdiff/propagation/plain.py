"""The series in plain steps, for ``torch.compile``, ``torch.export``, ``torch.func`` and gradients of gradients.

The versions by hand (:mod:`advdiff.propagation.powers`) overwrite buffers and know their own gradient: faster, but closed
to torch. These are slower only where nothing is compiled.
"""

from __future__ import annotations

from torch import Tensor

from advdiff.operators.propagator import Propagator


def plain_product(P: Propagator, Z: Tensor) -> Tensor:
    """P Z for Z [N, 1 or H, F] → [N, H, F]."""
    out: Tensor | float = 0.0
    if P.left is not None and P.right is not None:
        # The column of ones apart: rows of d numbers are aligned, rows of d + 1 are not, and multiply at half the speed.
        total = P.segments.per_node(P.segments.sum(P.right[..., :1] * Z))
        moments = P.segments.outer(P.right[..., 1:], Z)
        out = P.segments.product(P.left[..., 1:], moments) + P.left[..., :1] * total
    if P.velocity is not None and P.velocity.num_edges:
        beta = P.beta.view(-1, 1) if isinstance(P.beta, Tensor) else P.beta
        out = out + beta * P.velocity.product(Z.flatten(1)).view(Z.shape)
    return out if isinstance(out, Tensor) else Z.new_zeros(Z.size(0), P.heads, Z.size(2))


def plain_powers(P: Propagator, Z: Tensor, source: Tensor | None, order: int) -> list[Tensor]:
    """The K states after Z."""
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
