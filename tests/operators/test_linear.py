"""Any linear operator: sparse, low rank, their sum, a pair of functions; and scipy's view of ours."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import torch

import advdiff
from tests.cases import BY_NAME
from tests.reference import leaf, make_problem, relative_error

f64 = torch.float64
N, THETA, TIME = 80, 12.0, 0.7


def sparse(symmetric: bool) -> np.ndarray:
    rng = np.random.default_rng(3)
    A = rng.normal(size=(N, N)) * (rng.random((N, N)) < 0.05)
    return A + A.T if symmetric else A


def operators(symmetric: bool) -> dict[str, tuple[object, np.ndarray]]:
    """Each with the dense matrix that it stands for."""
    S = sparse(symmetric)
    U, W = (np.random.default_rng(seed).normal(size=(N, 2)) / 9 for seed in (1, 1 if symmetric else 2))
    low = advdiff.LowRank(torch.tensor(U), torch.tensor(W))
    A = S + U @ W.T
    dense = torch.tensor(A)
    return {
        "scipy": (scipy.sparse.csr_matrix(S), S),
        "torch": (torch.tensor(S).to_sparse_csr(), S),
        "low rank": (low, U @ W.T),
        "sum": (low + advdiff.Sparse(torch.tensor(S).to_sparse()), A),
        "sum of sums": (low + advdiff.Sparse(scipy.sparse.coo_matrix(S)) + low, A + U @ W.T),
        "functions": (advdiff.MatrixFree(lambda Z: dense @ Z, lambda Z: dense.T @ Z, N, dtype=f64), A),
        "bounded": (advdiff.MatrixFree(lambda Z: dense @ Z, lambda Z: dense.T @ Z, N, (-9.0, 9.0, 9.0)), A),
    }


NAMES = ("scipy", "torch", "low rank", "sum", "sum of sums", "functions", "bounded")


@pytest.mark.parametrize("symmetric", [True, False], ids=["symmetric", "general"])
@pytest.mark.parametrize("name", NAMES)
def test_against_dense_matrices(name: str, symmetric: bool) -> None:
    A, matrix = operators(symmetric)[name]
    Z = torch.tensor(np.random.default_rng(0).normal(size=(N, 3)))
    if isinstance(A, advdiff.Operator):
        assert relative_error(A @ Z, matrix @ Z.numpy()) <= 1e-12
        assert relative_error(A.T @ Z, matrix.T @ Z.numpy()) <= 1e-12
        field, real = A.field_of_values, np.linalg.eigvalsh((matrix + matrix.T) / 2)
        assert field.low <= real[0] + 1e-9 and field.high >= real[-1] - 1e-9
        assert field.height >= np.linalg.norm((matrix - matrix.T) / 2, 2) - 1e-9
    flow, solved = scipy.linalg.expm(-TIME * matrix) @ Z.numpy(), np.linalg.solve(matrix + THETA * np.eye(N), Z.numpy())
    for method in ("auto", "dense", "taylor", "krylov", "chebyshev"):
        assert relative_error(advdiff.exponential(A, Z, TIME, method, 1e-8), flow) <= 1e-7, method
    for method in ("auto", "dense", "krylov"):
        assert relative_error(advdiff.resolvent(A, Z, THETA, method, 1e-9), solved) <= 1e-8, method


def test_gradients_in_the_factors() -> None:
    n, index = 6, torch.tensor([[0, 1, 2, 3, 4, 5, 0], [1, 2, 3, 4, 5, 0, 0]])
    U, W, values, Z = leaf(n, 2), leaf(n, 2), leaf(7), leaf(n, 2)

    def operator(U, W, values):
        return advdiff.LowRank(U, W) + advdiff.Sparse(torch.sparse_coo_tensor(index, values, (n, n)))

    for solve in (
        lambda A, Z: advdiff.exponential(A, Z, 0.3, "taylor", 1e-11),
        lambda A, Z: advdiff.resolvent(A, Z, 9.0, "dense"),
        lambda A, Z: advdiff.resolvent(A, Z, 9.0, "krylov", 1e-12),
        lambda A, Z: A @ Z,
        lambda A, Z: advdiff.phi(1, A, Z, 0.3, 1e-11),
    ):
        check = lambda *t, f=solve: f(operator(*t[:3]), t[3])  # noqa: E731
        assert torch.autograd.gradcheck(check, (U, W, values, Z), atol=1e-6, fast_mode=True)


def test_gradients_through_functions_reach_the_state() -> None:
    dense, Z = torch.tensor(sparse(False)[:8, :8]), leaf(8, 2)
    A = advdiff.MatrixFree(lambda X: dense @ X, lambda X: dense.T @ X, 8, dtype=f64)
    assert torch.autograd.gradcheck(lambda Z: advdiff.exponential(A, Z, 0.5, "taylor", 1e-11), Z, fast_mode=True)
    assert torch.autograd.gradcheck(lambda Z: advdiff.resolvent(A, Z, 9.0, "krylov", 1e-12), Z, fast_mode=True)


def test_scipy_view() -> None:
    problem = make_problem(BY_NAME["directed_weighted"], "row", state="matrix")
    L, Z = advdiff.as_scipy(problem.L), problem.Z.numpy()
    assert np.allclose(L @ Z, problem.product()) and np.allclose(L.T @ Z, problem.transposed_product())
    trace = -float(np.trace(problem.L.to_dense().numpy()))
    assert np.allclose(scipy.sparse.linalg.expm_multiply(-L, Z, traceA=trace), problem.exponential(1.0))
    with pytest.raises(ValueError, match="no heads"):
        advdiff.as_scipy(make_problem(BY_NAME["path"], heads=2).L)


BAD = [
    (lambda: advdiff.exponential("L", torch.ones(2)), "LowRank"),
    (lambda: advdiff.Sparse(torch.ones(2, 3).to_sparse()), "must be square"),
    (lambda: advdiff.Sparse([[1.0]]), "scipy.sparse"),
    (lambda: advdiff.LowRank(torch.ones(2, 1), torch.ones(3, 1)), r"both must be \[N, r\]"),
    (lambda: advdiff.MatrixFree(torch.clone, None, 2, (1.0, 0.0)), "low ≤ high"),
    (lambda: advdiff.MatrixFree(torch.clone, None, 2, (0.0, 1.0)) + advdiff.Sparse(torch.eye(2)), "into the functions"),
    (lambda: advdiff.Sparse(torch.eye(2)) + advdiff.Sparse(torch.eye(3)), "cannot be added"),
    (lambda: advdiff.resolvent(advdiff.Sparse(torch.eye(2)), torch.ones(2), -1.0), "singular to rounding"),
    (lambda: advdiff.resolvent(advdiff.Sparse(torch.eye(2)), torch.ones(2), 1.0, "lowrank"), "a Generator only"),
    (lambda: advdiff.exponential(advdiff.Sparse(torch.eye(2)), torch.ones(2), 1.0, "rational"), "a Generator only"),
    (lambda: advdiff.exponential(advdiff.Sparse(torch.eye(2)), torch.ones(2), torch.ones(2, 2)), "one or more times"),
    (lambda: advdiff.phi(-1, advdiff.Sparse(torch.eye(2)), torch.ones(2)), "k is -1"),
]


@pytest.mark.parametrize("call, message", BAD, ids=[message for _, message in BAD])
def test_bad_input_is_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()
