"""Spectral measures against dense eigendecompositions, Wigner's semicircle in closed form, and drawn graphs."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import advdiff
from advdiff.theory import spectral_measure as measures
from advdiff.theory.shifts import SHIFTS, Environment, Randomness, environments, sample_graph


def dice(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_graph(seed: int, nodes: int, chance: float, dtype: torch.dtype = torch.float64) -> advdiff.Velocity:
    edges = sample_graph(Environment(chance, chance, 1), Randomness.draw(nodes, dice(seed)))
    return advdiff.normalize_adjacency(edges, nodes, dtype=dtype)


@settings(max_examples=25)
@given(st.integers(0, 2**16), st.integers(1, 40), st.floats(0.0, 1.0))
def test_integrals_are_those_of_the_dense_eigendecomposition(seed, nodes, chance):
    V, x = random_graph(seed, nodes, chance), torch.randn(nodes, generator=dice(seed), dtype=torch.float64)
    places, vectors = torch.linalg.eigh(V.to_dense())
    weights = (vectors.T @ x) ** 2 / (x @ x)
    measure = measures.of_signal(V, x, steps=40)
    assert torch.isclose(measure.weights.sum(), torch.tensor(1.0, dtype=torch.float64))
    for h in (lambda s: s**5, lambda s: (2 * s).exp(), lambda s: 1 / (1.5 - s)):
        assert torch.allclose(measure.mean(h), (weights * h(places)).sum(), rtol=1e-9, atol=1e-12)
    assert torch.allclose(measure.spread(0.3), ((V @ x - 0.3 * x).norm() / x.norm()), rtol=1e-9, atol=1e-12)


def test_few_steps_are_exact_for_polynomials_below_twice_their_number():
    V, x = random_graph(1, 60, 0.2), torch.randn(60, generator=dice(1), dtype=torch.float64)
    measure, state = measures.of_signal(V, x, steps=3), [x]
    for _ in range(3):
        state.append(V @ state[-1])
    for k in range(7):  # xᵀV^kx
        exact = state[k // 2] @ state[k - k // 2] / (x @ x)
        assert torch.isclose(measure.mean(lambda s, k=k: s**k), exact, rtol=1e-9) == (k < 6)


def test_first_entries_of_the_jacobi_matrix():
    V, x = random_graph(2, 50, 0.2), torch.randn(50, generator=dice(2), dtype=torch.float64)
    diagonal, off = measures.lanczos(V, x, steps=4)
    first = x @ (V @ x) / (x @ x)
    assert torch.isclose(diagonal[0], first) and torch.isclose(off[0], (V @ x - first * x).norm() / x.norm())


def test_an_eigenvector_is_one_atom_and_isolated_nodes_stand_at_zero():
    V = random_graph(3, 30, 0.3)
    top = (V.to_dense() != 0).sum(1).double().sqrt()  # √d has the eigenvalue 1
    measure = measures.of_signal(V, top)
    assert measure.places.numel() == 1 and abs(float(measure.places) - 1) < 1e-12
    empty = advdiff.normalize_adjacency(torch.empty(2, 0, dtype=torch.int64), 4)
    assert measures.of_signal(empty, torch.ones(4)).places.tolist() == [0.0]
    assert measures.of_signal(empty, torch.ones(4)).places.dtype == torch.float32


@pytest.mark.parametrize("noise", [0.05, 0.2])
def test_without_a_spike_it_is_the_semicircle(noise):
    moments = [float(measures.spiked(0.0, noise).mean(lambda s, k=k: s**k)) for k in range(9)]
    catalan = [math.comb(2 * k, k) / (k + 1) * noise ** (2 * k) for k in range(5)]
    assert moments[::2] == pytest.approx(catalan, rel=1e-10) and moments[1::2] == pytest.approx([0.0] * 4, abs=1e-12)


@pytest.mark.parametrize(("place", "noise"), [(0.6, 0.2), (0.9, 0.3)])
def test_a_spike_above_the_noise_has_an_atom_where_random_matrix_theory_puts_it(place, noise):
    measure = measures.spiked(place, noise, steps=200)
    last = measure.places.argmax()
    assert float(measure.places[last]) == pytest.approx(place + noise**2 / place, rel=1e-9)
    assert float(measure.weights[last]) == pytest.approx(1 - noise**2 / place**2, rel=1e-9)


@pytest.mark.parametrize("shift", SHIFTS)
def test_measure_from_the_environment_is_that_of_a_drawn_graph(shift):
    nodes, values = 3000, torch.tensor([1.0, -1.0, 0.5, 2.0, -2.5])
    first, *_, last = environments(shift)
    randomness = Randomness.draw(nodes, dice(4), ceiling=0.2)
    x = values.double()[first.block(randomness.latent)]
    for environment in (first, last):
        V = advdiff.normalize_adjacency(sample_graph(environment, randomness), nodes, dtype=torch.float64)
        found, expected = measures.of_signal(V, x - x.mean()), measures.of_block_signal(values, environment, nodes)
        for h in (lambda s: s, lambda s: s**2, lambda s: (2 * s).exp()):
            assert torch.isclose(found.mean(h), expected.mean(h), rtol=0.06, atol=0.01)


def test_block_signals_where_the_numbers_of_blocks_divide():
    signal = torch.tensor([1.0, -1.0])
    exact = measures.of_block_signal(signal, Environment(0.2, 0.1, 6))
    assert exact.weights.tolist() == pytest.approx([1.0, 0.0]) and float(exact.places[0]) == pytest.approx(1 / 7)
    lost = measures.of_block_signal(torch.tensor([1.0, -1.0, 1.0, -1.0]), Environment(0.2, 0.1, 2))
    assert lost.weights.tolist() == pytest.approx([0.0, 1.0])  # the blocks average it out


def test_noise_for_sparse_graphs_is_one_over_the_root_of_the_mean_degree():
    environment = Environment(0.002, 0.002, 5)
    assert measures.edge_noise(environment, 10_000) == pytest.approx(1 / math.sqrt(20), rel=2e-3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: measures.lanczos(random_graph(0, 4, 1.0), torch.zeros(4, dtype=torch.float64)), "x is zero"),
        (lambda: measures.lanczos(random_graph(0, 4, 1.0), torch.ones(3)), "x"),
        (lambda: measures.lanczos(random_graph(0, 4, 1.0), torch.ones(4, 1)), "one signal"),
        (lambda: measures.lanczos(random_graph(0, 4, 1.0), torch.ones(4), steps=0), "at least one step"),
        (lambda: measures.lanczos(random_graph(0, 4, 1.0), torch.ones(4, device="meta")), "meta device"),
        (lambda: measures.lanczos(advdiff.normalize_adjacency(torch.tensor([[0], [1]]), 2, kind="row"), torch.ones(2)),
         "symmetric normalisation"),
        (lambda: measures.of_jacobi(torch.ones(2), torch.ones(2)), "m − 1 beside it"),
        (lambda: measures.mixture([]), "shares of a mixture"),
        (lambda: measures.mixture([(-1.0, measures.atom(0.0)), (2.0, measures.atom(1.0))]), "shares of a mixture"),
        (lambda: measures.spiked(0.1, -1.0), "noise"),
        (lambda: measures.edge_noise(Environment(0.0, 0.0, 2), 10), "no edges"),
        (lambda: measures.edge_noise(Environment(0.1, 0.1, 2), 0), "at least one node"),
        (lambda: measures.of_block_signal(torch.ones(2), Environment(0.1, 0.0, 2)), "two different ones"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
