"""[Z, PZ, …, P^K Z] against numpy, and the two series made of it (theory §10)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.linalg
import torch

import advdiff
from tests.cases import BETAS, BY_NAME, HEADS, GraphCase, block_model, some
from tests.reference import EPS, STATES, Problem, make_problem, randn, relative_error

f64 = torch.float64


def reference(problem: Problem, order: int, source: np.ndarray | None = None) -> list[np.ndarray]:
    """Z^{(k)} = P(Z^{(k-1)} + M), each head with its own state [H, N, columns] from the first product on."""
    Z = problem.Z.double().numpy()
    M = np.zeros_like(Z) if source is None else source
    n, heads = len(Z), len(problem.P)
    if problem.heads is not None and Z.ndim == 3:
        state, extra = Z.swapaxes(0, 1), M.swapaxes(0, 1)
    else:
        state, extra = (np.broadcast_to(A.reshape(n, -1), (heads, n, A.size // n)) for A in (Z, M))
    states = [Z]
    for _ in range(order):
        state = problem.P @ (state + extra)
        if problem.heads is None:
            states.append(state[0].reshape(Z.shape))
        else:
            states.append(state.swapaxes(0, 1)[..., 0] if Z.ndim == 1 else state.swapaxes(0, 1))
    return states


@pytest.mark.parametrize("with_source", [False, True], ids=["plain", "source"])
def test_powers(case: GraphCase, kind: str, dtype: torch.dtype, with_source: bool) -> None:
    for beta, heads, state in itertools.product(BETAS, HEADS, STATES):
        problem = make_problem(case, kind, beta, heads, dtype, state)
        source = randn(*problem.Z.shape, dtype=dtype) if with_source else None
        expected = reference(problem, 4, None if source is None else source.double().numpy())
        actual = advdiff.powers(problem.L.propagator, problem.Z, 4, source=source)
        assert actual[0] is problem.Z
        assert len(actual) == 5
        for k, (value, matrix) in enumerate(zip(actual, expected, strict=True)):
            assert value.dtype == dtype
            assert relative_error(value, matrix) <= (k + 1) * EPS[dtype]


def test_order_zero_is_the_state_itself() -> None:
    problem = make_problem(BY_NAME["undirected"], heads=3)
    assert advdiff.powers(problem.L.propagator, problem.Z, 0) == [problem.Z]


def test_four_nodes_by_hand() -> None:
    """Uniform C on the path with β = 1: P1 = 2·1 for V = D⁻¹A, so P^k 1 = 2^k, and with source 1: 2, 6, 14."""
    zeros = torch.zeros(4, 1, dtype=f64)
    P = advdiff.Generator(advdiff.Attention(zeros, zeros), BY_NAME["path"].velocity("row"), 1.0).propagator
    ones = torch.ones(4, dtype=f64)
    assert [x.tolist() for x in advdiff.powers(P, ones, 3)] == [[v] * 4 for v in (1, 2, 4, 8)]
    assert [x.tolist() for x in advdiff.powers(P, ones, 3, source=ones)] == [[v] * 4 for v in (1, 4, 10, 22)]


@some("undirected", "directed_weighted", "batch_unsorted")
def test_any_operator_of_the_library(case: GraphCase, kind: str) -> None:
    problem = make_problem(case, kind, 0.5)
    L = problem.L
    V = (problem.P[0] - make_problem(case, kind, 0.5, terms="C").P[0]) / 0.5
    for operator, matrix in (
        (L.propagator, problem.P[0]),
        (L.propagator.T, problem.P[0].T),
        (L, problem.eye - problem.P[0]),
        (L.coupling, problem.P[0] - 0.5 * V),
        (L.velocity, V),
    ):
        source = randn(*problem.Z.shape)
        for value, k in zip(advdiff.powers(operator, problem.Z, 3), range(4), strict=True):
            assert relative_error(value, np.linalg.matrix_power(matrix, k) @ problem.Z.numpy()) <= 1e-12
        first = advdiff.powers(operator, problem.Z, 1, source=source)[1]
        assert relative_error(first, matrix @ (problem.Z + source).numpy()) <= 1e-12


# -------------------------------------------------------------------------------------------------- two series


@pytest.mark.parametrize("beta, theta", [(0.2, 1.0), (0.5, 1.0), (1.0, 1.6), (0.5, 0.6)])
def test_neumann_series_converges_at_the_exact_rate(beta: float, theta: float) -> None:
    """Σ_{k≤K} P^k/(1+θ)^{k+1} → (θI + L)⁻¹ with relative ∞-norm error ((1+β)/(1+θ))^{K+1}, exactly, for D⁻¹A."""
    case = block_model((20, 20), 0.3, 0.05)
    problem = make_problem(case, "row", beta)
    inverse = np.linalg.inv((1 + theta) * problem.eye - problem.P[0])
    states = advdiff.powers(problem.L.propagator, torch.eye(40, dtype=f64), 12)
    total = np.zeros((40, 40))
    for k, state in enumerate(states):
        total += state.numpy() / (1 + theta) ** (k + 1)
        error = np.linalg.norm(total - inverse, np.inf) / np.linalg.norm(inverse, np.inf)
        assert error == pytest.approx(((1 + beta) / (1 + theta)) ** (k + 1), rel=1e-9)
    if (beta, theta) == (0.5, 1.0):  # the figures of theory §10
        assert [0.75 ** (k + 1) for k in (1, 4, 8)] == pytest.approx([0.5625, 0.2373, 0.0751], abs=5e-5)


def test_taylor_series_is_the_better_justification() -> None:
    """e^{-T} Σ_{k≤K} T^k P^k/k! at T = 1, β = 0.5: .44, 1.9e-2, 2.8e-5 at K = 1, 4, 8 (theory §10), in the ∞-norm."""
    problem = make_problem(block_model((20, 20), 0.3, 0.05), "row", 0.5)
    states = advdiff.powers(problem.L.propagator, torch.eye(40, dtype=f64), 16)
    flow = scipy.linalg.expm(problem.P[0] - problem.eye)
    for order, expected in ((1, 0.44), (4, 1.9e-2), (8, 2.8e-5), (16, 7e-13)):
        series = math.exp(-1.0) * sum(states[k].numpy() / math.factorial(k) for k in range(order + 1))
        error = np.linalg.norm(series - flow, np.inf) / np.linalg.norm(flow, np.inf)
        assert error == pytest.approx(expected, rel=0.1)
