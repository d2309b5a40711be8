"""Batches of small graphs: P = C + βV as one small dense matrix per graph and head.

A graph of n nodes has an n×n block. For n ≤ d that is less than the factors of C, and a product with it costs n²F
instead of 2n(d + 1)F. Blocks are padded with zeros to the largest graph, so that one batched product serves all.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity


@dataclass(frozen=True, eq=False)
class Blocks:
    """A block-diagonal matrix [G, 1 or H, n, n], n the size of the largest graph.

    ``blocks @ Z`` takes and gives [G, 1 or H, n, F], as :meth:`~advdiff.operators.segments.Segments.pad` makes them.

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
        """C = U Wᵀ within each graph."""
        return cls(segments, segments.pad(left) @ segments.pad(right).transpose(2, 3))

    @classmethod
    def of_velocity(cls, velocity: Velocity, segments: Segments, dtype: torch.dtype) -> Blocks:
        """V, whose edges stay within their graphs (a Generator sees to that)."""
        edge_index, size = velocity.edge_index.long(), segments.largest
        source, target = edge_index if segments.slots is None else segments.slots[edge_index]
        entry = target * size + source % max(size, 1)
        V = velocity.entries.new_zeros(segments.num_graphs * size * size).index_add(0, entry, velocity.entries)
        return cls(segments, V.to(dtype).view(segments.num_graphs, 1, size, size))

    def __matmul__(self, Z: Tensor) -> Tensor:
        graphs, heads, size, _ = self.matrix.shape
        if Z.size(1) == heads:
            return self.matrix @ Z
        # The heads share Z: one taller product.
        return (self.matrix.flatten(1, 2) @ Z[:, 0]).view(graphs, heads, size, Z.size(3))

    def transposed_product(self, Z: Tensor, summed: bool = False) -> Tensor:
        """Pᵀ Z for Z [G, H, n, F]; with ``summed`` the sum over the heads, [G, 1, n, F]."""
        if summed:
            return (self.matrix.flatten(1, 2).transpose(1, 2) @ Z.flatten(1, 2)).unsqueeze(1)
        return self.matrix.transpose(2, 3) @ Z
