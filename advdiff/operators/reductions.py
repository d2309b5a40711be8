"""Sums and maxima over all nodes of a graph, of which this process may hold only some.

Whatever adds up over nodes, in the operators, the solvers and the layers, first adds up over the rows at hand and then
hands the partial result to one of these. Here the rows at hand are all of them and nothing remains to be done;
:mod:`advdiff.distributed` has the one that asks the other processes. It is carried by
:class:`~advdiff.operators.segments.Segments`, which every operator has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Reductions:
    """What remains to be done with a sum over this process's nodes: nothing, since they are all nodes.

    Example:
        >>> import torch
        >>> Reductions().norms(torch.tensor([3.0, 4.0]), torch.zeros(2))
        [5.0, 0.0]
    """

    #: Does this process hold every node?
    is_whole = True

    def count(self, num_nodes: int) -> int:
        """Nodes of the whole graph, where this process holds ``num_nodes``."""
        return num_nodes

    def add(self, partial: Tensor) -> Tensor:
        """The sum over all processes, the same on each of them; ``partial`` may be overwritten."""
        return partial

    def highest(self, partial: Tensor) -> Tensor:
        """The largest value of each entry over all processes."""
        return partial

    def norms(self, *tensors: Tensor, beside: Sequence[Tensor] = ()) -> list[float]:
        """Frobenius norms over all nodes; the host waits once, and once more for one that leaves the range.

        Squares of float32 numbers overflow from 1.8e19 on and lose digits below 1e-19. The largest values ``beside``
        them, each of this process's nodes, are read in the same look.
        """
        totals = self._over_all(torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors]))
        if beside:
            totals = torch.cat([totals, self.highest(torch.stack([*beside])).to(totals.dtype)])
        values = totals.tolist()
        least = 1e3 * torch.finfo(tensors[0].dtype).tiny ** 0.5
        sizes = [
            value if least < value < math.inf or math.isnan(value) else self._scaled_norm(tensor)
            for tensor, value in zip(tensors, values, strict=False)
        ]
        return [*sizes, *values[len(tensors) :]]

    def _over_all(self, norms: Tensor) -> Tensor:
        return norms if self.is_whole else self.add(norms.double().square()).sqrt()

    def _scaled_norm(self, tensor: Tensor) -> float:
        """‖x‖ = a ‖x/a‖ with a the largest entry."""
        entries = tensor.abs()
        largest = float(self.highest(entries.amax() if entries.numel() else entries.new_zeros(())))
        if largest == 0.0 or not math.isfinite(largest):
            return largest
        return largest * float(self._over_all(torch.linalg.vector_norm(tensor / largest)))


WHOLE = Reductions()
