"""The example graphs against networkx and hand counts."""

import networkx as nx
import torch

from advdiff.datasets.examples import karate_club, river, star


def test_karate_club_is_zacharys():
    graph = karate_club()
    club = nx.karate_club_graph()
    pairs = {tuple(sorted(e)) for e in graph.edge_index.T.tolist()}
    assert pairs == {tuple(sorted(e)) for e in club.edges()} and graph.edge_index.size(1) == 2 * len(pairs)
    assert [int(graph.label[u]) for u in (0, 33)] == [0, 1]  # the instructor and the president
    assert graph.positions.shape == (34, 2)


def test_star_and_river():
    assert sorted(map(tuple, star(2).T.tolist())) == [(0, 1), (0, 2), (1, 0), (2, 0)]
    assert river(4).tolist() == [[0, 1, 2], [1, 2, 3]]
    assert torch.equal(river(1), torch.empty(2, 0, dtype=torch.int64))
