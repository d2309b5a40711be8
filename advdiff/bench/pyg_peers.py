"""A training step beside those of PyG's transformers with linear attention, at equal width and depth."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GPSConv
from torch_geometric.nn.models import Polynormer, SGFormer

from advdiff.bench import measure
from advdiff.bench.problems import CHANNELS, Graph, loss_of, model, random_graph, training_step
from advdiff.bench.rows import Row
from advdiff.nn import GraphModel

OUTPUTS = 8


class _Gps(nn.Module):
    """GPSConv with Performer attention and a GCN, called as a layer of ours."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GPSConv(CHANNELS, GCNConv(CHANNELS, CHANNELS), heads=1, attn_type="performer")

    def forward(self, z: Tensor, edge_index: Tensor, edge_weight: object, edge_attr: object, batch: Tensor) -> Tensor:
        out: Tensor = self.conv(z, edge_index, batch)
        return out


def peers() -> dict[str, nn.Module]:
    """One layer of each kind, one head, no dropout."""
    torch.manual_seed(0)
    sgformer = SGFormer(
        CHANNELS,
        CHANNELS,
        OUTPUTS,
        trans_num_layers=1,
        trans_num_heads=1,
        trans_dropout=0.0,
        gnn_num_layers=1,
        gnn_dropout=0.0,
    )
    polynormer = Polynormer(
        CHANNELS,
        CHANNELS,
        OUTPUTS,
        local_layers=1,
        global_layers=1,
        in_dropout=0.0,
        dropout=0.0,
        global_dropout=0.0,
        heads=1,
    )
    polynormer._global = True  # its second phase of training, with attention
    return {
        "PyG SGFormer": sgformer,
        "PyG Polynormer": polynormer,
        "PyG GPSConv, Performer": GraphModel(CHANNELS, CHANNELS, OUTPUTS, [_Gps()]),
    }


def step_of(peer: nn.Module, graph: Graph) -> measure.Step:
    """Forward and backward."""
    batch = torch.zeros(graph.x.size(0), dtype=torch.int64) if graph.batch is None else graph.batch
    if isinstance(peer, GraphModel):
        return lambda: loss_of(peer, peer(graph.x, graph.edge_index, batch=batch))
    return lambda: loss_of(peer, peer(graph.x, graph.edge_index, batch))


def against_pyg(nodes: int, budget: float, bars: dict[tuple[str, str], float]) -> Iterator[Row]:
    """All in turns in one process: each solver against each peer, and each solver's share of sparse products."""
    graph = random_graph(nodes)
    titles = {"series": "series, K = 2", "inverse": "inverse, low rank", "exponential": "exponential"}
    ours = {solver: training_step(model(solver, 1, order=2), graph) for solver in titles}
    theirs = {name: step_of(peer, graph) for name, peer in peers().items()}
    best = measure.side_by_side({**ours, **theirs}, budget, least=1)
    for solver, title in titles.items():
        for name in theirs:
            yield Row(
                title, name, nodes, 1, 1e3 * best[solver], 1e3 * best[name], best[name] / best[solver],
                bar=bars.get((solver, name)),
            )  # fmt: skip
    for name, step in {**{titles[solver]: step for solver, step in ours.items()}, **theirs}.items():
        share, peak = measure.share_of_sparse(step), measure.peak_bytes(step)
        yield Row(f"{name}, step", "its sparse products", nodes, 1, figure=100 * share, unit="%")
        if peak is not None:
            yield Row(f"{name}, step", "peak memory per node", nodes, 1, figure=peak / nodes / 1024, unit="kB")
