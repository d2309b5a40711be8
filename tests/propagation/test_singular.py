"""The singular points of θI + L (theory §4): an error at them, a warning with the condition number near them."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
import torch

import advdiff
from advdiff.propagation.inverse import Diagnosis
from tests.cases import BETAS, WITHOUT_ISOLATED, GraphCase, block_model, both_ways, each
from tests.reference import Problem, attention, hub_attention, make_problem, normalized, relative_error

f32, f64 = torch.float32, torch.float64
METHODS = ("dense", "lowrank")
SBM = block_model((40, 40), 0.3, 0.05)


@pytest.fixture(params=METHODS)
def method(request: pytest.FixtureRequest) -> str:
    return request.param


@each([*WITHOUT_ISOLATED, SBM])
def test_row_normalised_is_singular_exactly_at_beta(case: GraphCase, dtype: torch.dtype, method: str) -> None:
    for beta, tol in itertools.product(BETAS, (1e-12, 1e-6, 1e-3)):
        problem = make_problem(case, "row", beta, 3, dtype)
        with pytest.raises(advdiff.SingularGeneratorError, match=r"singular.*choose a larger θ"):
            advdiff.resolvent(problem.L, problem.Z, beta, method, tol)


@each([*WITHOUT_ISOLATED, SBM])
def test_near_beta_a_warning_gives_the_condition_number(case: GraphCase, method: str) -> None:
    problem = make_problem(case, "row", 0.5)
    theta = 0.5 + 1e-5
    with pytest.warns(advdiff.NearSingularWarning, match=r"condition number [1-9]\.[0-9]e\+05.*θ\* = 0\.5"):
        solution = advdiff.resolvent(problem.L, problem.Z, theta, method, 1e-10, return_solution=True)
    # ‖θI + L‖_∞ ‖(θI + L)⁻¹‖_∞ with the second factor 1/(θ − β) exactly.
    assert 1.0 / 1e-5 <= solution.statistics.condition <= 4.0 / 1e-5
    assert relative_error(solution.value, problem.resolvent(theta)) <= 1e-6


def test_near_beta_float32_warns_or_refuses(method: str) -> None:
    """Never silent: single precision reaches its limit earlier."""
    for distance in (1e-2, 1e-3, 1e-4, 1e-5):
        problem = make_problem(SBM, "row", 0.5, dtype=f32)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                X = advdiff.resolvent(problem.L, problem.Z, 0.5 + distance, method)
            except advdiff.SingularGeneratorError:
                assert distance < 1e-3
                continue
        assert relative_error(X, problem.resolvent(0.5 + distance)) <= 1e-5 / distance
        assert any(w.category is advdiff.NearSingularWarning for w in caught) == (distance < 3e-3)


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_theta_at_or_below_beta_minus_one(beta: float, dtype: torch.dtype, kind: str) -> None:
    """There (1 + θ)I − βV itself is singular or indefinite."""
    problem = make_problem(SBM, kind, beta, None, dtype)
    for theta in (beta - 1.0, beta - 1.2, -3.0):
        for indefinite in (False, True):
            with pytest.raises(advdiff.SingularVelocityError, match=r"not above β − 1.*larger θ or a smaller β"):
                advdiff.resolvent(problem.L, problem.Z, theta, "lowrank", indefinite=indefinite)
        with pytest.raises(ValueError, match="choose a larger θ"):
            advdiff.resolvent(problem.L, problem.Z, theta, "dense")


def test_both_errors_are_value_errors() -> None:
    assert issubclass(advdiff.SingularGeneratorError, ValueError)
    assert issubclass(advdiff.SingularVelocityError, ValueError)
    assert issubclass(advdiff.NearSingularWarning, UserWarning)


@pytest.mark.parametrize("kind, theta_star", [("symmetric", 2.854), ("row", 1.0)])
def test_hub_attention_moves_the_singular_value(kind: str, theta_star: float, method: str) -> None:
    """Theory §4: 100 leaves, β = 1: λ_max(P) = (1 + √(1 + 4β√m + 4β²))/2 = 3.854, so θ > β is not enough."""
    problem = hub_attention(100, kind)
    if kind == "symmetric":
        assert problem.singular_theta + 1.0 == pytest.approx((1 + np.sqrt(1 + 4 * 10 + 4)) / 2)
    assert problem.singular_theta == pytest.approx(theta_star, abs=1e-3)
    with pytest.raises(advdiff.SingularGeneratorError, match="below the singular value"):
        advdiff.resolvent(problem.L, problem.Z, theta_star - 0.35, method)
    X = advdiff.resolvent(problem.L, problem.Z, theta_star + 0.35, method, 1e-10)
    assert relative_error(X, problem.resolvent(theta_star + 0.35)) <= 1e-9


@each([*WITHOUT_ISOLATED, SBM])
def test_diagnosis_brackets_the_singular_value(case: GraphCase, kind: str) -> None:
    """Collatz–Wielandt: θ − 1/min x ≤ θ* ≤ θ − 1/max x for x = (θI + L)⁻¹1 > 0."""
    for problem in (make_problem(case, kind, 0.5), hub_attention(20, kind)):
        star = problem.singular_theta
        for theta in (star + 0.1, star + 1.0, star + 5.0):
            x = np.linalg.solve((1 + theta) * problem.eye - problem.P[0], np.ones(len(problem.eye)))
            diagnosis = Diagnosis.of(problem.L.propagator, theta, torch.tensor(x)[:, None, None])
            assert diagnosis.is_m_matrix
            assert theta - 1 / x.min() - 1e-9 <= star <= diagnosis.singular_theta + 1e-9
            assert diagnosis.singular_theta < theta
        below = np.linalg.solve((1 + star - 0.07) * problem.eye - problem.P[0], np.ones(len(problem.eye)))
        assert not Diagnosis.of(problem.L.propagator, star - 0.07, torch.tensor(below)[:, None, None]).is_m_matrix


def test_one_head_or_graph_that_is_singular_is_enough(method: str) -> None:
    """Three graphs, of which only the one-node graph (P = 1) has θ* = 0 and the others θ* = β."""
    case = GraphCase("mixed", 5, both_ways([(0, 1), (3, 4)]), batch=[0, 0, 1, 2, 2])
    problem = make_problem(case, "row", 0.5, 3)
    for theta in (0.5, 0.3):
        with pytest.raises(advdiff.SingularGeneratorError):
            advdiff.resolvent(problem.L, problem.Z, theta, method, 1e-12)
    assert relative_error(advdiff.resolvent(problem.L, problem.Z, 0.7, method), problem.resolvent(0.7)) <= 1e-6


def _two_communities(kind: str) -> Problem:
    """Attention within two communities joined by one edge: P has a second eigenvalue not far below its largest."""
    case = GraphCase("two", 6, both_ways([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3)]))
    query = torch.tensor([[1.0]] * 3 + [[-1.0]] * 3, dtype=f64)
    L = advdiff.Generator(advdiff.Attention(query, query), case.velocity(kind), 0.5)
    P = attention(query.numpy(), query.numpy()) + 0.5 * normalized(case.adjacency, kind)
    return Problem(L, torch.tensor(np.random.default_rng(7).normal(size=(6, 2))), P[None])


def test_indefinite_solves_notice_the_other_singular_values(kind: str, method: str) -> None:
    """Below θ* a warning alone is not enough where another eigenvalue of P equals 1 + θ."""
    problem = _two_communities(kind)
    theta = np.sort(np.linalg.eigvals(problem.P[0]).real)[-2] - 1.0
    assert theta < problem.singular_theta - 0.1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            solution = advdiff.resolvent(problem.L, problem.Z, theta, method, indefinite=True, return_solution=True)
        except advdiff.SingularGeneratorError:
            return
    assert solution.statistics.condition > 1e6
    assert any("condition number" in str(warning.message) for warning in caught)
