"""Degrees, clustering and the density of the spectrum against definitions and networkx."""

import networkx as nx
import numpy as np
import pytest
import torch

from advdiff.theory.graph_statistics import degrees, spectral_density, summary


def edges_of(graph: nx.Graph, both_ways: bool) -> torch.Tensor:
    pairs = np.array(graph.edges, dtype=np.int64).reshape(-1, 2).T
    return torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1) if both_ways else pairs.copy())


@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize(
    "graph",
    [nx.karate_club_graph(), nx.complete_graph(6), nx.star_graph(9), nx.gnp_random_graph(60, 0.1, seed=1)],
    ids=["karate", "complete", "star", "random"],
)
def test_summary_agrees_with_networkx(graph, both_ways):
    found = summary(edges_of(graph, both_ways), graph.number_of_nodes())
    degree = [d for _, d in graph.degree]
    assert (found.nodes, found.edges) == (graph.number_of_nodes(), graph.number_of_edges())
    assert found.mean_degree == pytest.approx(np.mean(degree)) and found.max_degree == max(degree)
    assert found.isolated == pytest.approx(np.mean(np.array(degree) == 0))
    assert found.clustering == pytest.approx(nx.transitivity(graph))


def test_self_loops_duplicates_and_empty_graphs():
    edges = torch.tensor([[0, 0, 1, 2, 2], [1, 1, 0, 2, 0]])
    assert summary(edges, 4).edges == 2
    empty = summary(torch.empty(2, 0, dtype=torch.int64), 3)
    assert (empty.edges, empty.isolated, empty.clustering) == (0, 1.0, 0.0)
    assert summary(torch.empty(2, 0, dtype=torch.int64), 0).nodes == 0
    assert degrees(edges, 4).tolist() == [2, 2, 1, 0]


def test_the_density_is_that_of_the_eigenvalues():
    graph = nx.gnp_random_graph(400, 0.03, seed=0)
    edges = edges_of(graph, both_ways=True)
    points = torch.linspace(-0.9995, 0.9995, 4000, dtype=torch.float64)
    density = spectral_density(edges, 400, points, moments=80, probes=64)
    assert float(torch.trapezoid(density, points)) == pytest.approx(1.0, abs=0.01)
    eigenvalues = np.linalg.eigvalsh(nx.normalized_laplacian_matrix(graph).toarray() * -1 + np.eye(400))
    for low, high in ((-0.6, -0.2), (-0.2, 0.2), (0.2, 0.6)):
        inside = (points > low) & (points < high)
        share = float(torch.trapezoid(density[inside], points[inside]))
        assert share == pytest.approx(((eigenvalues > low) & (eigenvalues < high)).mean(), abs=0.03)
    assert torch.equal(density, spectral_density(edges, 400, points, moments=80, probes=64))


def test_no_nodes_no_spectrum():
    with pytest.raises(ValueError, match="no nodes"):
        spectral_density(torch.empty(2, 0, dtype=torch.int64), 0, torch.zeros(1))


def test_jacksons_factors_by_hand_and_a_density_that_is_nowhere_negative():
    """Without edges μ_k = T_k(0) = 1, 0, −1, …; with three moments the angle is π/4 and g_2 = (2 cos π/2 + 1) / 4."""
    nodes = 200
    points = torch.cos(torch.pi * (torch.arange(nodes, dtype=torch.float64) + 0.5) / nodes)  # of Gauss and Chebyshev
    none = torch.empty(2, 0, dtype=torch.int64)
    weighted = spectral_density(none, 5, points, moments=3) * torch.pi * torch.sqrt(1 - points.square())
    assert float(weighted.mean()) == pytest.approx(1.0)
    assert float((weighted * (2 * points.square() - 1)).mean()) == pytest.approx(-1 / 4)
    for moments in (4, 7, 12):
        assert float(spectral_density(none, 5, points, moments=moments).min()) > -1e-9
