"""Several times from one pass, φ-functions, and a constant source, against dense references."""

from __future__ import annotations

import math

import pytest
import torch

import advdiff
from tests.cases import BY_NAME, GraphCase, block_model, some
from tests.reference import leaf, make_problem, relative_error

f64 = torch.float64
TIMES = (2.0, 0.0, 0.5, 6.0)
SBM = block_model((40, 40), 0.3, 0.05)


@some("undirected", "directed", "batch_unsorted")
@pytest.mark.parametrize("method", ["dense", "taylor", "krylov", "chebyshev", "rational", "ode"])
@pytest.mark.filterwarnings("ignore::advdiff.AccuracyWarning")
def test_states_at_several_times(case: GraphCase, method: str) -> None:
    problem = make_problem(case, "row", 0.5, 2)
    states = advdiff.exponential(problem.L, problem.Z, torch.tensor(TIMES, dtype=f64), method, 1e-9)
    assert states.shape == (4, case.num_nodes, 2, 2)
    for time, state in zip(TIMES, states, strict=True):
        assert relative_error(state, problem.exponential(time)) <= 1e-7, time


@pytest.mark.parametrize("method", ["krylov", "chebyshev"])
def test_several_times_cost_as_much_as_the_largest(method: str) -> None:
    problem = make_problem(SBM)
    products = [
        advdiff.exponential(problem.L, problem.Z, T, method, return_solution=True).statistics.products
        for T in (torch.tensor(TIMES, dtype=f64), max(TIMES))
    ]
    assert products[0] == products[1]


def dense_phi(k: int, A: torch.Tensor) -> torch.Tensor:
    """φ_k(A) from the exponential of a block matrix, on autograd's tape."""
    n = A.size(0)
    block = torch.zeros((k + 1) * n, (k + 1) * n, dtype=f64)
    block[:n, :n] = A
    for i in range(k):
        block[i * n : (i + 1) * n, (i + 1) * n : (i + 2) * n] = torch.eye(n, dtype=f64)
    return torch.linalg.matrix_exp(block)[:n, k * n :]


@some("undirected", "directed")
@pytest.mark.parametrize("k", [0, 1, 2, 3])
@pytest.mark.parametrize("time", [0.0, 0.7, 30.0])
def test_phi(case: GraphCase, k: int, time: float) -> None:
    problem = make_problem(case, "row", 0.5)
    L = problem.L.to_dense()
    expected = (dense_phi(k, -time * L) @ problem.Z).numpy()
    assert relative_error(advdiff.phi(k, problem.L, problem.Z, time, 1e-9), expected) <= 1e-8
    if time == 0.0:
        assert (
            relative_error(advdiff.phi(k, problem.L, problem.Z, time), problem.Z.numpy() / math.factorial(k)) <= 1e-12
        )


@some("path", "directed")
def test_gradients_of_phi_times_and_source(case: GraphCase) -> None:
    query, Z, M = leaf(case.num_nodes, 2), leaf(case.num_nodes, 1), leaf(case.num_nodes, 1)
    beta, time = (torch.tensor(value, dtype=f64, requires_grad=True) for value in (0.6, 0.8))

    def generator(query, beta):
        return advdiff.Generator(advdiff.Attention(query, query), case.velocity("row"), beta)

    def by_phi(query, beta, Z, time):
        return advdiff.phi(2, generator(query, beta), Z, time, 1e-11)

    def by_times(query, beta, Z, time):
        return advdiff.exponential(generator(query, beta), Z, torch.stack([time, 0.5 * time]), "taylor", 1e-11)

    def by_source(query, beta, Z, time):
        L = generator(query, beta)
        return advdiff.exponential(L, Z, time, tol=1e-11) + time * advdiff.phi(1, L, M.detach(), time, 1e-11)

    for function in (by_phi, by_times, by_source):
        assert torch.autograd.gradcheck(function, (query, beta, Z, time), atol=1e-6, fast_mode=True)


def test_a_constant_source_ends_in_the_stationary_state() -> None:
    """Without attention and β < 1, L is invertible and Z(T) → L⁻¹M."""
    case = BY_NAME["undirected"]
    L, M = advdiff.Generator(None, case.velocity("row"), 0.5), leaf(8, 2).detach()
    Z = 100.0 * advdiff.phi(1, L, M, 100.0)
    assert relative_error(L @ Z, M.numpy()) <= 1e-6
