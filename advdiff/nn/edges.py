"""Attention on the edges of a graph: its scores, its softmax and its product with a state, in O(E) memory.

The usual way, gathering a row of features per edge, moves E × d numbers through memory several times. Scores
and products are instead sampled and sparse matrix products, each the adjoint of the other: many times faster on a CPU,
and the backward pass keeps one number per edge.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from advdiff.checks import check_edge_index, check_edge_weight, has_values
from advdiff.nn.velocity_cache import new_memory, recall

_remembered = new_memory()


@dataclass(frozen=True, eq=False)
class _Pattern:
    """A CSR pattern over the edges; ``order`` takes values of the edges (sorted by target) to its own order."""

    pointers: Tensor
    rows: Tensor
    columns: Tensor
    order: Tensor | None

    @classmethod
    def sort(cls, rows: Tensor, columns: Tensor, size: int, order: Tensor | None = None) -> _Pattern:
        counts = torch.zeros(size + 1, dtype=torch.int64, device=rows.device)
        counts.index_add_(0, rows + 1, torch.ones_like(rows))
        # 32-bit indices are what the kernels work with: others are converted at every product.
        index = torch.int32 if max(rows.numel(), size) < 2**31 else torch.int64
        return cls(counts.cumsum(0).to(index), rows, columns.to(index), order)

    @property
    def size(self) -> int:
        return self.pointers.numel() - 1

    def _matrix(self, value: Tensor) -> Tensor:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*Sparse.*", category=UserWarning)
            return torch.sparse_csr_tensor(
                self.pointers, self.columns, value, (self.size, self.size), check_invariants=False
            )

    def _has_kernels(self, X: Tensor) -> bool:
        return X.device.type in ("cpu", "cuda") and self.columns.numel() > 0 and X.numel() > 0

    def sum(self, value: Tensor, Z: Tensor) -> Tensor:
        """out_u = Σ_e value_e z_column(e) over the entries e of row u."""
        value = value if self.order is None else value[self.order]
        if self._has_kernels(Z):
            return self._matrix(value) @ Z.contiguous()
        return torch.zeros_like(Z).index_add_(0, self.rows, value[:, None] * Z[self.columns])

    def dot(self, X: Tensor, Y: Tensor) -> Tensor:
        """x_row(e) · y_column(e) for every entry e; for the pattern by target only."""
        if self._has_kernels(X):
            zero = self._matrix(X.new_zeros(self.columns.numel()))
            return torch.sparse.sampled_addmm(zero, X.contiguous(), Y.T).values()
        return (X[self.rows] * Y[self.columns]).sum(1)


class _Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X: Tensor, Y: Tensor, patterns: tuple[_Pattern, _Pattern]) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.patterns = patterns
        ctx.save_for_backward(X, Y)
        return patterns[0].dot(X, Y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        X, Y = ctx.saved_tensors
        forward, backward = ctx.patterns
        return forward.sum(grad, Y), backward.sum(grad, X), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value: Tensor, Z: Tensor, patterns: tuple[_Pattern, _Pattern]) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.patterns = patterns
        ctx.save_for_backward(value, Z)
        return patterns[0].sum(value, Z)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        value, Z = ctx.saved_tensors
        forward, backward = ctx.patterns
        grad_value = forward.dot(grad, Z) if ctx.needs_input_grad[0] else None
        return grad_value, backward.sum(value, grad) if ctx.needs_input_grad[1] else None, None


class Edges:
    """The edges of a graph, sorted once. All arguments and results have the heads first: [H, N, F] and [H, E].

    Made by :func:`edges_of`. Attributes: ``source``, ``target`` and ``weight`` [E] (or None), sorted by target.
    Parallel edges are one edge with the sum of their weights, which is the same to any score of their ends.
    """

    def __init__(self, edge_index: Tensor, num_nodes: int, weight: Tensor | None, self_loops: bool) -> None:
        check_edge_index(edge_index, num_nodes)
        if weight is not None:
            check_edge_weight(weight, edge_index.size(1))
            weight = weight.detach()
        edge_index = edge_index.long()
        if self_loops:
            edge_index, weight = _with_self_loops(edge_index, num_nodes, weight)
        source, target = edge_index
        size = max(num_nodes, 1)
        entry = target * size + source
        if has_values(entry):
            entry, position = torch.unique(entry, return_inverse=True)
            if weight is not None or entry.numel() < position.numel():
                weight = torch.ones(position.numel(), device=entry.device) if weight is None else weight
                weight = weight.new_zeros(entry.numel()).index_add_(0, position, weight)
        self.num_nodes, self.num_edges, self.weight = num_nodes, entry.numel(), weight
        self.target = torch.div(entry, size, rounding_mode="floor")
        self.source = entry - self.target * size
        self._patterns: dict[int, tuple[_Pattern, _Pattern]] = {}

    def _of_heads(self, heads: int) -> tuple[_Pattern, _Pattern]:
        """The patterns by target and by source of ``heads`` copies of the graph, side by side."""
        if heads not in self._patterns:
            number = torch.arange(heads, device=self.source.device)[:, None]
            size = heads * self.num_nodes
            target, source = ((end + number * self.num_nodes).flatten() for end in (self.target, self.source))
            order = torch.argsort(source * max(size, 1) + target, stable=True)
            forward = _Pattern.sort(target, source, size)
            self._patterns[heads] = forward, _Pattern.sort(source[order], target[order], size, order)
        return self._patterns[heads]

    def dot(self, query: Tensor, key: Tensor) -> Tensor:
        """q_u · k_v on every edge v → u: two [H, N, d] → [H, E]."""
        heads = query.size(0)
        score: Tensor = _Dot.apply(
            query.reshape(-1, query.size(2)), key.reshape(-1, key.size(2)), self._of_heads(heads)
        )
        return score.view(heads, self.num_edges)

    def sum(self, value: Tensor, Z: Tensor) -> Tensor:
        """Σ_v value_uv z_v: [H, E], [H, N, F] → [H, N, F]."""
        out: Tensor = _Sum.apply(value.reshape(-1), Z.reshape(-1, Z.size(2)), self._of_heads(Z.size(0)))
        return out.view(Z.shape)

    def softmax(self, score: Tensor) -> Tensor:
        """c_uv = a_uv e^{s_uv} / Σ_w a_uw e^{s_uw}: [H, E] → [H, E]; parallel edges add up."""
        nodes = (score.size(0), self.num_nodes)
        target = self.target.expand_as(score)
        highest = score.detach().new_zeros(nodes)
        highest.scatter_reduce_(1, target, score.detach(), "amax", include_self=False)
        part = (score - highest.gather(1, target)).exp()
        if self.weight is not None:
            part = part * self.weight.to(score.dtype)
        total = score.new_zeros(nodes).index_add(1, self.target, part)
        return part / torch.where(total > 0, total, 1.0).gather(1, target)


def edges_of(edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, self_loops: bool = False) -> Edges:
    """The sorted edges, with a memory of the last graphs. ``self_loops`` gives every node one of weight 1."""
    return recall(
        _remembered,
        [edge_index, edge_weight],
        (num_nodes, self_loops),
        lambda: Edges(edge_index, num_nodes, edge_weight, self_loops),
    )


def _with_self_loops(edge_index: Tensor, num_nodes: int, weight: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Replace the loops of a graph (on ``meta``, where they cannot be told: add to them)."""
    if has_values(edge_index):
        keep = edge_index[0] != edge_index[1]
        edge_index, weight = edge_index[:, keep], None if weight is None else weight[keep]
    loops = torch.arange(num_nodes, device=edge_index.device).expand(2, -1)
    return torch.cat([edge_index, loops], 1), None if weight is None else torch.cat(
        [weight, weight.new_ones(num_nodes)]
    )
