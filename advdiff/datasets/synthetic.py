r"""The paper's synthetic study (Appendix E.1.1): twelve graphs whose environment drifts away from the first.

The causal model, with everything but the environment held fixed: node u has a latent U_u; its features are
x_u = g(U_u); the graph is drawn by :mod:`advdiff.datasets.causal.block_model`; its labels are
Y = gcn(U, A) + difformer(U), with random networks g, gcn and difformer.
Graph #1 is for training, #2 for validation, #3 to #12 for tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from advdiff.checks import check_choice
from advdiff.datasets.base import Dataset
from advdiff.datasets.causal import block_model
from advdiff.datasets.causal.mechanism import Mechanism

if TYPE_CHECKING:
    from torch_geometric.data import Data

METRIC = "mse"
LABELS = ("per_graph", "shared")
EDGES = ("independent", "common")
NETWORKS = 10**6  # number of the random stream of the networks; those of the edges are 1 to 12, of the latents 0


def load(
    shift: str = "homophily",
    labels: str = "per_graph",
    edges: str = "independent",
    seed: int = 0,
    num_nodes: int = 1000,
    graph_share: float = 0.5,
) -> Dataset:
    """The synthetic data of a shift.

    The nodes, with their latents and features, are the same in all graphs, and so are the networks; all are drawn anew
    for another seed.

    Args:
        shift: ``"homophily"``, ``"density"``, ``"block"``, or ``"none"``: the control whose graphs are all drawn
            from the environment of graph #1.
        labels: ``"per_graph"``, computed on every graph (the paper's text), or ``"shared"``, those of graph #1 for all
            (the authors' released code).
        edges: ``"independent"``, drawn anew for every graph, or ``"common"``: from the same random numbers, so that
            graphs differ only where their environments do (chapter 4).
        seed: of everything random.
        num_nodes: N, in the paper 1,000.
        graph_share: weight of gcn(U, A) in the labels, between 0 (they do not know the graph) and 1.

    Example:
        >>> from advdiff.datasets import load
        >>> data = load("synthetic", shift="homophily", labels="shared", num_nodes=100)
        >>> first, last = data.graphs("#1")[0], data.graphs("#12")[0]
        >>> bool((first.y == last.y).all()), first.num_edges < last.num_edges
        (True, True)
    """
    from torch_geometric.data import Data

    check_choice("labels", labels, LABELS)
    check_choice("edges", edges, EDGES)
    environments = block_model.environments(shift)
    latent, mechanism = world(seed, num_nodes, graph_share)
    x = mechanism.features(latent).float()
    # One ceiling for all shifts: then they share graph #1 as well.
    ceiling = max(max(e.p_within, e.p_between) for name in block_model.SHIFTS for e in block_model.environments(name))
    graphs: dict[str, list[Data]] = {}
    for number, environment in enumerate(environments, start=1):
        stream = 1 if edges == "common" else number
        dice = block_model.Randomness.draw(num_nodes, _generator(seed, stream), latent=latent, ceiling=ceiling)
        edge_index = block_model.sample_graph(environment, dice)
        if number == 1 or labels == "per_graph":
            y = mechanism.labels(latent, edge_index).float().unsqueeze(1)
        graphs[f"#{number}"] = [Data(x=x, edge_index=edge_index, y=y, latent=latent, block=environment.block(latent))]
    names = tuple(graphs)
    options: dict[str, object] = {
        "shift": shift, "labels": labels, "edges": edges, "seed": seed, "num_nodes": num_nodes,
        "graph_share": graph_share,
    }  # fmt: skip
    return Dataset("synthetic", options, "node", METRIC, x.size(1), 1, graphs, names[:1], names[1:2], names[2:])


def world(seed: int = 0, num_nodes: int = 1000, graph_share: float = 0.5) -> tuple[Tensor, Mechanism]:
    """What the graphs of a seed share: the latents [N], and the networks that make features and labels of them.

    With both, everything about the data is known: ``mechanism.labels(latent, edge_index)`` are the labels that a graph
    on these nodes would have, whatever its edges.

    Example:
        >>> from advdiff.datasets.synthetic import load, world
        >>> latent, mechanism = world(seed=0, num_nodes=100)
        >>> graph = load(seed=0, num_nodes=100).graphs("#3")[0]
        >>> bool(torch.allclose(mechanism.labels(latent, graph.edge_index).to(graph.y.dtype), graph.y[:, 0], atol=1e-5))
        True
    """
    if num_nodes < 2:
        raise ValueError(f"num_nodes is {num_nodes}; labels with a variance need at least 2 nodes.")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must not be negative.")
    # Streams of their own, so that nodes, networks and graph #1 of a seed do not depend on shift, labels or edges.
    latent = torch.rand(num_nodes, dtype=torch.float64, generator=_generator(seed, 0))
    train = block_model.environments(block_model.CONTROL)[0]
    return latent, Mechanism.draw(_generator(seed, NETWORKS), train, num_nodes, graph_share=graph_share)


def _generator(seed: int, stream: int) -> torch.Generator:
    state = np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state) % 2**63)
