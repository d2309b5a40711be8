"""The gap and its bounds on random pairs, against sums written out node by node, and at the counter-example."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import advdiff
from advdiff.datasets.causal.mechanism import Mechanism
from advdiff.theory import gap, shifts
from advdiff.theory.shifts import Environment, Randomness

TRAIN = Environment(0.1, 0.01, 5)
DTYPES = (torch.float32, torch.float64)
seeds = st.integers(0, 2**16)
sizes = st.tuples(st.integers(1, 12), st.integers(1, 5), st.integers(1, 3))  # N, d, F
bounds = st.sampled_from([None, 0.3, 2.0])
scales = st.floats(1e-6, 1e3)


def dice(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=generator)


# --- the loss and the constants ----------------------------------------------------------------------------


@given(sizes, seeds, bounds)
def test_risk_by_definition(size, seed, bound):
    n, _, f = size
    prediction, label = normal(dice(seed), 2, n, f).numpy()
    expected = np.mean([min(np.linalg.norm(a - b), bound or np.inf) for a, b in zip(prediction, label, strict=True)])
    assert float(gap.risk(*map(torch.tensor, (prediction, label)), bound)) == pytest.approx(expected, rel=1e-12)


def test_a_column_and_a_vector_are_the_same():
    prediction, label = normal(dice(0), 2, 7)
    assert gap.risk(prediction, label) == gap.risk(prediction[:, None], label[:, None])
    assert gap.model_term(prediction, label) == gap.model_term(prediction[:, None], label[:, None])


def test_constants_by_hand():
    assert gap.lipschitz_constant(4) == 0.5
    assert gap.lipschitz_constant(9, loss=2.0, decoder=3.0) == pytest.approx(2.0)
    assert gap.lipschitz_constant(16, norm="spectral", width=9) == pytest.approx(3 / 4)
    assert gap.lipschitz_constant(4, norm="spectral", width=9) == pytest.approx(1.0)  # the rank is at most N


@given(sizes, seeds, st.floats(0.0, 5.0))
def test_terms_by_definition(size, seed, decoder):
    n, d, _ = size
    Z, other = normal(dice(seed), 2, n, d)
    difference = (other - Z).numpy()
    frobenius = decoder * np.sqrt((difference**2).sum() / n)
    spectral = decoder * np.linalg.norm(difference, 2) * math.sqrt(min(n, d) / n)
    assert float(gap.model_term(Z, other, decoder=decoder)) == pytest.approx(frobenius, rel=1e-10, abs=1e-15)
    assert float(gap.model_term(Z, other, decoder=decoder, norm="spectral")) == pytest.approx(spectral, abs=1e-10)
    assert frobenius <= spectral * (1 + 1e-10) + 1e-15
    assert float(gap.label_term(Z, other, loss=2.0)) == pytest.approx(2 * np.sqrt((difference**2).sum() / n))


@pytest.mark.parametrize("width", [1, 4, 30])
def test_the_factor_of_the_spectral_norm_is_needed(width):
    """Each node moves by 1 in a direction of its own, and the decoder is the length."""
    Z, other, label = torch.zeros(width, width), torch.eye(width), torch.zeros(width)
    change = float(gap.risk(other.norm(dim=1), label) - gap.risk(Z.norm(dim=1), label))
    assert change == pytest.approx(float(gap.model_term(Z, other, norm="spectral")))
    assert change == pytest.approx(float(gap.model_term(Z, other)))


# --- the decomposition -------------------------------------------------------------------------------------


@given(sizes, seeds, bounds, scales, scales)
def test_the_bounds_hold_and_are_ordered(size, seed, bound, step, drift):
    n, d, f = size
    generator = dice(seed)
    Z, Y = normal(generator, n, d), normal(generator, n, f)
    Z_new, Y_new = Z + step * normal(generator, n, d), Y + drift * normal(generator, n, f)
    readout = gap.Readout(normal(generator, d, f), normal(generator, f))
    D = gap.decompose(readout, Z, Y, Z_new, Y_new, bound)
    chain = [abs(float(D.gap)), float(D.residual), float(D.movement + D.label), float(D.bound)]
    slack = 1e-12 * (1 + chain[-1])
    assert all(a <= b + slack for a, b in itertools.pairwise(chain))
    expected = gap.risk(readout(Z_new), Y_new, bound) - gap.risk(readout(Z), Y, bound)
    assert float(D.gap) == pytest.approx(float(expected))
    assert float(D.model) == pytest.approx(float(gap.model_term(Z, Z_new, decoder=float(readout.lipschitz))))


@given(sizes, seeds, scales)
def test_a_model_that_moves_with_the_labels_has_no_residual(size, seed, step):
    n, d, _ = size
    generator = dice(seed)
    Z, move = normal(generator, n, d), step * normal(generator, n, d)
    readout = gap.Readout(normal(generator, d, d), normal(generator, d))
    Y = normal(generator, n, d)
    D = gap.decompose(readout, Z, Y, Z + move, Y + move @ readout.weight)
    assert float(D.residual) <= 1e-12 * (1 + step) * float(1 + readout.lipschitz)
    assert abs(float(D.gap)) <= float(D.residual) + 1e-12 * (1 + step) * float(1 + readout.lipschitz)


models = st.builds(Environment, st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(1, 5))


@given(models, models, seeds, st.booleans(), st.sampled_from([None, 0.0, 0.3, 1.0]), st.floats(0.0, 1.0))
def test_the_bound_holds_on_the_causal_model(first, second, seed, common, beta, share):
    """Pairs on shared latents, with common or independent dice; isolated nodes and empty graphs occur."""
    nodes = 12
    mechanism = Mechanism.draw(dice(seed), first, nodes, graph_share=share)
    thrown = Randomness.draw(nodes, dice(seed + 1))
    again = thrown if common else Randomness.draw(nodes, dice(seed + 2), latent=thrown.latent)
    start = mechanism.features(thrown.latent)
    states, labels = [], []
    for environment, randomness in ((first, thrown), (second, again)):
        edges = shifts.sample_graph(environment, randomness)
        V = advdiff.normalize_adjacency(edges, nodes, dtype=torch.float64)
        coupling = None if beta is None else advdiff.Attention(start, start)
        L = advdiff.Generator(coupling, V, 1.0 if beta is None else beta)
        states.append(advdiff.exponential(L, start, tol=1e-10))
        labels.append(mechanism.labels(thrown.latent, edges))
    readout = gap.fit_readout(states[0], labels[0])
    D = gap.decompose(readout, states[0], labels[0][:, None], states[1], labels[1][:, None])
    assert abs(float(D.gap)) <= float(D.residual) + 1e-9 <= float(D.movement + D.label) + 2e-9
    assert float(D.movement) <= float(D.model) + 1e-9
    if common and first == second:
        assert float(D.bound) == 0.0
    if beta == 0.0:
        assert float(D.model) == pytest.approx(0.0, abs=1e-8)  # a model without the graph does not move
    if share == 0.0:
        assert float(D.label) == 0.0


@given(seeds, st.floats(0.0, 1.0))
def test_terms_vanish_for_equal_graphs_and_shared_latents(seed, share):
    mechanism = Mechanism.draw(dice(seed), TRAIN, 20, graph_share=share)
    thrown = Randomness.draw(20, dice(seed + 1))
    start = mechanism.features(thrown.latent)
    values = []
    for environment in (TRAIN, Environment(0.1, 0.01, 5)):
        edges = shifts.sample_graph(environment, thrown)
        V = advdiff.normalize_adjacency(edges, 20, dtype=torch.float64)
        values.append((V @ start, mechanism.labels(thrown.latent, edges)[:, None]))
    D = gap.decompose(gap.fit_readout(*values[0]), *values[0], *values[1])
    assert [float(v) for v in (D.gap, D.residual, D.movement, D.model, D.label)] == [0.0] * 5


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_without_shared_latents_the_bound_fails(nodes):
    """X = ±1, empty graph Y = X, complete graph Y = −X, model Γ = X: the gap is 2, the model term 0."""
    signs = [torch.tensor(s, dtype=torch.float64) for s in itertools.product((-1, 1), repeat=nodes)]
    change = np.mean([float(gap.risk(s, -s) - gap.risk(s, s)) for s in signs])
    shared = np.mean([float(gap.label_term(s, -s)) for s in signs])
    apart = np.mean([float(gap.label_term(s, -t)) for s in signs for t in signs])
    apart_absolute = np.mean([float(gap.risk(s, -t)) for s in signs for t in signs])
    assert change == pytest.approx(2.0) == shared
    assert apart_absolute == pytest.approx(1.0)
    assert apart < math.sqrt(2) + 1e-12 < change  # √2 by Jensen's inequality


# --- the closed-form readout -------------------------------------------------------------------------------


@given(sizes, seeds, st.sampled_from([1e-6, 1e-3, 1.0]))
def test_readout_solves_the_normal_equations(size, seed, ridge):
    n, d, f = size
    generator = dice(seed)
    Z, Y = normal(generator, n, d), normal(generator, n, f)
    readout = gap.fit_readout(Z, Y, ridge)
    error = readout(Z) - Y
    assert float(error.mean(0).abs().max()) < 1e-9  # the bias is free
    gradient = Z.T @ error / n + ridge * readout.weight
    assert float(gradient.abs().max()) < 1e-9
    assert float(readout.lipschitz) == pytest.approx(np.linalg.norm(readout.weight.numpy(), 2))


def test_readout_without_ridge_is_least_squares():
    Z, Y = normal(dice(1), 30, 4), normal(dice(2), 30)
    design = np.column_stack([Z.numpy(), np.ones(30)])
    expected = np.linalg.lstsq(design, Y.numpy(), rcond=None)[0]
    readout = gap.fit_readout(Z, Y, ridge=0.0)
    np.testing.assert_allclose(torch.cat([readout.weight[:, 0], readout.bias]).numpy(), expected, rtol=1e-10)


@given(sizes, seeds)
def test_readout_is_lipschitz(size, seed):
    n, d, f = size
    generator = dice(seed)
    readout = gap.Readout(normal(generator, d, f), normal(generator, f))
    Z, other = normal(generator, 2, n, d)
    moved = torch.linalg.vector_norm(readout(other) - readout(Z), dim=1)
    assert (moved <= readout.lipschitz * torch.linalg.vector_norm(other - Z, dim=1) * (1 + 1e-12)).all()


# --- the training set --------------------------------------------------------------------------------------


def test_deviation_by_hand_and_vacuous_with_one_graph():
    assert gap.deviation(50, 0.1, 2.0) == pytest.approx(2 * math.sqrt(math.log(20) / 100))
    assert gap.deviation(1, 0.05, 3.0) > 3.0
    assert gap.deviation(185) <= 0.1 < gap.deviation(184)


@pytest.mark.parametrize(("graphs", "probability"), [(5, 0.5), (20, 0.5), (20, 0.1)])
def test_deviation_covers(graphs, probability):
    """Losses 0 or 1: the exact binomial probability of exceeding the bound is at most δ."""
    for delta in (0.01, 0.1, 0.5):
        limit = gap.deviation(graphs, delta)
        exceed = sum(
            math.comb(graphs, k) * probability**k * (1 - probability) ** (graphs - k)
            for k in range(graphs + 1)
            if abs(k / graphs - probability) > limit
        )
        assert exceed <= delta


# --- dtypes, devices, bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes_are_kept_and_agree(dtype):
    Z, Z_new = normal(dice(0), 2, 40, 3)
    Y, Y_new = normal(dice(1), 2, 40, 2)
    exact = gap.decompose(gap.fit_readout(Z, Y), Z, Y, Z_new, Y_new)
    Z, Z_new, Y, Y_new = (tensor.to(dtype) for tensor in (Z, Z_new, Y, Y_new))
    readout = gap.fit_readout(Z, Y)
    D = gap.decompose(readout, Z, Y, Z_new, Y_new)
    assert readout.weight.dtype == readout.bias.dtype == dtype
    for name in ("gap", "residual", "movement", "model", "label", "bound"):
        assert getattr(D, name).dtype == dtype
        assert float(getattr(D, name)) == pytest.approx(float(getattr(exact, name)), rel=1e-4, abs=1e-5)


def test_meta_device_gives_shapes_without_values():
    Z, Y = torch.empty(10, 3, device="meta"), torch.empty(10, 2, device="meta")
    readout = gap.fit_readout(Z, Y)
    assert readout.weight.shape == (3, 2) and readout.weight.is_meta
    D = gap.decompose(readout, Z, Y, Z, Y, bound=1.0)
    assert all(v.is_meta and v.shape == () for v in (D.gap, D.residual, D.movement, D.model, D.label, D.bound))
    assert gap.model_term(Z, Z, norm="spectral").is_meta


def test_terms_are_differentiable():
    Z = normal(dice(0), 5, 3).requires_grad_()
    D = gap.decompose(gap.Readout(torch.eye(3, dtype=torch.float64), torch.zeros(3)), Z, Z.detach(), 2 * Z, Z.detach())
    (D.bound + D.residual).backward()
    assert Z.grad is not None and torch.isfinite(Z.grad).all() and Z.grad.abs().sum() > 0


NAN = torch.full((3,), math.nan)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gap.risk(torch.zeros(3), torch.zeros(4)), "make the shapes equal"),
        (lambda: gap.risk(torch.zeros(3), torch.zeros(3, 1)), "make the shapes equal"),
        (lambda: gap.risk(torch.zeros(0), torch.zeros(0)), "at least one node"),
        (lambda: gap.risk(torch.zeros(2, 2, 2), torch.zeros(2, 2, 2)), r"\[N\] or \[N, F\]"),
        (lambda: gap.risk(torch.zeros(3, dtype=torch.int64), torch.zeros(3, dtype=torch.int64)), "floating point"),
        (lambda: gap.risk(torch.zeros(3), NAN), "label holds 3 NaN"),
        (lambda: gap.risk(torch.zeros(3), torch.zeros(3), bound=0.0), "must be positive"),
        (lambda: gap.risk(torch.zeros(3), torch.zeros(3), bound=math.nan), "must be positive"),
        (lambda: gap.model_term(torch.zeros(3), torch.zeros(3), norm="nuclear"), "frobenius, spectral"),
        (lambda: gap.model_term(torch.zeros(3), torch.zeros(3), decoder=-1.0), "not negative"),
        (lambda: gap.label_term(torch.zeros(3), torch.zeros(2)), "make the shapes equal"),
        (lambda: gap.lipschitz_constant(0), "at least one"),
        (lambda: gap.lipschitz_constant(4, norm="spectral"), "number of columns"),
        (lambda: gap.fit_readout(torch.zeros(3, 2), torch.zeros(4)), "one row per node"),
        (lambda: gap.fit_readout(torch.zeros(3, 2), torch.zeros(3), ridge=-1.0), "not negative"),
        (lambda: gap.fit_readout(torch.ones(9, 2), torch.zeros(9), ridge=0.0), "linearly dependent"),
        (lambda: gap.fit_readout(torch.eye(2, 5), torch.zeros(2), ridge=0.0), "linearly dependent"),
        (lambda: gap.Readout(torch.zeros(3, 1), torch.zeros(1))(torch.zeros(5, 2)), "weight has 3 rows"),
        (lambda: gap.deviation(0), "at least one training graph"),
        (lambda: gap.deviation(5, delta=1.0), "strictly between 0 and 1"),
        (lambda: gap.deviation(5, bound=-1.0), "not negative"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(sizes, seeds)
def test_nodewise_residual_lies_between_the_gap_and_both_other_bounds(size, seed):
    nodes, _, width = size
    r, r_new = normal(dice(seed), 2, nodes, width)
    by_hand = sum(float((b - a).norm()) for a, b in zip(r, r_new, strict=True)) / nodes
    found = float(gap.nodewise_residual(r, r_new))
    losses = [float(gap.risk(each, torch.zeros_like(each))) for each in (r, r_new)]
    assert found == pytest.approx(by_hand)
    assert abs(losses[1] - losses[0]) <= found + 1e-12
    assert found <= min(float(gap.model_term(r, r_new)), sum(losses)) + 1e-12
