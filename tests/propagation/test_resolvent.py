"""(θI + L)⁻¹Z, dense and low-rank, against numpy's solver, and what it means (theory §10, §11)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.linalg
import torch

import advdiff
from tests.cases import BETAS, BY_NAME, HEADS, WITHOUT_ISOLATED, GraphCase, block_model, each, some
from tests.reference import STATES, Problem, make_problem, relative_error

f64 = torch.float64
METHODS = ("dense", "lowrank")
RTOL = {torch.float64: 1e-9, torch.float32: 1e-5}
SBM = block_model((100, 100), 0.1, 0.01)


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return request.param


def solve(problem: Problem, theta: float, method: str, **options: object) -> torch.Tensor:
    tol = 1e-10 if problem.Z.dtype == f64 else 1e-6
    return advdiff.resolvent(problem.L, problem.Z, theta, method, tol, **options)


def test_agrees_with_numpy(case: GraphCase, kind: str, dtype: torch.dtype, method: str) -> None:
    for i, beta in enumerate(BETAS):
        for j, heads in enumerate(HEADS):
            problem = make_problem(case, kind, beta, heads, dtype, STATES[(i + j) % 3])
            for distance in (0.1, 0.5, 2.0):
                theta = problem.singular_theta + distance
                X = solve(problem, theta, method)
                assert X.dtype == dtype
                assert relative_error(X, problem.resolvent(theta)) <= RTOL[dtype], (beta, heads, theta)


def test_agrees_with_numpy_just_above_the_singular_value(case: GraphCase, kind: str, method: str) -> None:
    """|θ − θ*| = 0.05, in float64."""
    problem = make_problem(case, kind, 0.5, 3)
    theta = problem.singular_theta + 0.05
    assert relative_error(solve(problem, theta, method), problem.resolvent(theta)) <= 1e-9


@some("path", "undirected", "weighted", "directed", "star", "batch_unsorted")
def test_below_the_singular_value_on_request(case: GraphCase, kind: str, method: str) -> None:
    for beta in BETAS[1:]:
        problem = make_problem(case, kind, beta, None)
        for theta in np.linspace(beta - 1.0, problem.singular_theta, 7)[1:-1]:
            if problem.distance_from_singular(theta) < 0.05:
                continue
            with pytest.raises(advdiff.SingularGeneratorError, match="indefinite=True"):
                solve(problem, theta, method)
            with pytest.warns(advdiff.NearSingularWarning, match="below the singular value"):
                X = solve(problem, theta, method, indefinite=True)
            assert relative_error(X, problem.resolvent(theta)) <= 1e-9


@pytest.mark.parametrize("terms", ["C", "V"])
def test_one_term_alone(case: GraphCase, kind: str, dtype: torch.dtype, method: str, terms: str) -> None:
    problem = make_problem(case, kind, 1.0, None, dtype, terms=terms)
    theta = 0.4
    assert relative_error(solve(problem, theta, method), problem.resolvent(theta)) <= RTOL[dtype]


@pytest.mark.parametrize("tol", [1e-2, 1e-5, 1e-8, 1e-11])
def test_lowrank_keeps_any_tolerance_with_few_products(kind: str, tol: float) -> None:
    """Design: about 12–20 sparse products for 1e-6."""
    problem = make_problem(SBM, kind, 0.5, 3)
    solution = advdiff.resolvent(problem.L, problem.Z, 1.0, "lowrank", tol, return_solution=True)
    X, statistics = solution.value, solution.statistics
    assert relative_error(X, problem.resolvent(1.0)) <= tol
    assert statistics.estimated_error <= tol
    assert statistics.products <= 8 - 2.0 * np.log10(tol)


def test_two_nodes_by_hand(method: str) -> None:
    """K₂ with uniform C: θI + L is θ − β on (1, 1) and θ + 1 + β on (1, −1)."""
    zeros = torch.zeros(2, 1, dtype=f64)
    V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2, dtype=f64)
    L = advdiff.Generator(advdiff.Attention(zeros, zeros), V, beta=0.5)
    X = advdiff.resolvent(L, torch.tensor([3.0, 1.0], dtype=f64), 1.5, method, 1e-12)
    assert X.tolist() == pytest.approx([2 / 1.0 + 1 / 3.0, 2 / 1.0 - 1 / 3.0], rel=1e-11)


# ----------------------------------------------------------------------------------------------- what it means


@some("undirected", "directed_weighted", "isolated", "batch_with_one_node_graph")
def test_is_one_step_of_implicit_euler(case: GraphCase, kind: str, method: str) -> None:
    """X = θ(θI + L)⁻¹Z solves X + (1/θ) L X = Z."""
    problem, theta = make_problem(case, kind, 0.5, state="matrix"), 1.7
    X = theta * solve(problem, theta, method)
    residual = X + problem.L @ X / theta - problem.Z
    assert float(residual.norm() / problem.Z.norm()) <= 1e-10
    step = problem.act(np.linalg.inv(problem.eye + (problem.eye - problem.P) / theta))
    assert relative_error(X, step) <= 1e-9


@some("undirected", "directed", "isolated")
def test_is_the_mean_of_the_flow_over_an_exponential_time(case: GraphCase, kind: str, method: str) -> None:
    """θ(θI + L)⁻¹ = E[e^{-Lτ}], τ ~ Exp(θ), by Gauss–Laguerre quadrature of scipy's ``expm``."""
    problem, theta = make_problem(case, kind, 0.2), 2.0
    points, weights = np.polynomial.laguerre.laggauss(40)
    flows = np.stack([scipy.linalg.expm(s / theta * (problem.P[0] - problem.eye)) for s in points])
    mean = np.einsum("t,tuv->uv", weights, flows)
    assert relative_error(theta * solve(problem, theta, method), problem.act(mean[None])) <= 1e-9


@each(WITHOUT_ISOLATED)
def test_row_normalised_inverse_is_nonnegative_with_known_norm(case: GraphCase, method: str) -> None:
    """Theory §4: for θ > β an M-matrix with ‖(θI + L)⁻¹‖_∞ = 1/(θ − β) exactly."""
    L = make_problem(case, "row", 0.5).L
    eye = torch.eye(case.num_nodes, dtype=f64)
    for theta in (0.6, 1.0, 3.0):
        inverse = advdiff.resolvent(L, eye, theta, method, 1e-12)
        assert float(inverse.min()) >= -1e-11
        assert inverse.sum(1).numpy() == pytest.approx(np.full(case.num_nodes, 1 / (theta - 0.5)), rel=1e-9)


# --------------------------------------------------------------------------------------------------- the statistics


def test_auto_says_what_it_chose_and_why() -> None:
    small, large = make_problem(BY_NAME["undirected"]), make_problem(SBM, heads=3)
    batch = make_problem(BY_NAME["batch_with_one_node_graph"])
    for problem, method, reason in (
        (small, "dense", "at most 128 nodes"),
        (large, "lowrank", "capacitance matrix"),
        (batch, "dense", "a dense solve in each"),
    ):
        solution = advdiff.resolvent(problem.L, problem.Z, 1.5, return_solution=True)
        X, statistics = solution.value, solution.statistics
        assert statistics.method == method
        assert reason in statistics.reason
        assert (statistics.products == 0) == (method == "dense")
        assert statistics.estimated_error is not None
        assert relative_error(X, problem.resolvent(1.5)) <= 1e-6
        asked = advdiff.resolvent(problem.L, problem.Z, 1.5, method, return_solution=True).statistics
        assert asked.reason == "asked for"


def test_condition_number_is_the_infinity_norm_one(case: GraphCase, kind: str, method: str) -> None:
    """‖θI + L‖_∞ ‖(θI + L)⁻¹‖_∞, from above: the first factor is bounded by 1 + θ + ‖P‖_∞."""
    for theta in (1.5, 4.0):
        problem = make_problem(case, kind, 0.5)
        statistics = advdiff.resolvent(problem.L, problem.Z, theta, method, 1e-10, return_solution=True).statistics
        matrix = (1.0 + theta) * problem.eye - problem.P[0]
        exact = np.linalg.cond(matrix, np.inf)
        assert exact * (1 - 1e-6) <= statistics.condition <= 2.5 * exact


def test_no_warning_far_from_the_singular_value(case: GraphCase, kind: str, method: str) -> None:
    problem = make_problem(case, kind, 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(problem, problem.singular_theta + 0.5, method)
