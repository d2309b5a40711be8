"""One part of a graph in the place of the whole: what layers and models are told where other processes hold the rest.

The tensors that a model is called with are then the rows and edges of this part. Their velocity and the sums over their
nodes come from the part, and so does the judgement whether the edges are good; nothing else is any different.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

from torch import Tensor

from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity


class Part(Protocol):
    """What a part of a graph knows of it."""

    @property
    def segments(self) -> Segments:
        """Sums over all nodes."""

    def velocity(self, kind: str, self_loops: str) -> Velocity:
        """V, of which this part has the rows of its nodes."""

    def check(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, batch: Tensor | None) -> None:
        """Refuse tensors that are not those of this part."""


#: The part that stands for the graph; None where a graph is all in one process.
CURRENT_PART: ContextVar[Part | None] = ContextVar("advdiff_part", default=None)


@contextmanager
def standing_for_the_graph(part: Part) -> Iterator[None]:
    """Take the graph that layers and models are called with for this part of it."""
    token = CURRENT_PART.set(part)
    try:
        yield
    finally:
        CURRENT_PART.reset(token)
