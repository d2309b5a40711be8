"""The law against dense matrix functions and brute-force minimisation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import advdiff
from advdiff.theory import advection_law as law
from advdiff.theory.shifts import Environment, Randomness, sample_graph
from advdiff.theory.spectral_measure import SpectralMeasure, atom, mixture, of_signal, spiked

eigenvalues = st.floats(-0.9, 0.9)


def labels(share: float, power: int) -> law.Response:
    return lambda s: (1 - share) + share * s**power


@settings(max_examples=40)
@given(eigenvalues, eigenvalues, st.floats(0.1, 5.0), st.floats(0.5, 3.0), st.floats(-1.0, 1.0))
def test_one_atom_error_is_zero_exactly_at_the_law(before, after, ratio, time, coupling):
    if abs(before - after) < 0.05:
        return
    beta = law.exponential_law(before, after, ratio, time=time)
    gains = [math.exp((coupling + beta * s - 1) * time) for s in (before, after)]
    assert gains[1] / gains[0] == pytest.approx(ratio, rel=1e-9)
    f = _through(before, after, ratio)

    def gain(s, b):
        return law.exponential_gain(s, b, time=time, coupling=coupling)

    betas = torch.tensor([beta, beta + 0.3], dtype=torch.float64)
    curve = law.error_curve(f, gain, betas, atom(before), atom(after))
    assert float(curve.test[0]) < 1e-18 and float(curve.train.max()) < 1e-18
    expected = (math.exp(0.3 * time * (after - before)) - 1) ** 2  # the whole curve in closed form
    assert float(curve.test[1]) == pytest.approx(expected, rel=1e-6)


def _through(before: float, after: float, ratio: float) -> law.Response:
    """The straight line with the values 1 and r at the two eigenvalues."""
    return lambda s: 1 + (ratio - 1) * (s - before) / (after - before)


@settings(max_examples=40)
@given(st.floats(0.2, 0.9), st.floats(-0.2, 0.15), st.floats(0.9, 0.999), st.floats(0.2, 2.0), st.floats(0.0, 0.15))
def test_inverse_has_its_own_law(before, after, closeness, theta, coupling):
    lowest = (1 - before) / (1 - after)
    ratio = lowest + closeness * (1 - lowest)
    beta = law.inverse_law(before, after, ratio, theta=theta, coupling=coupling)
    gains = [1 / (1 + theta - coupling - beta * s) for s in (before, after)]
    assert gains[1] / gains[0] == pytest.approx(ratio, rel=1e-9) and 0 <= beta < 1 + theta - coupling
    with pytest.raises(ValueError, match="it has a pole"):
        law.inverse_law(before, after, 0.999 * lowest, theta=theta, coupling=coupling)


@pytest.mark.parametrize(("share", "power"), [(0.25, 1), (0.5, 2), (0.75, 3), (1.0, 1)])
@pytest.mark.parametrize("solver", ["exponential", "inverse"])
def test_errors_and_best_beta_against_dense_matrices_and_brute_force(share, power, solver):
    nodes, dice = 40, torch.Generator().manual_seed(5)
    graphs = [
        advdiff.normalize_adjacency(
            sample_graph(Environment(0.6, p, 2), Randomness.draw(nodes, dice)), nodes, dtype=torch.float64
        )
        for p in (0.1, 0.4)
    ]
    x = torch.sign(torch.arange(nodes) - nodes / 2 + 0.5).double()
    dense = [V.to_dense().numpy() for V in graphs]
    eye, f = np.eye(nodes), labels(share, power)
    targets = [((1 - share) * eye + share * np.linalg.matrix_power(V, power)) @ x.numpy() for V in dense]

    def brute(beta: float) -> tuple[float, float]:
        if solver == "exponential":
            states = [scipy.linalg.expm(beta * V - eye) @ x.numpy() for V in dense]
        else:
            states = [np.linalg.solve(2 * eye - beta * V, x.numpy()) for V in dense]
        a = states[0] @ targets[0] / (states[0] @ states[0])
        return tuple(((a * s - y) ** 2).sum() / (y**2).sum() for s, y in zip(states, targets, strict=True))

    gain = law.exponential_gain if solver == "exponential" else law.inverse_gain
    pair = [of_signal(V, x, steps=nodes) for V in graphs]
    for beta in (0.0, 0.4, 1.7):
        found = law.errors(f, lambda s, beta=beta: gain(s, beta), *pair)
        assert [float(e) for e in found] == pytest.approx(brute(beta), rel=1e-7, abs=1e-14)
    upper = 4.0 if solver == "exponential" else 1.9
    for place, on in enumerate(law.Errors._fields):
        grid = np.linspace(0, upper, 200)
        start = min(grid, key=lambda b: brute(b)[place])
        around = (max(start - 0.05, 0), min(start + 0.05, upper))
        exact = scipy.optimize.minimize_scalar(
            lambda b, place=place: brute(b)[place], bounds=around, method="bounded", options={"xatol": 1e-9}
        ).x
        assert law.best_beta(f, gain, *pair, upper=upper, on=on) == pytest.approx(exact, abs=1e-4)


def test_several_atoms_vanish_only_where_ln_f_is_a_straight_line():
    train = mixture([(0.5, atom(0.7)), (0.5, atom(0.3))])
    test = mixture([(0.5, atom(0.5)), (0.5, atom(0.1))])
    best = law.best_beta(lambda s: (1.3 * s).exp(), law.exponential_gain, train, test)
    assert best == pytest.approx(1.3, abs=1e-5)
    found = law.errors(lambda s: 1 + s, lambda s: law.exponential_gain(s, 0.7), train, test)
    assert float(found.test) > 1e-5


@pytest.mark.parametrize("order", [1, 2, 3])
def test_series_projects_onto_polynomials(order):
    train, test = spiked(0.6, 0.2, steps=12), spiked(0.2, 0.15, steps=12)
    for power in (1, 2, 3, 4):
        found = law.series_errors(labels(0.5, power), order, train, test)
        root = train.weights.sqrt().numpy()
        basis = np.vander(train.places.numpy(), order + 1, increasing=True)
        weights = np.linalg.lstsq(root[:, None] * basis, root * labels(0.5, power)(train.places).numpy())[0]
        gap = (
            np.vander(test.places.numpy(), order + 1, increasing=True) @ weights
            - labels(0.5, power)(test.places).numpy()
        )
        size = float(test.mean(lambda s, power=power: labels(0.5, power)(s) ** 2))
        assert float(found.test) == pytest.approx(float((test.weights.numpy() * gap**2).sum()) / size, abs=1e-10)
        assert (float(found.test) < 1e-20) == (power <= order)


def test_one_atom_says_nothing_on_the_training_graph():
    betas = torch.linspace(0, 3, 7, dtype=torch.float64)
    one = law.error_curve(labels(0.5, 1), law.exponential_gain, betas, atom(0.6), atom(0.1))
    spread = law.error_curve(labels(0.5, 1), law.exponential_gain, betas, spiked(0.6, 0.2), atom(0.1))
    assert float(one.train.max()) < 1e-25 and float(spread.train.max()) > 1e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dtype_is_kept(dtype):
    measure = SpectralMeasure(torch.tensor([0.1, 0.5], dtype=dtype), torch.tensor([0.5, 0.5], dtype=dtype))
    betas = torch.tensor([0.5], dtype=dtype)
    assert law.error_curve(labels(0.5, 1), law.exponential_gain, betas, measure, measure).test.dtype == dtype


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: law.exponential_law(0.5, 0.5, 0.9), "both eigenvalues are 0.5"),
        (lambda: law.exponential_law(0.5, 0.1, -0.2), "it must be positive"),
        (lambda: law.exponential_law(0.5, 0.1, 0.2, time=0.0), "time is 0"),
        (lambda: law.inverse_law(0.5, 0.5, 0.9), "both eigenvalues are 0.5"),
        (lambda: law.inverse_law(0.5, 0.1, 0.0), "ratio is 0"),
        (lambda: law.inverse_law(0.5, 0.1, 0.01), "it has a pole"),
        (lambda: law.best_beta(labels(0.5, 1), law.exponential_gain, atom(0.5), atom(0.1), upper=0.0), "upper"),
        (lambda: law.best_beta(labels(0.5, 1), law.exponential_gain, atom(0.5), atom(0.1), on="both"), "train, test"),
        (lambda: law.series_errors(labels(0.5, 1), -1, atom(0.5), atom(0.1)), "order is -1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
