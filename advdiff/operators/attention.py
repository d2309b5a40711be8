"""The coupling C: global attention as a matrix of rank at most d + 1 within each graph."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from advdiff.checks import check_all_finite, check_floating, expects, is_traced
from advdiff.operators.precision import full_precision, widened
from advdiff.operators.propagator import Propagator
from advdiff.operators.segments import Segments


class Attention:
    r"""The paper's normalised dot-product attention, kept as a product of two thin matrices.

    .. math::
        c_{uv} = \frac{1 + \hat{\mathbf q}_u^\top \hat{\mathbf k}_v}
        {\sum_w (1 + \hat{\mathbf q}_u^\top \hat{\mathbf k}_w)},
        \qquad \hat{\mathbf q} = \mathbf q / \|\mathbf q\|_2, \quad \hat{\mathbf k} = \mathbf k / \|\mathbf k\|_2

    The sums run over the nodes of u's own graph. With n the row sums, C = U Wᵀ where
    U = diag(n)⁻¹ [1, Q̂] (``left``) and W = [1, K̂] (``right``), so ``C @ Z`` costs O(N d F) and no N×N matrix
    is ever formed. Rows sum to 1 and entries are not negative.

    A zero query or key vector has no direction: its normalised vector is 0, and a zero query attends
    uniformly. So does a query opposite to every key, whose row would be 0/0.

    Args:
        query: [N, d], or [N, H, d] for H heads.
        key: the same shape.
        batch: [N] graph number of each node (PyG), or None for a single graph; or the
            :class:`~advdiff.operators.segments.Segments` made of it, where they are known already.

    Example:
        >>> import torch, advdiff
        >>> C = advdiff.Attention(torch.eye(2), torch.eye(2))
        >>> C.to_dense()
        tensor([[0.6667, 0.3333],
                [0.3333, 0.6667]])
    """

    left: Tensor
    right: Tensor
    segments: Segments
    multi_head: bool
    sums_to_one: Literal["rows", "columns"] | None

    @full_precision
    @expects
    def __init__(self, query: Tensor, key: Tensor, batch: Tensor | Segments | None = None) -> None:
        if query.shape != key.shape or query.dim() not in (2, 3):
            raise ValueError(
                f"query has shape {tuple(query.shape)} and key {tuple(key.shape)}; both must be [N, d] or [N, H, d]."
            )
        if query.dtype != key.dtype or query.device != key.device:
            raise ValueError(
                f"query is {query.dtype} on {query.device} and key {key.dtype} on {key.device}; make them agree."
            )
        for name, tensor in (("query", query), ("key", key)):
            check_floating(name, tensor)
        check_all_finite({"query": query, "key": key})
        query, key = widened(query), widened(key)
        self.multi_head = query.dim() == 3
        if not self.multi_head:
            query, key = query.unsqueeze(1), key.unsqueeze(1)
        self.segments = batch if isinstance(batch, Segments) else Segments(query.size(0), batch, query.device)
        factors = (_plain_factors if is_traced() else _Factors.apply)(query, key, self.segments)
        self.left, self.right = factors[:2]
        self.sums_to_one = "rows"

    @classmethod
    def from_factors(
        cls,
        left: Tensor,
        right: Tensor,
        segments: Segments,
        multi_head: bool,
        sums_to_one: Literal["rows", "columns"] | None = None,
    ) -> Attention:
        """The operator U Wᵀ from its factors [N, H, r], as they are."""
        attention = object.__new__(cls)
        attention.left, attention.right = left, right
        attention.segments, attention.multi_head, attention.sums_to_one = segments, multi_head, sums_to_one
        return attention

    def to(self, *args: Any, **kwargs: Any) -> Attention:
        """C on another device or in another dtype, called like ``Tensor.to``."""
        left, right = self.left.to(*args, **kwargs), self.right.to(*args, **kwargs)
        return Attention.from_factors(left, right, self.segments.to(left.device), self.multi_head, self.sums_to_one)

    @property
    def num_nodes(self) -> int:
        """Number N of nodes."""
        return self.left.size(0)

    @property
    def heads(self) -> int:
        """Number H of heads."""
        return self.left.size(1)

    @property
    def rank(self) -> int:
        """The rank bound d + 1."""
        return self.left.size(2)

    @property
    def T(self) -> Attention:
        """The transpose Cᵀ, with the factors exchanged."""
        transposed = self.propagator.T
        return Attention.from_factors(self.right, self.left, self.segments, self.multi_head, transposed.sums_to_one)

    @property
    def propagator(self) -> Propagator:
        """C as the special case β = 0 of P = C + βV."""
        return Propagator(self.left, self.right, self.segments, None, 0.0, self.multi_head, self.sums_to_one)

    def __matmul__(self, Z: Tensor) -> Tensor:
        return self.propagator @ Z

    def to_dense(self) -> Tensor:
        """The dense matrix, [N, N] or [H, N, N] (an oracle for small N)."""
        return self.propagator.to_dense()

    def __repr__(self) -> str:
        return (
            f"Attention(nodes={self.num_nodes}, heads={self.heads}, rank={self.rank}, "
            f"graphs={self.segments.num_graphs})"
        )


def _inverse_norm(X: Tensor) -> Tensor:
    """1/‖x‖ with 1 for a zero vector, so that 0 stays 0 and its gradient stays finite."""
    norm = torch.linalg.vector_norm(X, dim=-1, keepdim=True)
    if is_traced() or X.device.type != "cpu" or _has_lost_squares(norm):
        norm = _scaled_norm(X)
    return torch.where(norm > 0, norm, 1.0).reciprocal_()


def _has_lost_squares(norm: Tensor) -> bool:
    """Do squares of some vector leave the range of its numbers (or is it zero)? Asked on a CPU: there nobody waits."""
    lengths = norm.detach().numpy()
    least = 1e3 * torch.finfo(norm.dtype).tiny ** 0.5
    return lengths.size > 0 and not (lengths.min() > least and lengths.max() < float("inf"))


def _scaled_norm(X: Tensor) -> Tensor:
    """‖x‖ = a ‖x/a‖ with a power of two a next to the largest entry; below the least normal number, 0."""
    largest = X.detach().abs().amax(-1, keepdim=True) if X.size(-1) else X.new_zeros(*X.shape[:-1], 1)
    is_normal = largest >= torch.finfo(X.dtype).tiny
    scale = torch.ldexp(torch.ones_like(largest), torch.frexp(torch.where(is_normal, largest, 1.0)).exponent)
    norm = torch.linalg.vector_norm(X / scale, dim=-1, keepdim=True) * scale
    return torch.where(is_normal, norm, 0.0)


def _plain_factors(query: Tensor, key: Tensor, segments: Segments) -> tuple[Tensor, Tensor]:
    """query, key → U = diag(n)⁻¹[1, Q̂], W = [1, K̂], step by step, as torch can record and transform it."""
    query, key = query * _inverse_norm(query), key * _inverse_norm(key)
    right = torch.cat([torch.ones_like(key[..., :1]), key], dim=-1)
    totals = segments.sum(right).unsqueeze(-1)
    nodes = segments.per_node(totals[..., :1, 0])
    row_sum = nodes + segments.product(query, totals[..., 1:, :])
    lost = row_sum <= 4 * torch.finfo(key.dtype).eps * nodes
    query, row_sum = query.masked_fill(lost, 0.0), torch.where(lost, nodes, row_sum)
    return torch.cat([torch.ones_like(row_sum), query], dim=-1) / row_sum, right


class _Factors(torch.autograd.Function):
    """query, key → U = diag(n)⁻¹[1, Q̂], W = [1, K̂], 1/‖q‖, 1/‖k‖.

    Written by hand because the tape of its dozen elementwise steps would cost more time and memory than the sparse
    products of the whole propagation. The gradient is a function of these four results, which is why the last two are
    returned at all: so it can be differentiated again, and query and key need not be kept for that.
    """

    @staticmethod
    def forward(ctx, query: Tensor, key: Tensor, segments: Segments):  # type: ignore[no-untyped-def]
        query_scale, key_scale = _inverse_norm(query), _inverse_norm(key)
        right = key.new_empty(*key.shape[:2], key.size(2) + 1)
        right[..., :1] = 1.0
        torch.mul(key, key_scale, out=right[..., 1:])
        totals = segments.sum(right).unsqueeze(-1)  # [N_g, Σ k̂] per graph and head
        nodes = segments.per_node(totals[..., :1, 0])
        row_sum = torch.addcmul(nodes, segments.apply(query, totals[..., 1:, :]), query_scale)
        # n = 0 only if the query opposes every key: treat it as a zero query, which attends uniformly.
        lost = row_sum <= 4 * torch.finfo(key.dtype).eps * nodes
        query_scale = query_scale.masked_fill(lost, 0.0)
        row_sum = torch.where(lost, nodes, row_sum)
        left = torch.empty_like(right)
        torch.reciprocal(row_sum, out=left[..., :1])
        torch.mul(query, query_scale / row_sum, out=left[..., 1:])
        ctx.segments = segments
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(left, right, query_scale, key_scale, row_sum, totals)
        return left, right, query_scale, key_scale

    @staticmethod
    @full_precision
    def backward(ctx, grad_left, grad_right, grad_query_scale, grad_key_scale):  # type: ignore[no-untyped-def]
        left, right, query_scale, key_scale, n, totals = ctx.saved_tensors
        segments: Segments = ctx.segments
        apply = segments.apply
        if torch.is_grad_enabled():  # somebody differentiates the gradient: all of it from the results, on the tape
            n, totals, apply = left[..., :1].reciprocal(), segments.sum(right).unsqueeze(-1), segments.product
        grad_left = torch.zeros_like(left) if grad_left is None else grad_left
        grad_right = torch.zeros_like(right) if grad_right is None else grad_right
        # With a = û·∂û (the part of ⟨U, ∂U⟩ on Q̂): ∂n = −⟨U, ∂U⟩/n, ∂q̂ = ∂û/n + ∂n Σk̂, q̂·∂q̂ = a + ∂n (n − N_g).
        inner = left * grad_left
        along_query = inner[..., 1:].sum(-1, keepdim=True)
        grad_n = (inner[..., :1] + along_query).div_(n).neg_()
        along_query += grad_n * (n - segments.per_node(totals[..., :1, 0]))
        if grad_query_scale is not None:  # ∂(1/‖q‖) = −q̂/‖q‖²
            along_query += query_scale * grad_query_scale
        # A zero vector has q̂ = 0 and scale 1: its gradient passes unchanged.
        grad_query = grad_left[..., 1:] * (query_scale / n)
        grad_query.addcmul_(segments.per_node(totals[..., 1:, 0]), query_scale * grad_n)
        grad_query.addcmul_(left[..., 1:], query_scale * n * along_query, value=-1.0)
        grad_totals = segments.outer(left, n * grad_n)[..., 1:, :]  # Σ_u ∂n_u q̂_u
        along_key = (right[..., 1:] * grad_right[..., 1:]).sum(-1, keepdim=True)
        along_key += apply(right[..., 1:], grad_totals)
        if grad_key_scale is not None:
            along_key += key_scale * grad_key_scale
        grad_key = grad_right[..., 1:] * key_scale
        grad_key.addcmul_(segments.per_node(grad_totals[..., 0]), key_scale)
        grad_key.addcmul_(right[..., 1:], key_scale * along_key, value=-1.0)
        return grad_query, grad_key, None
