"""What ``exponential`` says about itself: the choice of ``auto``, the products it took, the error it expects."""

from __future__ import annotations

import warnings

import pytest
import torch

import advdiff
from tests.cases import BY_NAME, GraphCase, block_model
from tests.reference import Problem, make_problem, relative_error

SBM = block_model((40, 40), 0.3, 0.05)
AUTO = [
    ("small", make_problem(BY_NAME["undirected"]), "dense", "at most 64 nodes"),
    ("undirected", make_problem(SBM), "chebyshev", "undirected graph"),
    ("nonlocal", make_problem(SBM, terms="C"), "chebyshev", "undirected graph"),
    ("batch", make_problem(BY_NAME["batch_with_one_node_graph"]), "chebyshev", "undirected graph"),
    ("directed", make_problem(GraphCase("arcs", 80, SBM.edges[:200])), "taylor", "directed graph"),
]


@pytest.mark.parametrize("problem, method, reason", [pytest.param(*row[1:], id=row[0]) for row in AUTO])
def test_auto_says_what_it_chose_and_why(problem: Problem, method: str, reason: str) -> None:
    solution = advdiff.exponential(problem.L, problem.Z, 1.0, tol=1e-8, return_solution=True)
    value, statistics = solution.value, solution.statistics
    assert (statistics.method, statistics.condition) == (method, None)
    assert reason in statistics.reason
    assert (statistics.products == 0) == (method == "dense")
    assert statistics.estimated_error is not None
    assert relative_error(value, problem.exponential(1.0)) <= max(statistics.estimated_error, 1e-13) * 10 <= 1e-7
    asked = advdiff.exponential(problem.L, problem.Z, 1.0, method, 1e-8, return_solution=True)
    assert asked.statistics.reason == "asked for"
    assert torch.equal(asked.value, value)


@pytest.mark.parametrize("method", ["taylor", "krylov", "chebyshev", "rational", "ode"])
def test_products_are_counted_and_grow_with_the_tolerance(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = make_problem(SBM, "row")
    counted = 0
    product = advdiff.Velocity.add_product_

    def spy(*args: object, **options: object) -> torch.Tensor:
        nonlocal counted
        counted += 1
        return product(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(advdiff.Velocity, "add_product_", spy)
    work = []
    for tol in (1e-2, 1e-5, 1e-10):
        counted = 0
        statistics = advdiff.exponential(problem.L, problem.Z, 2.0, method, tol, return_solution=True).statistics
        assert statistics.products == counted
        work.append(counted)
    assert work[0] < work[1] < work[2]


def test_krylov_with_a_small_basis_keeps_the_tolerance() -> None:
    problem = make_problem(BY_NAME["undirected"])
    for order in (3, 5, 10):
        value = advdiff.exponential(problem.L, problem.Z, 1.0, "krylov", 1e-6, order=order)
        assert relative_error(value, problem.exponential(1.0)) <= 1e-6


@pytest.mark.parametrize("solve", [advdiff.exponential, advdiff.resolvent], ids=["exponential", "resolvent"])
@pytest.mark.parametrize("name", ["undirected", "batch_unsorted"])
def test_a_solution_is_the_value_with_its_statistics(solve, name: str) -> None:
    """The value is what a plain call returns, and carries the same gradient."""
    problem = make_problem(BY_NAME[name])
    query = problem.Z.clone().requires_grad_()
    L = advdiff.Generator(advdiff.Attention(query, query, BY_NAME[name].batch_vector), problem.L.velocity, 0.5)
    plain, solution = solve(L, problem.Z, 2.0), solve(L, problem.Z, 2.0, return_solution=True)
    assert isinstance(solution, advdiff.Solution) and isinstance(solution.statistics, advdiff.Statistics)
    assert torch.equal(solution.value, plain)
    expected, found = (torch.autograd.grad(Y.square().sum(), query, retain_graph=True) for Y in (plain, solution.value))
    torch.testing.assert_close(found, expected)
    assert "tensor" not in repr(solution.statistics), "numbers, that keep nothing alive"


@pytest.mark.timeout(10)
def test_krylov_with_one_basis_vector_ends() -> None:
    problem = make_problem(BY_NAME["undirected"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        advdiff.exponential(problem.L, problem.Z, 1.0, "krylov", 1e-6, order=1)
