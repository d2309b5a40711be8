"""Graphs, partitions and models, made alike by the single process that is the reference and by every rank."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from advdiff.nn import AdvDIFFormer

#: More nodes than a single process would solve by a dense matrix, so that both sides do the same.
NODES = 150
CHANNELS, HIDDEN, CLASSES = 5, 6, 3


@dataclass(frozen=True)
class Case:
    """One model on one graph in one partition."""

    graph: str
    partition: str
    solver: str
    normalization: str
    batch_norm: bool
    #: Messages between processes take long, so each graph and solver has one normalisation on 3, the other on 2 and 4.
    parts: tuple[int, ...]
    diffusion: bool = True

    @property
    def name(self) -> str:
        words = [self.graph, self.partition, self.solver, self.normalization]
        return "-".join([*words, *["norm"] * self.batch_norm, *["advection"] * (not self.diffusion)])

    @property
    def folder(self) -> str:
        return f"{self.graph}-{self.partition}"

    def model(self) -> AdvDIFFormer:
        torch.manual_seed(1)
        return AdvDIFFormer(
            CHANNELS,
            HIDDEN,
            CLASSES,
            solver=self.solver,
            heads=2,
            num_layers=2,
            order=2,
            time=0.5,
            batch_norm=self.batch_norm,
            residual=True,
            normalization=self.normalization,
            edge_dim=2 if self.graph == "edge features" else None,
            diffusion=self.diffusion,
        ).double()


#: graph → the partition that tries it.
PARTITIONS = {
    "undirected": "metis",
    "directed": "random",
    "weighted": "metis",
    "weighted directed": "range",
    "loops and duplicates": "random",
    "isolated": "range",
    "a part without edges": "edgeless",
    "a part of one node": "lonely",
    "no edge between parts": "components",
    "no edges": "range",
    "edge features": "random",
}
#: On how many processes every method of the library is tried, beside the three solvers of the model on all.
METHODS_ON = {"undirected": (4,), "directed": (2,)}
CASES = [
    Case(
        graph,
        partition,
        solver,
        normalization,
        batch_norm=(number + which) % 2 == 0,
        parts=(3,) if (number + (normalization == "row")) % 2 else (2, 4),
    )
    for number, (graph, partition) in enumerate(PARTITIONS.items())
    for which, solver in enumerate(("series", "inverse", "exponential"))
    for normalization in ("symmetric", "row")
] + [
    Case("directed", "random", solver, "symmetric", batch_norm=False, parts=(2, 3, 4), diffusion=False)
    for solver in ("series", "inverse", "exponential")
]


def graph(name: str, parts: int) -> Data:
    """The graph, which for some names depends on the partition that it is to be tried with."""
    drawn = torch.Generator().manual_seed(sum(map(ord, name)))
    edges = torch.randint(NODES, (2, 500), generator=drawn)
    edges = edges[:, edges[0] != edges[1]]
    weight = None
    if name == "no edge between parts":
        owner = assignment("components", parts)
        assert isinstance(owner, Tensor)
        edges = edges[:, owner[edges[0]] == owner[edges[1]]]
    if name == "a part without edges":
        edges = edges[:, (edges < NODES - 20).all(0)]
    if name == "isolated":
        edges = edges[:, (edges % 7 != 0).all(0)]
    if name == "loops and duplicates":
        edges = torch.cat([edges, edges[:, :50], torch.arange(20).expand(2, -1)], dim=1)
    if name == "no edges":
        edges = edges[:, :0]
    if name in ("undirected", "weighted", "isolated", "a part of one node", "no edge between parts"):
        edges = torch.cat([edges, edges.flip(0)], dim=1)
    if "weighted" in name:
        half = edges.size(1) // 2
        weight = torch.rand(edges.size(1), generator=drawn, dtype=torch.float64) + 0.1
        if name == "weighted":
            weight[half:] = weight[:half]
    x = torch.randn(NODES, CHANNELS, generator=drawn, dtype=torch.float64)
    data = Data(x=x, edge_index=edges, num_nodes=NODES)
    if weight is not None:
        data.edge_weight = weight
    if name == "edge features":
        data.edge_attr = torch.randn(edges.size(1), 2, generator=drawn, dtype=torch.float64)
    return data


def assignment(name: str, parts: int) -> str | Tensor:
    """The argument ``method`` of ``partition``."""
    node = torch.arange(NODES)
    if name == "random":
        return torch.randint(parts, (NODES,), generator=torch.Generator().manual_seed(parts))
    if name == "components":
        return node % parts
    if name == "edgeless":  # the last 20 nodes, which have no edges, are a part of their own
        return torch.where(node < NODES - 20, node % max(parts - 1, 1), parts - 1)
    if name == "lonely":
        return torch.where(node == 3, 0, 1 + node % max(parts - 1, 1))
    return name


def probe() -> Tensor:
    """The loss is ⟨probe, output⟩: its rows tell the nodes apart."""
    return torch.randn(NODES, CLASSES, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
