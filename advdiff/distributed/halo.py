"""The halo exchange: rows that a rank needs of others, and partial sums on their way back."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor

from advdiff.distributed.ranks import RankReductions


class Halo:
    """Who needs which rows of whom.

    Args:
        halo: [h] global numbers of the nodes whose rows this rank needs, ordered by the rank that has them.
        need: [P] how many it needs of each rank.
        nodes: [n] global numbers of this rank's own nodes, ascending.
        reductions: the ranks that hold the graph.
    """

    def __init__(self, halo: Tensor, need: Tensor, nodes: Tensor, reductions: RankReductions) -> None:
        self.halo, self.reductions = halo, reductions
        asked, wanted = send_around(halo, need, reductions)
        #: [s] this rank's numbers of the rows that others need, rank after rank.
        self.send_index = torch.searchsorted(nodes, asked)
        self.receive_counts, self.send_counts = need.tolist(), wanted
        known = bool((nodes[self.send_index.clamp(max=nodes.numel() - 1)] == asked).all())
        trouble = reductions.highest(torch.tensor([0.0 if known else 1.0, float(halo.numel())], device=halo.device))
        if trouble[0]:
            raise ValueError("the files of this partition do not fit together; make it anew with advdiff shard.")
        #: Is there any edge between two ranks? All ranks know.
        self.is_empty = not bool(trouble[1])

    def start(self, Z: Tensor) -> Callable[[], Tensor]:
        """Send this rank's rows of Z [n, F] to those that need them; the function waits for the halo [h, F]."""
        return self._start(Z.index_select(0, self.send_index), self.send_counts, self.receive_counts)

    def start_back(self, Y: Tensor) -> Callable[[], Tensor]:
        """Send what belongs to rows of the halo, Y [h, F], home; the function waits for [s, F], see ``send_index``."""
        return self._start(Y.contiguous(), self.receive_counts, self.send_counts)

    def _start(self, rows: Tensor, give: list[int], take: list[int]) -> Callable[[], Tensor]:
        received = rows.new_empty(sum(take), *rows.shape[1:])
        work = dist.all_to_all_single(received, rows, take, give, group=self.reductions.group, async_op=True)
        traffic = self.reductions.traffic
        traffic.exchanges += 1
        traffic.rows += rows.size(0)
        traffic.exchanged += rows.numel() * rows.element_size()

        def finish() -> Tensor:
            began = time.perf_counter()
            work.wait()
            traffic.seconds += time.perf_counter() - began
            del rows_kept[:]
            return received

        rows_kept = [rows]  # until they are sent
        return finish


def send_around(values: Tensor, counts: Tensor, reductions: RankReductions) -> tuple[Tensor, list[int]]:
    """Send the first ``counts[0]`` values to rank 0, and so on; what arrives, and how much of it from whom."""
    arriving = torch.empty_like(counts)
    dist.all_to_all_single(arriving, counts.contiguous(), group=reductions.group)
    take = arriving.tolist()
    received = values.new_empty(sum(take), *values.shape[1:])
    dist.all_to_all_single(received, values.contiguous(), take, counts.tolist(), group=reductions.group)
    return received, take
