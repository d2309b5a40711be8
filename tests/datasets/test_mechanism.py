"""The random networks of the causal model, against their formulas written out node by node."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from advdiff.datasets.causal import block_model
from advdiff.datasets.causal.block_model import Environment, Randomness, sample_graph
from advdiff.datasets.causal.mechanism import Mechanism

TRAIN = Environment(0.1, 0.01, 5)


def dice(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_features_and_labels_by_definition():
    """X = MLP(U) and Y = w gcn(U, A) + (1 − w) difformer(U), with the drawn weights and scales."""
    mechanism = Mechanism.draw(dice(3), TRAIN, 50, graph_share=0.3)
    thrown = Randomness.draw(14, dice(4))
    edges = sample_graph(Environment(0.5, 0.2, 2), thrown)
    u = np.sqrt(12.0) * (thrown.latent.numpy() - 0.5)
    layers = {name: (w.numpy(), b.numpy()) for name, (w, b) in mechanism.layers.items()}
    scales = {name: (m.numpy(), s.numpy()) for name, (m, s) in mechanism.scales.items()}
    looped = np.eye(14)
    looped[edges[1], edges[0]] = 1.0
    degree = looped.sum(1)

    def linear(name: str, x: np.ndarray) -> np.ndarray:
        return layers[name][0].T @ x + layers[name][1]

    def scaled(name: str, x: np.ndarray) -> np.ndarray:
        return (x - scales[name][0]) / scales[name][1]

    def convolve(name: str, X: np.ndarray) -> np.ndarray:
        out = np.zeros((14, layers[name][0].shape[1])) + layers[name][1]
        for a, b in zip(*np.nonzero(looped), strict=True):
            out[a] += layers[name][0].T @ X[b] / np.sqrt(degree[a] * degree[b])
        return out

    X = np.stack([linear("x2", np.maximum(linear("x1", u[[a]]), 0)) for a in range(14)])
    np.testing.assert_allclose(mechanism.features(thrown.latent).numpy(), scaled("features", X), atol=1e-12)
    local = convolve("g2", np.maximum(convolve("g1", u[:, None]), 0))
    z = np.stack([np.maximum(linear("d1", u[[a]]), 0) for a in range(14)])
    q, k = (np.stack([linear(name, row) / np.linalg.norm(linear(name, row)) for row in z]) for name in ("query", "key"))
    C = np.array([[1 + q[a] @ k[b] for b in range(14)] for a in range(14)])
    C /= C.sum(1, keepdims=True)
    alone = np.stack([linear("d2", (z[a] + C[a] @ z) / 2) for a in range(14)])
    mixed = 0.3 * scaled("graph", local) + 0.7 * scaled("latent", alone)
    expected = scaled("label", mixed)[:, 0]
    np.testing.assert_allclose(mechanism.labels(thrown.latent, edges).numpy(), expected, atol=1e-12)


def test_is_scaled_on_a_training_graph():
    mechanism = Mechanism.draw(dice(3), TRAIN, 2000)
    thrown = Randomness.draw(2000, dice(4), ceiling=0.1)
    X = mechanism.features(thrown.latent)
    Y = mechanism.labels(thrown.latent, sample_graph(TRAIN, thrown))
    assert X.shape == (2000, 4) and Y.shape == (2000,)
    for values in (X, Y[:, None]):
        assert float(values.mean(0).abs().max()) < 0.2
        np.testing.assert_allclose(values.std(0).numpy(), 1.0, atol=0.2)


def test_follows_the_causal_model():
    mechanism = Mechanism.draw(dice(3), TRAIN, 100)
    latent = torch.rand(100, generator=dice(5), dtype=torch.float64)
    other = latent.clone()
    other[0] = 1 - other[0]
    X, X_other = mechanism.features(latent), mechanism.features(other)
    assert torch.equal(X[1:], X_other[1:]) and not torch.equal(X[0], X_other[0])  # a node's features are its own
    ring = torch.stack([torch.arange(100), (torch.arange(100) + 1) % 100])
    ring = torch.cat([ring, ring.flip(0)], dim=1)
    empty = ring[:, :0]
    assert not torch.allclose(mechanism.labels(latent, ring), mechanism.labels(latent, empty))
    blind = Mechanism.draw(dice(3), TRAIN, 100, graph_share=0.0)
    assert torch.equal(blind.labels(latent, ring), blind.labels(latent, empty))
    permutation = torch.randperm(100, generator=dice(6))
    place = torch.argsort(permutation)
    moved = mechanism.labels(latent[permutation], place[ring])
    torch.testing.assert_close(moved, mechanism.labels(latent, ring)[permutation])


def test_is_repeatable_and_keeps_the_global_generator():
    torch.manual_seed(0)
    before = torch.rand(1)
    torch.manual_seed(0)
    first, second = (Mechanism.draw(dice(1), TRAIN, 50) for _ in range(2))
    assert torch.equal(torch.rand(1), before)
    latent = torch.rand(9, dtype=torch.float64)
    assert torch.equal(first.features(latent), second.features(latent))


def test_bad_input():
    with pytest.raises(ValueError, match="between 0 and 1"):
        Mechanism.draw(dice(0), TRAIN, 10, graph_share=1.5)
    with pytest.raises(ValueError, match="at least 2 nodes"):
        Mechanism.draw(dice(0), TRAIN, 1)
    with pytest.raises(ValueError, match="pass its edge_index"):
        Mechanism.draw(dice(0), TRAIN, 10).labels(torch.rand(3), None)


@pytest.mark.parametrize("shift", block_model.SHIFTS)
def test_labels_of_ever_larger_graphs_tend_to_their_limit(shift):
    first, *_, last = block_model.environments(shift)
    mechanism = Mechanism.draw(torch.Generator().manual_seed(0), first, 500)
    for environment in (first, last):
        distance = []
        for nodes in (300, 4000):
            dice = block_model.Randomness.draw(nodes, torch.Generator().manual_seed(1), ceiling=0.2)
            labels = mechanism.labels(dice.latent, block_model.sample_graph(environment, dice))
            distance.append(float((labels - mechanism.limit_labels(dice.latent, environment)).square().mean().sqrt()))
        assert distance[1] < 0.5 * distance[0] and distance[1] < 0.3
    with pytest.raises(ValueError, match="no edges"):
        mechanism.limit_labels(dice.latent, block_model.Environment(0.0, 0.0, 2))
