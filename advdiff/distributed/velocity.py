r"""The velocity of a graph of which this rank holds the edges that arrive at its own nodes.

With the local part V_ll (between own nodes) and the border V_lh (from the halo),

.. math::
    (\mathbf V \mathbf Z)_l = \mathbf V_{ll} \mathbf Z_l + \mathbf V_{lh} \mathbf Z_h, \qquad
    (\mathbf V^\top \mathbf Z)_l = \mathbf V_{ll}^\top \mathbf Z_l + \sum_{ranks} \mathbf V_{lh}^\top \mathbf Z .

The first one receives Z_h while it multiplies V_ll Z_l; the second one sends its V_lhᵀ Z home, and receives what the
others have for its nodes, while it multiplies V_llᵀ Z_l. Where V is symmetric, the first one serves both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from advdiff.checks import check_choice
from advdiff.distributed.halo import Halo, send_around
from advdiff.distributed.ranks import RankReductions
from advdiff.operators.graph import NORMALIZATIONS, normalized
from advdiff.operators.pattern import Pattern
from advdiff.operators.velocity import Velocity


@dataclass(frozen=True, eq=False)
class ShardedVelocity(Velocity):
    """The rows of V that belong to this rank's nodes, with products that ask the other ranks for the rest.

    ``edge_index`` and ``entries`` are this rank's; ``num_nodes`` is the number of its nodes, of which a product takes
    and gives one row each. ``num_edges``, ``undirected`` and ``skew`` are those of the whole graph. Every product is a
    collective operation: all ranks must make it.
    """

    inner: Velocity | None = None
    border: Tensor | None = None
    halo: Halo | None = None
    all_edges: int = 0

    @property
    def reductions(self) -> RankReductions:
        assert self.halo is not None
        return self.halo.reductions

    @property
    def num_edges(self) -> int:
        return self.all_edges

    def _matrix(self, dtype: torch.dtype) -> Tensor:
        """The border V_lh, or V_lhᵀ, in CSR."""
        assert self.border is not None
        key = (dtype, self._goes_back)
        if key not in self._cache:
            pattern = self._patterns[key[1]]
            self._cache[key] = pattern.matrix(pattern.merge(self.entries[self.border])).to(dtype)
        return self._cache[key]

    @property
    def _goes_back(self) -> bool:
        return self._transposed and not (self.undirected and self.kind == "symmetric")

    def add_product_(self, out: Tensor, Z: Tensor, scale: float = 1.0, keep: float = 1.0) -> Tensor:
        assert self.inner is not None and self.halo is not None and self.border is not None
        inner, halo = self.inner.T if self._goes_back else self.inner, self.halo
        if halo.is_empty or self.num_edges == 0 or scale == 0.0 or Z.size(1) == 0:  # alike on all ranks
            return inner.add_product_(out, Z, scale, keep)
        has_border = self.border.numel() > 0
        if self._goes_back:
            sums = self._matrix(Z.dtype) @ Z if has_border else Z.new_zeros(halo.halo.numel(), Z.size(1))
            finish = halo.start_back(sums)
            inner.add_product_(out, Z, scale, keep)
            return out.index_add_(0, halo.send_index, finish(), alpha=scale)
        finish = halo.start(Z)
        inner.add_product_(out, Z, scale, keep)
        rows = finish()
        return torch.addmm(out, self._matrix(out.dtype), rows, alpha=scale, out=out) if has_border else out

    def to(self, *args: Any, **kwargs: Any) -> Velocity:
        raise ValueError("a part of V stays on the device of its shard; make the shard anew on the other one.")

    def arrays(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, list[Tensor]]:
        raise ValueError("no rank holds the whole of V, so torch cannot record its products; do not compile.")

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        raise ValueError("no rank holds the whole of V; make it with normalize_adjacency in one process.")

    def __repr__(self) -> str:
        return f"ShardedVelocity(nodes={self.num_nodes}, edges={self.num_edges}, kind={self.kind!r})"


def sharded_velocity(
    edge_index: Tensor, weight: Tensor, nodes: Tensor, halo: Halo, kind: str, dtype: torch.dtype, num_edges: int
) -> ShardedVelocity:
    """V as :func:`advdiff.normalize_adjacency` makes it, from the degrees that all ranks count together.

    Args:
        edge_index: [2, E_l], this rank's edges; sources from n on are rows of the halo.
        weight: [E_l], in float64.
        nodes: [n] global numbers of this rank's nodes.
    """
    check_choice("kind of normalisation", kind, NORMALIZATIONS)
    reductions, n, h = halo.reductions, nodes.numel(), halo.halo.numel()
    source, target = edge_index
    in_degree = weight.new_zeros(n).index_add_(0, target, weight)
    out_degree, skew = in_degree, 1.0
    if kind == "symmetric":
        counted = weight.new_zeros(n + h).index_add_(0, source, weight)
        own = counted[:n].index_add(0, halo.send_index, halo.start_back(counted[n:, None])()[:, 0])
        out_degree = torch.cat([own, halo.start(own[:, None])()[:, 0]])
    else:
        positive = in_degree[in_degree > 0]
        lowest, highest = (positive.min(), positive.max()) if positive.numel() else (torch.inf, -torch.inf)
        found = reductions.highest(weight.new_tensor([-float(lowest), float(highest)]))
        skew = float(found[1].sqrt() / (-found[0]).sqrt()) if bool(found.isfinite().all()) else 1.0
    entries = normalized(edge_index, weight, in_degree, out_degree, kind)
    border, local = (source >= n).nonzero()[:, 0], (source < n).nonzero()[:, 0]
    rows, columns = target[border], source[border] - n
    patterns = Pattern.sort(rows, columns, n, h), Pattern.sort(columns, rows, h, n)
    own_edges = edge_index[:, local]
    undirected = _is_symmetric(own_edges, weight[local], patterns[1], weight[border], nodes, halo)
    inner = Velocity.build(own_edges, entries[local], weight[local], n, kind, dtype, skew, undirected)
    return ShardedVelocity(
        edge_index, entries, n, kind, dtype, undirected, skew, patterns,
        inner=inner, border=border, halo=halo, all_edges=num_edges,
    )  # fmt: skip


def _is_symmetric(
    own_edges: Tensor, own_weight: Tensor, pattern: Pattern, weight: Tensor, nodes: Tensor, halo: Halo
) -> bool:
    """Is the adjacency of the whole graph symmetric? Each rank shows its border to those on the other side.

    ``pattern`` and ``weight`` are those of V_lhᵀ, whose rows, the halo, are ordered by rank.
    """
    reductions = halo.reductions
    local = Velocity.build(own_edges, own_weight, own_weight, nodes.numel(), "row", own_weight.dtype, 1.0)
    there, here, weight = halo.halo[pattern.rows], nodes[pattern.columns.long()], pattern.merge(weight)
    # Entries of V_lhᵀ in the rows of each rank.
    starts = torch.tensor([0, *halo.receive_counts], device=nodes.device).cumsum(0)
    counts = pattern.pointers.long()[starts].diff()
    ends, _ = send_around(torch.stack([there, here], dim=1), counts, reductions)
    weights, _ = send_around(weight, counts, reductions)
    agrees = local.undirected and ends.size(0) == there.numel()
    if agrees:
        mine, theirs = there * reductions.num_nodes + here, ends[:, 1] * reductions.num_nodes + ends[:, 0]
        (mine, order), (theirs, other) = mine.sort(), theirs.sort()
        agrees = torch.equal(mine, theirs) and torch.allclose(weight[order], weights[other], rtol=1e-12, atol=0.0)
    return not bool(reductions.highest(weight.new_tensor(0.0 if agrees else 1.0)))
