"""The critical value of θ."""

from __future__ import annotations

import pytest
import torch

import advdiff
from advdiff.datasets.examples import karate_club
from advdiff.theory.critical import critical_theta


@pytest.mark.parametrize("kind", ["row", "symmetric"])
@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_it_is_the_largest_theta_at_which_the_matrix_is_singular(kind, beta):
    club = karate_club()
    edge_index, nodes = club.edge_index, club.num_nodes
    V = advdiff.normalize_adjacency(edge_index, nodes, torch.ones(edge_index.size(1)).double(), kind=kind).to_dense()
    P = torch.full_like(V, 1 / nodes) + beta * V
    largest = torch.linalg.eigvals(P).real.max()
    assert critical_theta(edge_index, nodes, beta, kind, steps=400) == pytest.approx(float(largest) - 1, abs=1e-8)


def test_isolated_nodes_bring_it_down_and_a_negative_weight_is_refused():
    pair = torch.tensor([[0, 1], [1, 0]])
    assert critical_theta(pair, 2, 0.5) == pytest.approx(0.5)
    # With the share s of joined nodes θ* + 1 solves λ² − (1 + β)λ + β(1 − s) = 0.
    s, beta = 2 / 20, 0.5
    expected = (1 + beta + ((1 + beta) ** 2 - 4 * beta * (1 - s)) ** 0.5) / 2 - 1
    assert critical_theta(pair, 20, beta) == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ValueError, match="beta"):
        critical_theta(pair, 2, -1.0)
