r"""The paper's synthetic study (Appendix E.1.1): twelve graphs whose environment drifts away from the first.

The causal model, with everything but the environment held fixed: node u has a latent U_u; its features are
x_u = g(U_u); the graph is drawn by :mod:`advdiff.datasets.block_model`; its labels are Y = gcn(U, A) + difformer(U),
with random networks g, gcn and difformer. Graph #1 is for training, #2 for validation, #3 to #12 for tests.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from advdiff.checks import check_choice
from advdiff.datasets import block_model
from advdiff.datasets.base import Dataset

LABELS = ("per_graph", "shared")
EDGES = ("independent", "common")
FEATURES = 4  # the paper's; it does not give the width of its random networks
WIDTH = 16


def load(
    shift: str = "homophily",
    labels: str = "per_graph",
    edges: str = "independent",
    seed: int = 0,
    num_nodes: int = 1000,
) -> Dataset:
    """The synthetic data of a shift.

    The nodes, with their latents and features, are the same in all graphs, and so are the networks; all are drawn anew
    for another seed. Graph #1 depends on nothing but the seed and N. Labels are scaled so that those of graph #1 have mean 0 and variance 1: an MSE of 1 is what the
    best constant achieves there.

    Args:
        shift: ``"homophily"``, ``"density"``, ``"block"``, or ``"none"``: the control whose graphs are all drawn
            from the environment of graph #1.
        labels: ``"per_graph"``, computed on every graph (the paper's text), or ``"shared"``, those of graph #1 for all
            (the authors' released code).
        edges: ``"independent"``, drawn anew for every graph, or ``"common"``: from the same random numbers, so that
            graphs differ only where their environments do (chapter 4).
        seed: of everything random.
        num_nodes: N, in the paper 1,000.
    """
    check_choice("labels", labels, LABELS)
    check_choice("edges", edges, EDGES)
    environments = block_model.environments(shift)
    if num_nodes < 2:
        raise ValueError(f"num_nodes is {num_nodes}; labels with a variance need at least 2 nodes.")
    if seed < 0:
        raise ValueError(f"seed is {seed}; it must not be negative.")
    # Streams of their own, so that nodes, networks and graph #1 of a seed do not depend on shift, labels or edges.
    latent = torch.rand(num_nodes, dtype=torch.float64, generator=_generator(seed, 0))
    world = _World(seed)
    x = _standardised(world.features(latent)).float()
    # One ceiling for all shifts: then they share graph #1 as well.
    ceiling = max(max(e.p_within, e.p_between) for name in block_model.SHIFTS for e in block_model.environments(name))
    graphs: dict[str, list[Data]] = {}
    for number, environment in enumerate(environments, start=1):
        stream = 1 if edges == "common" else number
        dice = block_model.Randomness.draw(num_nodes, _generator(seed, stream), latent=latent, ceiling=ceiling)
        edge_index = block_model.sample_graph(environment, dice)
        if number == 1:
            y = world.fit(latent, edge_index)
        elif labels == "per_graph":
            y = world.labels(latent, edge_index)
        block = environment.block(latent)
        graphs[f"#{number}"] = [Data(x=x, edge_index=edge_index, y=y.float(), latent=latent, block=block)]
    names = tuple(graphs)
    options: dict[str, object] = {
        "shift": shift, "labels": labels, "edges": edges, "seed": seed, "num_nodes": num_nodes,
    }  # fmt: skip
    return Dataset("synthetic", options, "node", "mse", FEATURES, 1, graphs, names[:1], names[1:2], names[2:])


def _generator(seed: int, stream: int) -> torch.Generator:
    state = np.random.SeedSequence([seed, stream]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state) % 2**63)


def _standardised(X: Tensor) -> Tensor:
    """Columns of mean 0 and variance 1; a constant column becomes 0."""
    centred = X - X.mean(0)
    deviation = centred.square().mean(0).sqrt()
    return centred / torch.where(deviation > 1e-12, deviation, 1.0)


class _World:
    """The random functions of the causal model. They are drawn once and then never change: only graphs do."""

    def __init__(self, seed: int) -> None:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(np.random.SeedSequence([seed, 10**6]).generate_state(1)[0]))
            self.feature_net = nn.Sequential(nn.Linear(1, WIDTH), nn.ReLU(), nn.Linear(WIDTH, FEATURES)).double()
            self.gcn = nn.ModuleList([GCNConv(1, WIDTH), GCNConv(WIDTH, 1)]).double()
            self.enter, self.leave = nn.Linear(1, WIDTH).double(), nn.Linear(WIDTH, 1).double()
            self.query, self.key = (nn.Linear(WIDTH, WIDTH).double() for _ in range(2))
        self.scales: list[tuple[Tensor, Tensor]] = []

    @torch.no_grad()
    def features(self, latent: Tensor) -> Tensor:
        """g(U), a two-layer MLP."""
        features: Tensor = self.feature_net(latent[:, None])
        return features

    def _parts(self, latent: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        """gcn(U, A), two layers, and difformer(U), one layer of attention without the graph."""
        # U in units of its own standard deviation, so that biases and slopes of the first layers weigh alike.
        u = (latent[:, None] - 0.5) * np.sqrt(12.0)
        local = self.gcn[1](self.gcn[0](u, edge_index).relu(), edge_index)
        z = self.enter(u).relu()
        q, k = (nn.functional.normalize(net(z), dim=-1) for net in (self.query, self.key))
        # DIFFormer's simple attention, c_uv ∝ 1 + q̂_u·k̂_v, and its step of ½ from the node's own state.
        attended = (z.sum(0) + q @ (k.T @ z)) / (len(z) + q @ k.sum(0)[:, None])
        return local, self.leave(0.5 * z + 0.5 * attended)

    @torch.no_grad()
    def fit(self, latent: Tensor, edge_index: Tensor) -> Tensor:
        """Labels of graph #1. Fixes the scales: both parts, and their sum, get mean 0 and variance 1 there.

        The paper adds the two networks as they are drawn, with scales that it does not give; left to chance, one of
        them drowns the other for many seeds.
        """
        parts = self._parts(latent, edge_index)
        total = _standardised(parts[0]) + _standardised(parts[1])
        self.scales = [(part.mean(0), part.std(0, correction=0).clamp(min=1e-12)) for part in (*parts, total)]
        return _standardised(total)

    @torch.no_grad()
    def labels(self, latent: Tensor, edge_index: Tensor) -> Tensor:
        """Labels of another graph, by the same function."""
        first, second = self._parts(latent, edge_index)
        (m1, s1), (m2, s2), (m, s) = self.scales
        return ((first - m1) / s1 + (second - m2) / s2 - m) / s
