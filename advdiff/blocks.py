"""Batches of small graphs: P = C + βV as one small dense matrix per graph and head.

A graph of n nodes has an n×n block. For n ≤ d that is less than the factors of C, and a product with it costs n²F
instead of 2n(d + 1)F. Blocks are padded with zeros to the largest graph, so that one batched product serves all.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from advdiff.segments import Segments
from advdiff.velocity import Velocity


@dataclass(frozen=True, eq=False)
class Blocks:
    """A block-diagonal matrix [G, 1 or H, n, n], n the size of the largest graph.

    ``blocks @ Z`` takes and gives [G, 1 or H, n, F], as :meth:`gather` makes them.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 3)
        >>> segments = Segments(3, torch.tensor([0, 0, 1]), torch.device("cpu"))
        >>> Blocks.of_velocity(V, segments, torch.float32).matrix.squeeze(1)
        tensor([[[0., 1.],
                 [1., 0.]],
        <BLANKLINE>
                [[0., 0.],
                 [0., 0.]]])
    """

    segments: Segments
    matrix: Tensor

    @classmethod
    def of_attention(cls, left: Tensor, right: Tensor, segments: Segments) -> Blocks:
        """C = U Wᵀ within each graph, differentiable in U and W [N, H, r]."""
        blocks = cls(segments, left)  # only to gather
        return cls(segments, blocks.gather(left) @ blocks.gather(right).transpose(2, 3))

    @classmethod
    def of_velocity(cls, velocity: Velocity, segments: Segments, dtype: torch.dtype) -> Blocks:
        """V, whose edges stay within their graphs (a Generator sees to that)."""
        source, target = velocity.edge_index.long()
        size = segments.largest
        entry = segments.slots[target] * size + segments.slots[source] % max(size, 1)
        V = velocity.exact.new_zeros(segments.num_graphs * size * size).index_add_(0, entry, velocity.exact)
        return cls(segments, V.to(dtype).view(segments.num_graphs, 1, size, size))

    def gather(self, X: Tensor) -> Tensor:
        """[N, H, F] → [G, H, n, F], zeros where a graph has fewer nodes."""
        segments = self.segments
        padded = X.new_zeros(segments.num_graphs * segments.largest, *X.shape[1:]).index_copy(0, segments.slots, X)
        return padded.view(segments.num_graphs, segments.largest, *X.shape[1:]).transpose(1, 2)

    def scatter(self, X: Tensor) -> Tensor:
        """[G, H, n, F] → [N, H, F], the inverse of :meth:`gather`."""
        return X.transpose(1, 2).flatten(0, 1)[self.segments.slots]

    def __matmul__(self, Z: Tensor) -> Tensor:
        graphs, heads, size, _ = self.matrix.shape
        if Z.size(1) == heads:
            return self.matrix @ Z
        # The heads share Z: one taller product.
        return (self.matrix.flatten(1, 2) @ Z[:, 0]).view(graphs, heads, size, Z.size(3))
