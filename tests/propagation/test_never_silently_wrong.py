"""Long times, directed graphs, large numbers, half precision: right, or a warning or error by name."""

from __future__ import annotations

import warnings

import pytest
import scipy.linalg
import torch
from torch import Tensor

import advdiff
from tests.cases import GraphCase, block_model
from tests.reference import leaf, randn, relative_error

f32, f64 = torch.float32, torch.float64
CYCLE = GraphCase("cycle", 100, [(u, (u + 1) % 100) for u in range(100)])
SBM = block_model((40, 40), 0.3, 0.05)
METHODS = ("dense", "taylor", "krylov", "chebyshev")


def flow(L: advdiff.Generator, Z: Tensor, time: float) -> torch.Tensor:
    """e^{-LT}Z by scipy, in float64, of one head."""
    return scipy.linalg.expm(-time * L.to_dense().double().detach().numpy()) @ Z.detach().double().numpy()


def test_dense_does_not_overflow_where_the_result_is_small() -> None:
    x = randn(30, 4, dtype=f32)
    L = advdiff.Generator(advdiff.Attention(x, x))
    solution = advdiff.exponential(L, x, 100.0, return_solution=True)
    assert solution.statistics.method == "dense"
    error = relative_error(solution.value, flow(L, x, 100.0))
    assert error <= 1e-5 and 0.1 * error <= solution.statistics.estimated_error


@pytest.mark.parametrize("time", [16.0, 20.0, 100.0])
def test_gradients_on_a_directed_cycle(time: float) -> None:
    beta, Z, G = torch.tensor(0.5, dtype=f64, requires_grad=True), leaf(100, 2), randn(100, 2)
    V = CYCLE.velocity("symmetric")
    found = torch.autograd.grad(advdiff.exponential(advdiff.Generator(None, V, beta), Z, time, tol=1e-8), (beta, Z), G)
    dense = torch.linalg.matrix_exp(time * (beta * V.to_dense() - torch.eye(100, dtype=f64))) @ Z
    for actual, expected in zip(found, torch.autograd.grad(dense, (beta, Z), G), strict=True):
        assert float((actual - expected).norm() / expected.norm()) <= 1e-7


@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize("method", METHODS)
def test_large_numbers_do_not_switch_the_test_of_convergence_off(method: str, dtype: torch.dtype) -> None:
    """Terms of Chebyshev's series reach 1e19 on a directed graph, where squares of float32 numbers overflow."""
    L, Z = advdiff.Generator(None, CYCLE.velocity("row", dtype), 2.0), randn(100, 2, dtype=dtype)
    for scale in (1.0, 1e20):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solution = advdiff.exponential(L, scale * Z, 40.0, method, return_solution=True)
        error = relative_error(solution.value, scale * flow(L, Z, 40.0))
        named = any(issubclass(w.category, advdiff.AccuracyWarning) for w in caught)
        assert error <= 1e-5 or named
        assert error <= 10 * solution.statistics.estimated_error


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("time", [500.0, 1000.0])
def test_what_single_precision_cannot_give_is_said(method: str, time: float) -> None:
    x = randn(80, 4, dtype=f32)
    L = advdiff.Generator(advdiff.Attention(x, x), SBM.velocity("row", f32), 0.02)
    wide = advdiff.Generator(advdiff.Attention(x.double(), x.double()), SBM.velocity("row"), 0.02)
    with pytest.warns(advdiff.AccuracyWarning, match="float64.*shorter time.*tol"):
        solution = advdiff.exponential(L, x, time, method, return_solution=True)
    assert relative_error(solution.value, flow(wide, x, time)) <= 10 * solution.statistics.estimated_error


@pytest.mark.parametrize("method", [*METHODS, "rational", "ode"])
@pytest.mark.parametrize("case", [SBM, CYCLE], ids=lambda case: case.name)
def test_overflow_has_one_name(method: str, case: GraphCase) -> None:
    L, Z = advdiff.Generator(None, case.velocity("row", f32), 1.5), torch.ones(case.num_nodes, 1)
    if method == "rational" and case is CYCLE:
        pytest.skip("its series does not converge for β > 1 on a directed graph, which is another error")
    with pytest.raises(advdiff.FlowOverflowError, match="shorter time or a smaller β"):
        advdiff.exponential(L, Z, 200.0, method)


def test_underflow_is_said() -> None:
    """e^{-LT} is invertible, so no state but 0 becomes 0."""
    L = advdiff.Generator(None, SBM.velocity("row", f32), 0.1)
    for method in METHODS:
        with pytest.warns(advdiff.AccuracyWarning):
            advdiff.exponential(L, torch.ones(80, 1), 200.0, method)


@pytest.mark.parametrize("method", ["taylor", "chebyshev"])
def test_a_time_that_nobody_would_wait_for_is_refused(method: str) -> None:
    L = advdiff.Generator(None, CYCLE.velocity("row", f32), 0.5)
    with pytest.raises(ValueError, match="shorter time"):
        advdiff.exponential(L, torch.ones(100, 1), 1e9, method)
    Z = torch.ones(100, 1, requires_grad=True)
    beta = torch.tensor(1.0, requires_grad=True)
    value = advdiff.exponential(advdiff.Generator(None, CYCLE.velocity("row", f32), beta), Z, 1e5, "dense")
    with pytest.raises(ValueError, match="shorter time"):
        value.sum().backward()


SOLVERS = {
    "exponential": lambda L, Z: advdiff.exponential(L, Z, 1.0),
    "resolvent": lambda L, Z: advdiff.resolvent(L, Z, 1.0),
    "powers": lambda L, Z: advdiff.powers(L.propagator, Z, 2)[2],
    "product": lambda L, Z: L @ Z,
    "V": lambda L, Z: L.velocity @ Z,
    "C": lambda L, Z: L.coupling @ Z,
}


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(solver, dtype: torch.dtype) -> None:
    query, Z = randn(80, 4, dtype=dtype).requires_grad_(), randn(80, 3, dtype=dtype).requires_grad_()
    V = SBM.velocity("row", f32)
    value = solver(advdiff.Generator(advdiff.Attention(query, query), V, 0.5), Z)
    wide = query.detach().float()
    expected = solver(advdiff.Generator(advdiff.Attention(wide, wide), V, 0.5), Z.detach().float())
    assert value.dtype == dtype
    torch.testing.assert_close(value, expected.to(dtype))
    (gradient,) = torch.autograd.grad(value.sum(), Z)
    assert gradient.dtype == dtype and bool(gradient.isfinite().all())


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
def test_autocast_changes_nothing(solver) -> None:
    query, Z = randn(80, 4, dtype=f32).requires_grad_(), randn(80, 3, dtype=f32).requires_grad_()
    V = SBM.velocity("row", f32)

    def run() -> tuple[Tensor, Tensor]:
        value = solver(advdiff.Generator(advdiff.Attention(query, query), V, 0.5), Z)
        return value, torch.autograd.grad(value.square().sum(), Z)[0]

    expected = run()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = run()
    for actual, wanted in zip(found, expected, strict=True):
        assert actual.dtype == f32
        torch.testing.assert_close(actual, wanted)


@pytest.mark.parametrize("size", [1e-30, 1e-22, 1e19, 1e30])
def test_queries_of_any_size_have_a_direction(size: float) -> None:
    query, key = randn(6, 3, dtype=f32), randn(6, 3, dtype=f32)
    expected = advdiff.Attention(query, key).to_dense()
    torch.testing.assert_close(advdiff.Attention(size * query, size * key).to_dense(), expected)
    scaled = (size * query).requires_grad_()
    advdiff.Attention(scaled, key).to_dense().square().sum().backward()
    unscaled = query.clone().requires_grad_()
    advdiff.Attention(unscaled, key).to_dense().square().sum().backward()
    torch.testing.assert_close(scaled.grad.double() * size, unscaled.grad.double(), rtol=1e-4, atol=1e-6)
