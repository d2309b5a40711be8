"""A rank's part of a graph, and a model that is called with it."""

from __future__ import annotations

import os
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from advdiff.checks import check_edge_index, check_edge_weight
from advdiff.distributed import files
from advdiff.distributed.halo import Halo
from advdiff.distributed.ranks import RankReductions
from advdiff.distributed.velocity import ShardedVelocity, sharded_velocity
from advdiff.nn.conv import AdvDiffConv
from advdiff.nn.model import GraphModel
from advdiff.nn.part import standing_for_the_graph
from advdiff.operators.segments import Segments


class Shard:
    """The part of a graph that this rank holds.

    Loading is a collective operation, in which the ranks tell each other who needs which rows.

    Args:
        directory: of the files that ``partition`` wrote.
        group: the ranks, as many as parts; by default all.
        device: where the tensors go.

    Attributes:
        summary: what all ranks know of the graph.
        nodes: [n] the numbers of this rank's nodes in the whole graph, ascending.
        edge_index: [2, E_l] the edges that arrive at them, in this rank's numbers; sources from n on are the halo.
        x, y, train_mask, val_mask, test_mask: rows of this rank's nodes; None where the data have none.
        edge_weight, edge_attr: of this rank's edges; None where the data have none.
        segments: sums over the nodes of all ranks; its ``reductions.traffic`` counts what they cost.
    """

    x: Tensor | None
    y: Tensor | None
    train_mask: Tensor | None
    val_mask: Tensor | None
    test_mask: Tensor | None
    edge_weight: Tensor | None
    edge_attr: Tensor | None

    def __init__(
        self,
        directory: str | os.PathLike[str],
        group: dist.ProcessGroup | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        if not dist.is_initialized():
            raise ValueError("a shard needs its process group; call torch.distributed.init_process_group first.")
        self.summary = files.read_summary(directory)
        ranks, self.rank = dist.get_world_size(group), dist.get_rank(group)
        if ranks != self.summary.parts:
            raise ValueError(
                f"{directory} holds {self.summary.parts} parts but {ranks} processes were started; start "
                f"{self.summary.parts}, or make a partition for {ranks}."
            )
        found = files.read_part(directory, self.rank, self.summary)
        tensors = {name: value.to(device) for name, value in found.items() if isinstance(value, Tensor)}
        self.nodes, self.edge_index = tensors["nodes"], tensors["edge_index"]
        for name in (*files.OF_NODES, *files.OF_EDGES):
            setattr(self, name, tensors.get(name))
        check_edge_index(self.edge_index, self.nodes.numel() + tensors["halo"].numel())
        if self.edge_weight is not None:
            check_edge_weight(self.edge_weight, self.edge_index.size(1))
        self.reductions = RankReductions(self.summary.num_nodes, group)
        self.halo = Halo(tensors["halo"], tensors["need"], self.nodes, self.reductions)
        self.segments = Segments(self.num_nodes, None, self.nodes.device, reductions=self.reductions)
        self._velocities: dict[str, ShardedVelocity] = {}

    @property
    def num_nodes(self) -> int:
        """Number n of nodes of this rank."""
        return self.nodes.numel()

    def velocity(self, kind: str = "symmetric", self_loops: str = "none") -> ShardedVelocity:
        """V of the whole graph, with the rows of this rank."""
        if self_loops != "none":
            raise ValueError(f"a sharded velocity has self_loops='none', not {self_loops!r}; add loops to the edges.")
        if kind not in self._velocities:
            given = self.edge_weight
            weight = torch.ones(self.edge_index.size(1), device=self.nodes.device) if given is None else given.detach()
            dtype = torch.get_default_dtype() if given is None else given.dtype
            self._velocities[kind] = sharded_velocity(
                self.edge_index, weight.double(), self.nodes, self.halo, kind, dtype, self.summary.num_edges
            )
        return self._velocities[kind]

    def check(self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, batch: Tensor | None) -> None:
        """A model that is told to work on this part must be called with its tensors."""
        if edge_index is not self.edge_index or edge_weight is not self.edge_weight or num_nodes != self.num_nodes:
            raise ValueError("the model is called with other edges than those of the shard; use Sharded(model, shard).")
        if batch is not None:
            raise ValueError("a graph that is spread over processes is one graph; pass batch=None.")

    def __repr__(self) -> str:
        return (
            f"Shard(rank={self.rank}, parts={self.summary.parts}, nodes={self.num_nodes}, "
            f"edges={self.edge_index.size(1)}, halo={self.halo.halo.numel()})"
        )


class Sharded(nn.Module):
    """A model on a graph that is spread over ranks: ``Sharded(model, shard)(x)`` are the outputs for this rank's nodes.

    The model is the same, with the same weights, as on one process. Every call is a collective operation, and so is its
    backward pass.
    """

    def __init__(self, model: GraphModel, shard: Shard) -> None:
        super().__init__()
        others = {type(layer).__name__ for layer in model.layers if not isinstance(layer, AdvDiffConv)}
        if others or model.task != "node":
            raise ValueError(
                f"a model for shards predicts nodes and has layers of type AdvDiffConv, not task={model.task!r} with "
                f"{', '.join(sorted(others)) or 'AdvDiffConv'}; train it in one process."
            )
        self.model, self.shard = model, shard

    def forward(self, x: Tensor) -> Tensor:
        shard = self.shard
        with standing_for_the_graph(shard):
            out: Tensor = self.model(x, shard.edge_index, shard.edge_weight, shard.edge_attr)
        return out


def add_up_gradients(parameters: Iterable[nn.Parameter], reductions: RankReductions) -> None:
    """Replace each weight's gradient, of which every rank has a share, by the sum over ranks: one all-reduce."""
    given = [parameter for parameter in parameters if parameter.grad is not None]
    if not given:
        return
    flat = reductions.add(torch.cat([parameter.grad.flatten() for parameter in given]))  # type: ignore[union-attr]
    for parameter, grad in zip(given, flat.split([parameter.numel() for parameter in given]), strict=True):
        parameter.grad = grad.view_as(parameter)
