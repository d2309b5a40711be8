r"""One graph on many machines, exactly, on ``torch.distributed``.

The nodes are divided among P processes (*ranks*). A rank holds the rows of its own nodes, in x, in Z and in everything
between, and the edges that arrive at them; nobody holds the whole graph. Then there are two places, and only two, at
which a product with P = C + βV reads a row that another rank holds:

* **V is sparse.** (VZ)_u needs the rows of u's neighbours. Those that lie elsewhere are the *halo*. Each rank sends the
  rows that others need and receives its own halo in one ``all_to_all_single`` for all heads and columns, while it
  multiplies what is local; the transposed product sends partial sums the other way. This is
  :class:`~advdiff.distributed.velocity.ShardedVelocity`, a :class:`~advdiff.operators.velocity.Velocity` like others.
* **C = UWᵀ is thin.** CZ needs the moments WᵀZ, a (d + 1) × F matrix per head, and the mean of Z. Each rank adds up
  over its own nodes and an ``all_reduce`` does the rest, whatever the number of nodes.

The library has one place where nodes are added up, :class:`~advdiff.operators.segments.Segments`, and it hands every
sum, maximum and norm to its :class:`~advdiff.operators.reductions.Reductions`. Those of a single process have nothing
left to do; :class:`~advdiff.distributed.ranks.RankReductions` asks the other ranks. Attention, Krylov's inner products,
the error estimates of Chebyshev and Taylor, the capacitance matrix and the diagnosis of the inverse, and batch
normalisation all go through it, so that the series, the inverse, the exponential, their adjoints, the layer and the
model run as they are. What a solver decides on the way, it decides on reduced numbers, the same on every rank.

**Gradients.** The loss of the job is the sum of what the ranks call ``backward`` on. A rank's gradient of its own rows
is then the whole gradient; that of a weight, which all ranks have, is its share, and ``add_up_gradients`` adds the
shares up.

From a file to a run: ``partition`` (or ``partition_stream``, for edge lists larger than memory) writes one file
for each rank; ``Shard`` reads it; ``Sharded`` calls a model with it. ``advdiff shard`` and
``torchrun -m advdiff.distributed`` do the same from a shell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from advdiff.lazy import attach

if TYPE_CHECKING:
    from advdiff.distributed.partitioning import partition
    from advdiff.distributed.shard import Shard, Sharded, add_up_gradients
    from advdiff.distributed.streaming import partition_stream

__all__ = ["Shard", "Sharded", "add_up_gradients", "partition", "partition_stream"]
__getattr__ = attach(
    __name__,
    {
        "Shard": "advdiff.distributed.shard",
        "Sharded": "advdiff.distributed.shard",
        "add_up_gradients": "advdiff.distributed.shard",
        "partition": "advdiff.distributed.partitioning",
        "partition_stream": "advdiff.distributed.streaming",
    },
)
