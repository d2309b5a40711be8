"""The graphs and models that are timed: d = 64, average degree 14, one layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from advdiff.nn import AdvDIFFormer

CHANNELS = 64
DEGREE = 14


class Graph(NamedTuple):
    x: Tensor
    edge_index: Tensor
    batch: Tensor | None = None


def random_graph(nodes: int, degree: int = DEGREE, seed: int = 0) -> Graph:
    """An undirected random graph; random neighbours are the worst case for the cache."""
    generator = torch.Generator().manual_seed(seed)
    half = torch.randint(0, nodes, (2, nodes * degree // 2), generator=generator)
    return Graph(torch.randn(nodes, CHANNELS, generator=generator), torch.cat([half, half.flip(0)], dim=1))


def molecules(graphs: int = 256, atoms: int = 20, seed: int = 0) -> Graph:
    """A batch of small trees with a few rings, 10 to 30 atoms each."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.randint(atoms // 2, atoms + atoms // 2 + 1, (graphs,), generator=generator)
    batch = torch.repeat_interleave(torch.arange(graphs), sizes)
    first = (sizes.cumsum(0) - sizes)[batch]
    node = torch.arange(batch.numel())
    # Each atom but the first of its molecule hangs on an earlier one; a tenth close a ring.
    parent = first + ((node - first) * torch.rand(node.numel(), generator=generator)).long()
    bonds = torch.stack([parent, node])[:, node > first]
    ring = torch.rand(node.numel(), generator=generator) < 0.1
    other = first + ((node - first) * torch.rand(node.numel(), generator=generator)).long()
    bonds = torch.cat([bonds, torch.stack([other, node])[:, ring & (other != node)]], dim=1)
    x = torch.randn(batch.numel(), CHANNELS, generator=generator)
    return Graph(x, torch.cat([bonds, bonds.flip(0)], dim=1), batch)


def model(solver: str, heads: int, order: int = 4) -> AdvDIFFormer:
    """One layer, β = 0.5, θ = 1, T = 1."""
    torch.manual_seed(0)
    return AdvDIFFormer(CHANNELS, CHANNELS, 8, solver=solver, heads=heads, order=order)


def loss_of(module: nn.Module, output: Tensor) -> None:
    """Backward of a mean square; gradients end up in the module."""
    module.zero_grad()
    output.square().mean().backward()


def training_step(module: AdvDIFFormer, graph: Graph) -> Callable[[], None]:
    """Forward and backward of the whole model."""
    return lambda: loss_of(module, module(graph.x, graph.edge_index, batch=graph.batch))
