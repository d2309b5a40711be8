"""e^{-LT}Z by every method against scipy's ``expm`` of the matrix written from the definitions."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.linalg
import torch

import advdiff
from tests.cases import BETAS, BY_NAME, HEADS, GraphCase, block_model, some, star
from tests.reference import STATES, Problem, hub_attention, make_problem, relative_error

f32, f64 = torch.float32, torch.float64
METHODS = ("dense", "taylor", "krylov", "chebyshev", "rational")
TIMES = (0.0, 0.3, 1.0, 5.0)
TOLERANCES = ((f64, 1e-3), (f64, 1e-6), (f64, 1e-10), (f32, 1e-5))
SBM = block_model((40, 40), 0.3, 0.05)


def check(problem: Problem, time: float, method: str, tol: float, may_warn: bool = False) -> None:
    """The relative error is within ``tol``, or the method warns that it is not and by how much."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = advdiff.exponential(problem.L, problem.Z, time, method, tol, return_solution=True)
        value, statistics = solution.value, solution.statistics
    error = relative_error(value, problem.exponential(time))
    bound = statistics.estimated_error if caught and may_warn else tol
    setting = f"{method}, T={time}, tol={tol}, {problem.Z.dtype}, {problem.L}"
    assert may_warn or not caught, f"{setting}: {caught[0].message}"
    assert bound is not None
    assert error <= bound, f"{setting}: error {error:.1e} > {bound:.1e}, {statistics}"
    assert value.dtype == problem.Z.dtype


def problems(case: GraphCase, kind: str) -> Iterator[tuple[Problem, float, float]]:
    """Every β, T and tolerance; heads and the shape of Z take turns."""
    shapes = itertools.cycle(itertools.product(HEADS, STATES))
    for beta, time, (dtype, tol) in itertools.product(BETAS, TIMES, TOLERANCES):
        heads, state = next(shapes)
        yield make_problem(case, kind, beta, heads, dtype, state), time, tol


@pytest.mark.parametrize("method", METHODS)
def test_tolerance(case: GraphCase, kind: str, method: str) -> None:
    # In a directed graph the spectrum is complex, where 14 poles have a limit; the method must say so.
    may_warn = method == "rational" and not case.is_undirected
    for problem, time, tol in problems(case, kind):
        check(problem, time, method, tol, may_warn)


@some("undirected", "directed_weighted", "isolated", "batch_unsorted", "one_node")
def test_tolerance_of_the_integrator(case: GraphCase, kind: str) -> None:
    for beta, heads, (dtype, tol) in ((0.5, 3, TOLERANCES[1]), (1.0, None, TOLERANCES[3]), (0.2, None, TOLERANCES[2])):
        for time in TIMES:
            check(make_problem(case, kind, beta, heads, dtype), time, "ode", tol)


@some("undirected", "weighted", "isolated", "directed", "star", "batch_with_one_node_graph")
@pytest.mark.parametrize("terms", ["C", "V"])
@pytest.mark.parametrize("method", METHODS)
def test_tolerance_of_one_term_alone(case: GraphCase, kind: str, method: str, terms: str) -> None:
    """Non-local diffusion e^{-(I-C)T} and local diffusion e^{-(I-V)T}."""
    may_warn = method == "rational" and terms == "V" and not case.is_undirected
    for time, (dtype, tol) in itertools.product(TIMES, TOLERANCES):
        check(make_problem(case, kind, 1.0, None, dtype, terms=terms), time, method, tol, may_warn)


def _leaf_of_a_star(leaves: int) -> Problem:
    """Z lives on one leaf of a star: V Z is √m times smaller than V² Z, so single terms mislead."""
    problem = make_problem(star(leaves), "row", 1.0, terms="V")
    return Problem(problem.L, torch.eye(leaves + 1, dtype=f64)[:, 1], problem.P)


HARD = {
    # The result is e^{(1+β)T}/e^{(1+ρ(P))T} smaller than the bound e^{βT}‖Z‖ on which coefficients are scaled.
    "no_edges": lambda: (make_problem(BY_NAME["no_edges"], "row", 1.0), 30.0, 1e-6),
    "no_edges_float32": lambda: (make_problem(BY_NAME["no_edges"], "row", 1.0, dtype=f32), 10.0, 1e-5),
    "local_diffusion": lambda: (make_problem(BY_NAME["undirected"], "row", 1.0, terms="V"), 20.0, 1e-6),
    "local_diffusion_tight": lambda: (make_problem(BY_NAME["undirected"], "row", 1.0, terms="V"), 20.0, 1e-10),
    "long_time": lambda: (make_problem(BY_NAME["batch_unsorted"], "symmetric", 1.0, 3), 20.0, 1e-6),
    # ‖P‖₂ and ρ(P) are far beyond 1 + β.
    "hub_attention": lambda: (hub_attention(100), 3.0, 1e-8),
    "hub_attention_row": lambda: (hub_attention(100, "row"), 3.0, 1e-8),
    "leaf_of_a_star": lambda: (_leaf_of_a_star(100), 3.0, 1e-3),
    "leaf_of_a_large_star": lambda: (_leaf_of_a_star(400), 5.0, 1e-2),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", HARD)
def test_hard_problems_keep_the_tolerance_or_say_so(name: str, method: str) -> None:
    problem, time, tol = HARD[name]()
    check(problem, time, method, tol, may_warn=True)


@pytest.mark.parametrize("method", METHODS)
def test_scalars_by_hand(method: str) -> None:
    """One node: C = 1, V = 0, L = 0, the flow stands still. Without coupling L = 1 and z decays as e^{-T}."""
    Z = torch.tensor([2.0], dtype=f64)
    one, V = torch.ones(1, 1, dtype=f64), BY_NAME["one_node"].velocity()
    still = advdiff.Generator(advdiff.Attention(one, one), V, 0.5)
    assert float(advdiff.exponential(still, Z, 1.0, method, 1e-10)) == pytest.approx(2.0, rel=1e-10)
    decaying = advdiff.Generator(None, V, 0.5)
    assert float(advdiff.exponential(decaying, Z, 1.0, method, 1e-10)) == pytest.approx(2.0 * np.exp(-1.0), rel=1e-10)


def test_two_nodes_by_hand() -> None:
    """K₂ with uniform C: eigenvalues of L are −β on (1, 1) and 1 + β on (1, −1)."""
    zeros = torch.zeros(2, 1, dtype=f64)
    V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2, dtype=f64)
    L = advdiff.Generator(advdiff.Attention(zeros, zeros), V, beta=0.5)
    grown, damped = np.exp(0.5 * 2.0), np.exp(-1.5 * 2.0)
    value = advdiff.exponential(L, torch.tensor([3.0, 1.0], dtype=f64), 2.0)
    assert value.tolist() == pytest.approx([2 * grown + damped, 2 * grown - damped], rel=1e-12)


def test_zero_states_stay_zero() -> None:
    problem = make_problem(SBM, "row")
    for method in (*METHODS, "ode"):
        value = advdiff.exponential(problem.L, torch.zeros(80, 2, dtype=f64), 1.0, method)
        assert torch.equal(value, torch.zeros(80, 2, dtype=f64))


@pytest.mark.parametrize("method", METHODS[1:])
def test_a_tolerance_below_rounding_is_met_as_far_as_rounding_allows(method: str) -> None:
    """1e-14 in float32: no endless iteration, no warning about what no method can do, single precision reached."""
    problem = make_problem(SBM, "row", dtype=f32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = advdiff.exponential(problem.L, problem.Z, 2.0, method, 1e-14, return_solution=True)
        value, statistics = solution.value, solution.statistics
    assert relative_error(value, problem.exponential(2.0)) <= 2e-6
    assert statistics.products <= 60


def test_pure_attention_has_a_closed_form() -> None:
    """Theory §3: e^{-(I-C)T}Z = e^{-T}(Z + U Tφ₁(T WᵀU) WᵀZ) with the factors C = U Wᵀ."""
    problem = make_problem(SBM, terms="C")
    C, time = problem.L.coupling, 2.0
    U, W = C.left[:, 0].numpy(), C.right[:, 0].numpy()
    augmented = np.zeros((2 * C.rank, 2 * C.rank))
    augmented[: C.rank] = time * np.hstack([W.T @ U, np.eye(C.rank)])
    phi = scipy.linalg.expm(augmented)[: C.rank, C.rank :]  # T φ₁(T WᵀU)
    expected = np.exp(-time) * (problem.Z.numpy() + U @ (phi @ (W.T @ problem.Z.numpy())))
    assert relative_error(advdiff.exponential(problem.L, problem.Z, time, tol=1e-13), expected) <= 1e-12


def test_dense_has_the_precision_of_the_state():
    """A velocity without weights has torch's default precision, which must not round a float64 state."""
    V = advdiff.normalize_adjacency(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), 3)
    assert V.dtype == torch.float32
    Z = torch.tensor([[1.0], [2.0], [4.0]], dtype=torch.float64)
    root = 2**-0.5
    A = np.array([[0, root, 0], [root, 0, root], [0, root, 0]])
    out = advdiff.exponential(advdiff.Generator(None, V, 1.0), Z, method="dense")
    np.testing.assert_allclose(out.numpy(), scipy.linalg.expm(A - np.eye(3)) @ Z.numpy(), rtol=1e-13)
