"""Worlds in which the right β is known: block signals, and labels that are functions of the graph. Chapter 6a."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from advdiff.checks import check_choice
from advdiff.datasets.causal.block_model import Environment, Randomness, environments, sample_graph
from advdiff.operators import Generator, Velocity, normalize_adjacency
from advdiff.propagation import powers
from advdiff.theory.advection_law import Response
from advdiff.theory.spectral_measure import SpectralMeasure, atom, edge_noise, mixture, of_block_signal, spiked

SHARES = (0.25, 0.5, 0.75, 1.0)
POWERS = (1, 2, 3)
CASES = tuple((share, power) for share in SHARES for power in POWERS)
SIGNALS = ("block", "noisy")
CEILING = 0.2  # the largest probability of an edge in the study
CHANNELS = 4  # as many as block signals of mean zero on five blocks


def response(share: float, power: int) -> Response:
    """f(λ) = (1 − w) + wλᵏ: a label of which the share w has been averaged k times over neighbours.

    Example:
        >>> from advdiff.experiments.advection_world import response
        >>> response(0.5, 2)(torch.tensor(0.5))
        tensor(0.6250)
    """
    return lambda s: (1 - share) + share * s**power


@dataclass(frozen=True, eq=False)
class World:
    """Two graphs on the same nodes, features X [N, 4], and the channel w [4] that makes the labels f(V)Xw.

    Attributes:
        pair: environments of the training and the test graph.
        velocities: V and V'.
        X: block signals of mean zero, plus independent noise of the same variance in a ``"noisy"`` world.
        w: the direction of the label among the channels.
        values: [5], the block signal in the label.
        block_share: the part of ‖Xw‖² that is block signal.
    """

    pair: tuple[Environment, Environment]
    velocities: tuple[Velocity, Velocity]
    X: Tensor
    w: Tensor
    values: Tensor
    block_share: float

    @classmethod
    def draw(cls, shift: str, signal: str, seed: int, num_nodes: int = 1000, *, density: float = 1.0) -> World:
        """A world of a shift; every seed has its own nodes, edges and signals.

        ``density`` (at most 5) multiplies all probabilities of edges. No eigenvalue of the limit changes, so a small
        graph can have the degrees, and with them the noise, of a larger one.
        """
        check_choice("signal", signal, SIGNALS)
        if not 0 < density <= 1 / CEILING:
            raise ValueError(f"density is {density:g}; it must be positive and at most {1 / CEILING:g}.")
        dice = torch.Generator().manual_seed(seed)
        every = environments(shift)
        low, high = (replace(e, p_within=density * e.p_within, p_between=density * e.p_between) for e in every[::11])
        pair, ceiling = (low, high), density * CEILING
        first = Randomness.draw(num_nodes, dice, ceiling=ceiling)
        second = Randomness.draw(num_nodes, dice, latent=first.latent, ceiling=ceiling)
        V, V_new = (
            normalize_adjacency(sample_graph(environment, randomness), num_nodes, dtype=torch.float64)
            for environment, randomness in zip(pair, (first, second), strict=True)
        )
        raw = torch.randn(pair[0].blocks, CHANNELS, generator=dice, dtype=torch.float64)
        B = torch.linalg.qr(raw - raw.mean(0)).Q * math.sqrt(pair[0].blocks)  # columns of mean square 1
        X = B[pair[0].block(first.latent)]
        noise = torch.randn(X.shape, generator=dice, dtype=torch.float64)
        if signal == "noisy":
            X = X + noise
        w = torch.nn.functional.normalize(torch.randn(CHANNELS, generator=dice, dtype=torch.float64), dim=0)
        return cls(pair, (V, V_new), X - X.mean(0), w, B @ w, 1.0 if signal == "block" else 0.5)

    def measures(self, num_nodes: int | None = None) -> tuple[SpectralMeasure, SpectralMeasure]:
        """Of the label's signal under both graphs, from the environments alone: the limit, or with edge noise."""
        found = []
        for environment in self.pair:
            block = of_block_signal(self.values, environment, num_nodes)
            rest = atom(0.0) if num_nodes is None else spiked(0.0, edge_noise(environment, num_nodes))
            found.append(mixture([(self.block_share, block), (1 - self.block_share, rest)]))
        return found[0], found[1]

    def labels(self, cases: Sequence[tuple[float, int]]) -> tuple[Tensor, Tensor]:
        """f(V)Xw on both graphs, one column for each case (w, k)."""
        found = []
        for V in self.velocities:
            state = powers(Generator(None, V, 1.0).propagator, self.X @ self.w, max(k for _, k in cases))
            found.append(torch.stack([(1 - w) * state[0] + w * state[k] for w, k in cases], dim=1))
        return found[0], found[1]
