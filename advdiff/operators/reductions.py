"""Sums and maxima over all nodes of a graph, of which this process may hold only some.

Whatever adds up over nodes, in the operators, the solvers and the layers, first adds up over the rows at hand and then
hands the partial result to one of these. Here the rows at hand are all of them and nothing remains to be done;
:mod:`advdiff.distributed` has the one that asks the other processes. It is carried by
:class:`~advdiff.operators.segments.Segments`, which every operator has.
"""

from __future__ import annotations

import torch
from torch import Tensor


class Reductions:
    """What remains to be done with a sum over this process's nodes: nothing, since they are all nodes.

    Example:
        >>> import torch
        >>> Reductions().norms(torch.tensor([3.0, 4.0]), torch.zeros(2))
        tensor([5., 0.])
    """

    #: Does this process hold every node?
    is_whole = True

    def covers_as(self, other: Reductions) -> bool:
        """Do both add up over the same processes?"""
        return self is other or (self.is_whole and other.is_whole)

    def count(self, num_nodes: int) -> int:
        """Nodes of the whole graph, where this process holds ``num_nodes``."""
        return num_nodes

    def add(self, partial: Tensor) -> Tensor:
        """The sum over all processes, the same on each of them; ``partial`` may be overwritten."""
        return partial

    def highest(self, partial: Tensor) -> Tensor:
        """The largest value of each entry over all processes."""
        return partial

    def norms(self, *tensors: Tensor) -> Tensor:
        """Frobenius norms over all nodes, in one reduction."""
        local = torch.stack([torch.linalg.vector_norm(tensor) for tensor in tensors])
        return local if self.is_whole else self.add(local.double().square()).sqrt().to(local.dtype)


WHOLE = Reductions()
