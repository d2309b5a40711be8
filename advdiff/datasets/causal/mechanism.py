"""Features and labels of the causal model: random networks that are drawn once and then never change."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from advdiff.datasets.causal.block_model import Environment, Randomness, sample_graph

Gather = Callable[[Tensor], Tensor]  # H ↦ averages of H over neighbours


@dataclass(frozen=True)
class Mechanism:
    r"""Features and labels of the causal model, with the random networks of the paper's Appendix E.1.1.

    X = g(U) is an MLP with one hidden layer and 4 outputs; Y = gcn(U, A) + difformer(U). The paper leaves widths,
    weights and scales open. Here weights and biases are standard normal (weights over √fan-in), ``hidden`` units are
    used everywhere, U enters as √12 (U − ½), and each part of Y, as well as each column of X, is scaled to mean 0 and
    standard deviation 1 on one graph of the training environment: left to chance, one part drowns the other. Then
    Y = w · gcn + (1 − w) · difformer, scaled likewise, with w = ``graph_share``.
    """

    layers: dict[str, tuple[Tensor, Tensor]]
    scales: dict[str, tuple[Tensor, Tensor]]
    graph_share: float

    @classmethod
    def draw(
        cls,
        generator: torch.Generator,
        train: Environment,
        num_nodes: int,
        *,
        hidden: int = 8,
        graph_share: float = 0.5,
    ) -> Mechanism:
        """Draw the networks, then one graph of ``train`` that sets the scales."""
        if not 0.0 <= graph_share <= 1.0:
            raise ValueError(f"graph_share is {graph_share:g}; a share lies between 0 and 1.")
        if num_nodes < 2 or hidden < 1:
            raise ValueError(f"num_nodes is {num_nodes} and hidden {hidden}; at least 2 nodes and 1 unit are needed.")
        sizes = {"x1": (1, hidden), "x2": (hidden, 4), "g1": (1, hidden), "g2": (hidden, 1), "d1": (1, hidden)}
        sizes |= {"query": (hidden, hidden), "key": (hidden, hidden), "d2": (hidden, 1)}
        layers = {}
        for name, (fan_in, fan_out) in sizes.items():
            weight, bias = torch.randn(fan_in + 1, fan_out, generator=generator, dtype=torch.float64).split([fan_in, 1])
            layers[name] = (weight / math.sqrt(fan_in), bias[0])
        ceiling = max(train.p_within, train.p_between, 1e-9)
        dice = Randomness.draw(num_nodes, generator, ceiling=ceiling)
        edges = sample_graph(train, dice)
        unit = (torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64))
        scales = dict.fromkeys(("features", "graph", "latent", "label"), unit)
        draft = cls(layers, scales, graph_share)  # its entries are filled one after the other
        for name in ("features", "graph", "latent", "label"):
            part = draft._part(name, dice.latent, lambda H: _gather(H, edges))
            scales[name] = (part.mean(0), part.std(0).clamp(min=1e-12))
        return draft

    def features(self, latent: Tensor) -> Tensor:
        """X = g(U), [N, 4]: a function of the node's own latent."""
        return self._scaled("features", latent, None)

    def labels(self, latent: Tensor, edge_index: Tensor) -> Tensor:
        """Y = r(U, A), [N]: a function of all latents and of the graph."""
        if edge_index is None:
            raise ValueError("the labels need the graph; pass its edge_index.")
        return self._scaled("label", latent, lambda H: _gather(H, edge_index)).squeeze(1)

    def limit_labels(self, latent: Tensor, environment: Environment) -> Tensor:
        """The labels [N] to which those of ever larger graphs of the environment tend: every average is an expectation.

        GCN's propagation becomes :func:`average_over_blocks`.
        """
        if environment.edge_probability == 0.0:
            raise ValueError(f"{environment} has no edges; give it a positive edge probability.")
        return self._scaled("label", latent, lambda H: average_over_blocks(H, latent, environment)).squeeze(1)

    def _linear(self, name: str, H: Tensor) -> Tensor:
        weight, bias = self.layers[name]
        return H @ weight + bias

    def _scaled(self, name: str, latent: Tensor, gather: Gather | None) -> Tensor:
        mean, deviation = self.scales[name]
        return (self._part(name, latent, gather) - mean) / deviation

    def _part(self, name: str, latent: Tensor, gather: Gather | None) -> Tensor:
        H = math.sqrt(12) * (latent.double() - 0.5).unsqueeze(1)
        if name == "features":
            return self._linear("x2", torch.relu(self._linear("x1", H)))
        if name == "latent":  # DIFFormer, one layer without the graph: half the node, half what attention gathers
            H = torch.relu(self._linear("d1", H))
            q, k = (normalize(self._linear(name, H), dim=1) for name in ("query", "key"))
            gathered = (H.sum(0) + q @ (k.T @ H)) / (len(H) + q @ k.sum(0)).unsqueeze(1)  # c_uv ∝ 1 + q̂_u·k̂_v
            return self._linear("d2", (H + gathered) / 2)
        assert gather is not None  # the parts below average over neighbours
        if name == "graph":  # GCN, two layers
            H = torch.relu(gather(H @ self.layers["g1"][0]) + self.layers["g1"][1])
            return gather(H @ self.layers["g2"][0]) + self.layers["g2"][1]
        graph, alone = (self._scaled(part, latent, gather) for part in ("graph", "latent"))
        return self.graph_share * graph + (1 - self.graph_share) * alone


def average_over_blocks(H: Tensor, latent: Tensor, environment: Environment) -> Tensor:
    r"""The graphon W/q applied to a function of the nodes: H̄ + λ(H̄_b − H̄) with ``environment.eigenvalue`` λ, [N, d].

    The averages are those over the nodes that are there; an equal number of them in each block is exact.

    Example:
        >>> latent = torch.tensor([0.1, 0.4, 0.6, 0.9])
        >>> average_over_blocks(torch.tensor([[1.0], [3.0], [0.0], [0.0]]), latent, Environment(0.4, 0.0, 2)).T
        tensor([[2., 2., 0., 0.]])
    """
    block = environment.block(latent)
    size = torch.bincount(block, minlength=environment.blocks).clamp(min=1).to(H.dtype).unsqueeze(1)
    within = H.new_zeros(environment.blocks, H.size(1)).index_add_(0, block, H) / size
    mean = H.mean(0)
    return mean + environment.eigenvalue * (within[block] - mean)


def _gather(H: Tensor, edge_index: Tensor) -> Tensor:
    """D^{-1/2}(A + I)D^{-1/2} H, the degrees with the self-loop: GCN's propagation."""
    source, target = edge_index
    scale = (1 + torch.bincount(target, minlength=len(H))).to(H.dtype).rsqrt().unsqueeze(1)
    scaled = scale * H
    return scale * scaled.index_add(0, target, scaled[source])
