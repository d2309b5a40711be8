"""Columns of functions of the adjacency matrix A, a block at a time and one block for all graphs of a batch.

Graphs of a batch do not see each other. So the first columns of all graphs, added up, lose nothing: whatever a node
reads in f(A) of that sum came from its own graph. A batch needs as many columns as its largest graph has nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity

#: Columns of a block; sparse products are fastest where a row of it fills a few lines of the cache.
SIZE = 64
#: Multiplications that are made for one graph without being asked for; some five minutes of one core.
MAX_WORK = 5e11


class Columns:
    """The columns of the identity, numbered within each graph.

    Args:
        num_nodes: number N of nodes.
        batch: [N] graph number of each node, or None for one graph.
        device: where the blocks live.
    """

    def __init__(self, num_nodes: int, batch: Tensor | None, device: torch.device) -> None:
        segments = Segments(num_nodes, batch, device)
        self.num_nodes, self.width = num_nodes, segments.largest
        nodes = torch.arange(num_nodes, device=device)
        slots = nodes if segments.slots is None else segments.slots
        #: [N] the number of each node within its graph.
        self.place = slots % max(self.width, 1)
        self._first = slots - self.place
        self._node = torch.zeros(segments.num_graphs * self.width, dtype=torch.int64, device=device)
        self._node[slots] = nodes

    def blocks(self, dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
        """The numbers of some columns and these columns, [B] and [N, B]."""
        for first in range(0, self.width, SIZE):
            numbers = torch.arange(first, min(first + SIZE, self.width), device=self.place.device)
            yield numbers, (self.place[:, None] == numbers).to(dtype)

    def nodes(self, row: Tensor, place: Tensor) -> Tensor:
        """The nodes with these numbers in the graphs of the nodes ``row``."""
        return self._node[self._first[row] + place]

    def check_work(self, matrix: Velocity, products: int, what: str, instead: str) -> None:
        """Refuse what would take hours."""
        work = float(self.width) * matrix.num_edges * products
        if work > MAX_WORK:
            raise ValueError(
                f"{what} of this graph take {work:.0e} multiplications, and {MAX_WORK:.0e} are the limit; {instead}."
            )
