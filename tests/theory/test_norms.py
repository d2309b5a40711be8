"""Norms from products alone and logarithmic norms from thin factors, against numpy on the dense matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import advdiff
from advdiff.theory.norms import log_norm, spectral_norm
from tests.cases import DTYPES, HEADS
from tests.reference import attention, hub_attention
from tests.theory.strategies import mu2

SIZES = (0, 1, 10, 48, 49, 200)  # up to 48 the matrix itself, above Lanczos


def norm_by_products(M: np.ndarray, **options: float) -> float:
    return spectral_norm(lambda y: M @ y, lambda y: M.T @ y, len(M), **options)


def exact(M: np.ndarray) -> float:
    return float(np.linalg.norm(M, 2)) if M.size else 0.0


# --- the spectral norm ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200, 1e-12])
def test_spectral_norm_is_numpys(size, scale):
    M = scale * np.random.default_rng(1).normal(size=(size, size))
    assert norm_by_products(M) == pytest.approx(exact(M), rel=1e-8, abs=0.0)


@pytest.mark.parametrize("size", SIZES)
def test_matrices_with_equal_singular_values(size):
    """Zero, the identity, a shift, a reflection, and an entry alone."""
    shift, one = np.roll(np.eye(size), 1, axis=0), np.zeros((size, size))
    one[-1:, :1] = -3.0
    assert norm_by_products(np.zeros((size, size))) == 0.0
    for M in (np.eye(size), shift, np.eye(size)[::-1], -2.0 * shift, one):
        assert norm_by_products(M) == pytest.approx(exact(M), rel=1e-12)


@settings(max_examples=60)
@given(st.sampled_from([5, 48, 49, 120]), st.integers(1, 3), st.integers(-30, 30), st.integers(0, 2**16))
def test_low_rank_matrices(size, rank, exponent, seed):
    """Differences of flows often have few large singular values, and of any size."""
    left, right = np.random.default_rng(seed).normal(size=(2, size, rank))
    M = (left * 10.0 ** np.arange(exponent, exponent - 3 * rank, -3)) @ right.T
    assert norm_by_products(M) == pytest.approx(exact(M), rel=1e-8, abs=0.0)


@pytest.mark.parametrize("size", [49, 200])
@pytest.mark.parametrize("leak", [0.0, 1e-14, 1e-6])
def test_rank_one_matrices_that_all_but_ignore_the_start(size, leak):
    """M = u wᵀ with w orthogonal to the fixed first start, exactly (summed in this order) or nearly."""
    start = np.random.default_rng(0).standard_normal(size)
    u, w = np.arange(1.0, size + 1), np.zeros(size)
    w[:2] = start[1], -start[0]
    w += leak * start
    found = spectral_norm(lambda y: u * sum(w * y), lambda y: w * (u @ y), size)
    assert bool(sum(w * start) == 0.0) == (leak == 0.0)
    assert found == pytest.approx(np.linalg.norm(u) * np.linalg.norm(w), rel=1e-8)


def test_nilpotent_and_clustered_matrices():
    n = 150
    jordan = np.diag(np.ones(n - 1), 1)
    jordan[0, -1] = 40.0
    clustered = np.diag(1.0 + 1e-7 * np.arange(n))
    assert norm_by_products(jordan) == pytest.approx(exact(jordan), rel=1e-8)
    assert norm_by_products(clustered) == pytest.approx(exact(clustered), rel=1e-7)


def test_the_number_is_the_same_every_time_and_tol_is_obeyed():
    M = np.diag(np.linspace(1.0, 1.01, 300))
    assert norm_by_products(M) == norm_by_products(M)
    products = []
    for tol in (1e-2, 1e-12):
        count = []
        found = spectral_norm(lambda y, count=count: count.append(1) or M @ y, lambda y: M.T @ y, 300, tol=tol)
        assert found == pytest.approx(exact(M), rel=tol)
        products.append(len(count))
    assert products[0] < products[1]


@pytest.mark.parametrize("size", [10, 100])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_products_that_overflow(size, bad):
    with pytest.raises(ValueError, match="NaN or infinite"):
        spectral_norm(lambda y: y + bad, lambda y: y + bad, size)


# --- the logarithmic norm --------------------------------------------------------------------------------------


def test_log_norms_by_hand():
    tensor = torch.tensor
    assert log_norm(tensor([[-3.0]])) == -3.0
    assert log_norm(tensor([[0.0, 2.0], [0.0, 0.0]])) == 1.0
    assert log_norm(tensor([[-1.0, 5.0], [-5.0, -2.0]])) == pytest.approx(-1.0)  # a rotation neither grows nor decays
    assert log_norm(torch.zeros(0, 0)) == 0.0


@settings(max_examples=60)
@given(st.integers(1, 8), st.integers(0, 2**16), st.floats(0.0, 3.0))
def test_log_norm_is_a_rate_and_the_best(n, seed, time):
    M = np.random.default_rng(seed).normal(size=(n, n))
    rate = log_norm(torch.tensor(M))
    assert rate == pytest.approx(mu2(M), abs=1e-12)
    assert np.linalg.norm(scipy.linalg.expm(time * M), 2) <= math.exp(rate * time) * (1 + 1e-10)
    at_first = math.log(np.linalg.norm(scipy.linalg.expm(1e-6 * M), 2)) / 1e-6
    assert at_first == pytest.approx(rate, abs=1e-4 * (1 + np.linalg.norm(M, 2) ** 2))


@pytest.mark.parametrize("dtype", DTYPES)
def test_log_norm_of_a_dense_matrix_in_either_precision(dtype):
    M = torch.randn(30, 30, dtype=torch.float64).to(dtype).requires_grad_()
    assert log_norm(M) == pytest.approx(mu2(M.detach().double().numpy()), rel=1e-12)


@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_nodes", [1, 2, 5, 7, 8, 9, 40])  # rank d + 1 = 4: below, at and above 2(d + 1) = 8
def test_log_norm_of_an_attention_is_that_of_the_dense_matrix(num_nodes, dtype, heads):
    rng = np.random.default_rng(num_nodes)
    shape = (num_nodes, 3) if heads is None else (num_nodes, heads, 3)
    query, key = (torch.tensor(rng.normal(size=shape)).to(dtype).requires_grad_() for _ in range(2))
    q, k = (M.detach().double().numpy().reshape(num_nodes, -1, 3) for M in (query, key))
    expected = max(mu2(attention(q[:, h], k[:, h])) for h in range(heads or 1))
    C = advdiff.Attention(query, key)
    rel = 1e-12 if dtype == torch.float64 else 2e-6
    assert log_norm(C) == pytest.approx(expected, rel=rel)
    assert log_norm(C.T) == pytest.approx(expected, rel=rel)
    assert log_norm(C) >= 1.0 - rel  # C1 = 1


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize(("num_nodes", "expected"), [(1, -1.0), (2, 0.0), (3, 0.0), (9, 0.0)])
def test_factors_with_nothing_but_negative_eigenvalues(num_nodes, expected, heads):
    """U Wᵀ = −11ᵀ/N: the eigenvalues are −1 and, with more than one node, 0; a factor of rank one sees 2 of them."""
    left = torch.full((num_nodes, heads, 1), -1 / num_nodes, dtype=torch.float64)
    C = advdiff.Attention(torch.zeros(num_nodes, heads, 1), torch.zeros(num_nodes, heads, 1))
    C = advdiff.Attention.from_factors(left, torch.ones_like(left), C.segments, True)
    assert log_norm(C) == pytest.approx(expected, abs=1e-14)


def test_hub_attention_of_the_theory():
    """§6: N = 200, ‖C‖₂ = √200 = 14.1 and μ₂(C) = (1 + √200)/2 = 7.57."""
    C = hub_attention(199).L.coupling
    dense = np.zeros((200, 200))
    dense[:, 0] = 1.0
    assert np.allclose(C.to_dense().numpy(), dense, atol=1e-14)
    found = spectral_norm(lambda y: (C @ torch.tensor(y)).numpy(), lambda y: (C.T @ torch.tensor(y)).numpy(), 200)
    assert found == pytest.approx(math.sqrt(200), rel=1e-10) == pytest.approx(14.1, abs=0.05)
    assert log_norm(C) == pytest.approx((1 + math.sqrt(200)) / 2, rel=1e-12) == pytest.approx(7.57, abs=0.005)
    assert log_norm(C) == pytest.approx(mu2(dense), rel=1e-12)


def test_log_norm_of_no_node():
    assert log_norm(advdiff.Attention(torch.zeros(0, 3), torch.zeros(0, 3))) == 0.0


def test_log_norm_of_a_large_attention_stays_thin():
    """20,000 nodes: a dense matrix would take 3 GB. Uniform attention has μ₂ = 1."""
    zero = torch.zeros(20_000, 4)
    assert log_norm(advdiff.Attention(zero, zero)) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize(
    ("M", "sentence"),
    [
        (torch.zeros(2, 3), r"shape \(2, 3\).*square"),
        (torch.zeros(4), r"shape \(4,\).*square"),
        (torch.zeros(2, 2, 2), r"shape \(2, 2, 2\).*square"),
        (torch.full((2, 2), math.nan), "NaN"),
        (torch.tensor([[1.0, math.inf], [0.0, 0.0]]), "infinite"),
        (torch.ones(2, 2, dtype=torch.int64), "must be floating point"),
        (torch.ones(2, 2, dtype=torch.complex64), "must be floating point"),
        (torch.zeros(2, 2, device="meta"), "meta"),
        (advdiff.Attention(torch.ones(3, 2, device="meta"), torch.ones(3, 2, device="meta")), "meta"),
        (advdiff.Attention(torch.ones(3, 2), torch.ones(3, 2), torch.tensor([0, 0, 1])), "2 graphs; take one graph"),
    ],
)
def test_matrices_without_a_log_norm(M, sentence):
    with pytest.raises(ValueError, match=sentence):
        log_norm(M)
