"""Attention on the edges of a graph: its scores, its softmax and its product with a state, in O(E) memory.

The usual way, gathering a row of features per edge, moves E × d numbers through memory several times. Scores
and products are instead sampled and sparse matrix products, each the adjoint of the other: many times faster on a CPU,
and the backward pass keeps one number per edge.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from advdiff.checks import check_edge_index, check_edge_weight, has_values
from advdiff.nn.cache import new_memory, recall
from advdiff.operators.pattern import Pattern

_remembered = new_memory()


class _Patterns(NamedTuple):
    """The entries by target, in the order of the edges, and by source: ``order`` takes the one order to the other."""

    forward: Pattern
    backward: Pattern
    order: Tensor


class _Dot(torch.autograd.Function):
    @staticmethod
    def forward(ctx, X: Tensor, Y: Tensor, patterns: _Patterns) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.patterns = patterns
        ctx.save_for_backward(X, Y)
        return patterns.forward.dot(X, Y)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        X, Y = ctx.saved_tensors
        forward, backward, order = ctx.patterns
        return forward.product(grad, Y), backward.product(grad[order], X), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, value: Tensor, Z: Tensor, patterns: _Patterns) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.patterns = patterns
        ctx.save_for_backward(value, Z)
        return patterns.forward.product(value, Z)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        value, Z = ctx.saved_tensors
        forward, backward, order = ctx.patterns
        grad_value = forward.dot(grad, Z) if ctx.needs_input_grad[0] else None
        return grad_value, backward.product(value[order], grad) if ctx.needs_input_grad[1] else None, None


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
        pattern = Pattern.sort(target, source, num_nodes)
        self.num_nodes, self.num_edges = num_nodes, pattern.columns.numel()
        self.target, self.source = pattern.rows, pattern.columns.long()
        if weight is None and self.num_edges < target.numel():
            weight = torch.ones(target.numel(), device=target.device)
        self.weight = None if weight is None else pattern.merge(weight)
        self._patterns: dict[int, _Patterns] = {}

    def _of_heads(self, heads: int) -> _Patterns:
        """The patterns of ``heads`` copies of the graph, side by side."""
        if heads not in self._patterns:
            number = torch.arange(heads, device=self.source.device)[:, None]
            size = heads * self.num_nodes
            target, source = ((end + number * self.num_nodes).flatten() for end in (self.target, self.source))
            forward, backward = Pattern.sort(target, source, size), Pattern.sort(source, target, size)
            self._patterns[heads] = _Patterns(forward, backward, torch.argsort(backward.entry_of_edge))
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
        lambda edge_index, edge_weight: Edges(edge_index, num_nodes, edge_weight, self_loops),
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
