"""Order tests in the manner of diffrax: errors against ``expm`` must fall at the rate the method claims."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import torch

import advdiff
from tests.cases import BY_NAME, block_model
from tests.reference import Problem, make_problem, normalized, relative_error

f64 = torch.float64
SBM = block_model((30, 30), 0.3, 0.05)


def slope(x: list[float], y: list[float]) -> float:
    return float(np.polyfit(x, y, 1)[0])


def uniform_problem(beta: float = 0.5) -> Problem:
    """C = 11ᵀ/N and V symmetric: a symmetric P with spectrum inside [-ρ, ρ], ρ = 1 + β, where scalar bounds hold."""
    zeros = torch.zeros(SBM.num_nodes, 1, dtype=f64)
    L = advdiff.Generator(advdiff.Attention(zeros, zeros), SBM.velocity(), beta)
    P = np.full((1, SBM.num_nodes, SBM.num_nodes), 1.0 / SBM.num_nodes) + beta * normalized(SBM.adjacency, "symmetric")
    return Problem(L, torch.eye(SBM.num_nodes, dtype=f64), P)


# ------------------------------------------------------------------------------------------------------ Taylor


@pytest.mark.parametrize("name", ["undirected", "directed_weighted", "batch_unsorted"])
@pytest.mark.parametrize("order", [1, 2, 3, 4, 5])
def test_taylor_has_the_order_of_its_degree(name: str, kind: str, order: int) -> None:
    problem, time = make_problem(BY_NAME[name], kind, heads=3), 1.0
    expected = problem.exponential(time)
    steps = [16, 24, 32, 48, 64]
    errors = [
        relative_error(advdiff.exponential(problem.L, problem.Z, time, "taylor", order=order, steps=s), expected)
        for s in steps
    ]
    assert slope(np.log([time / s for s in steps]), np.log(errors)) == pytest.approx(order, abs=0.15)


def taylor_tail(radius: float, time: float, degree: int) -> float:
    """e^{-T} Σ_{k>m} (ρT)^k/k!."""
    terms = [(radius * time) ** k / math.factorial(k) for k in range(degree + 1, degree + 60)]
    return math.exp(-time) * sum(terms)


def chebyshev_tail(radius: float, time: float, degree: int) -> float:
    """e^{-T} Σ_{k>m} 2 I_k(ρT), since |T_k| ≤ 1 on the spectrum."""
    k = np.arange(degree + 1, degree + 60)
    return 2.0 * math.exp(-time) * float(scipy.special.iv(k, radius * time).sum())


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("method, tail", [("taylor", taylor_tail), ("chebyshev", chebyshev_tail)])
def test_error_falls_below_the_tail_and_faster_than_any_geometric_rate(method: str, tail, beta: float) -> None:
    problem, time = uniform_problem(beta), 2.0
    exact = scipy.linalg.expm(time * (problem.P[0] - problem.eye))
    options = {"steps": 1} if method == "taylor" else {}
    degrees = list(range(2, 15))
    errors = []
    for degree in degrees:
        value = advdiff.exponential(problem.L, problem.Z, time, method, order=degree, **options)
        errors.append(float(np.linalg.norm(value.numpy() - exact, 2)))
        assert errors[-1] <= tail(1.0 + beta, time, degree) * (1 + 1e-9) + 1e-14
    clear = [e for e in errors if e > 1e-12]
    assert len(clear) >= 6
    ratios = np.array(clear[2:]) / np.array(clear[:-2])  # over two degrees: odd and even ones differ
    assert np.all(np.diff(ratios) < 0), "each ratio is smaller than the one before: super-geometric"


def test_chebyshev_needs_fewer_products_than_taylor_on_an_undirected_graph() -> None:
    """Half of the reason why ``auto`` prefers it there."""
    problem = uniform_problem()
    for time in (1.0, 4.0, 10.0):
        work = {
            method: advdiff.exponential(
                problem.L, problem.Z, time, method, 1e-8, return_solution=True
            ).statistics.products
            for method in ("taylor", "chebyshev")
        }
        assert work["chebyshev"] < work["taylor"]


# ---------------------------------------------------------------------------------------------------- rational


def operator_error(problem: Problem, time: float, order: int, shift: float | None = None) -> float:
    """‖r(L) − e^{-LT}‖₂ / ‖e^{-LT}‖₂ with every sparse solve exact to rounding."""
    exact = scipy.linalg.expm(time * (problem.P[0] - problem.eye))
    eye = torch.eye(len(problem.eye), dtype=f64)
    value = advdiff.exponential(problem.L, eye, time, "rational", 1e-15, order=order, shift=shift)
    return float(np.linalg.norm(value.numpy() - exact, 2) / np.linalg.norm(exact, 2))


@pytest.mark.parametrize(
    "problem, time, low, high",
    [
        pytest.param(make_problem(SBM, "row", 0.5), 1.0, 8.5, 10.2, id="row"),
        # At T = 5 the error of a non-normal matrix is up to 2.2 times that of its eigenvalues (theory §10).
        pytest.param(make_problem(SBM, "row", 0.5), 5.0, 8.0, 10.2, id="row_later"),
        pytest.param(uniform_problem(0.5), 1.0, 9.0, 9.6, id="normal"),
        pytest.param(uniform_problem(0.5), 5.0, 9.0, 9.6, id="normal_later"),
    ],
)
def test_rational_gains_a_factor_of_nine_per_pole(problem: Problem, time: float, low: float, high: float) -> None:
    """Theory §10: about 9.3 per order on the shifted L (Halphen's constant 9.289)."""
    orders = list(range(2, 11))
    errors = [operator_error(problem, time, order) for order in orders]
    assert low <= math.exp(-slope(orders, np.log(errors))) <= high


#: Theory §10, relative 2-norm error on an SBM, row-normalised, β = 0.5: (T, r) → raw, shifted.
TABLE = {
    (1.0, 1): (4.0, 6e-2),
    (1.0, 4): (1e-2, 9e-5),
    (1.0, 8): (1e-5, 2e-8),
    (1.0, 14): (3e-10, 4e-14),
    (5.0, 1): (1.0, 6e-2),
    (5.0, 4): (0.85, 1e-4),
    (5.0, 8): (9e-2, 2e-8),
    (5.0, 14): (4e-5, 4e-14),
}


@pytest.mark.parametrize("time, order", TABLE)
def test_the_shift_is_needed(time: float, order: int) -> None:
    """Unshifted, L's eigenvalue −β lies outside the half-line on which the poles are good."""
    problem = make_problem(SBM, "row", 0.5)
    raw, shifted = TABLE[time, order]
    assert operator_error(problem, time, order, shift=0.0) == pytest.approx(raw, rel=1.0)
    if order < 14:
        assert operator_error(problem, time, order) == pytest.approx(shifted, rel=1.0)
    else:
        assert operator_error(problem, time, order) <= 1e-12  # down to rounding
