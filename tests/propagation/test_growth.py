"""Growth of the flow (theory §3): e^{-βT}e^{-LT} is row-stochastic for V = D⁻¹A without isolated nodes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import advdiff
from tests.cases import BY_NAME, WITHOUT_ISOLATED, GraphCase, block_model, each
from tests.reference import hub_attention, make_problem

f64 = torch.float64
METHODS = ("dense", "taylor", "krylov", "chebyshev", "rational")
LARGER = [*WITHOUT_ISOLATED, block_model((30, 30), 0.3, 0.05)]


def propagators(case: GraphCase, beta: float, time: float, method: str, heads: int | None = None) -> np.ndarray:
    """e^{-LT} itself, [H, N, N]: the library applied to the identity."""
    L = make_problem(case, "row", beta, heads).L
    eye = torch.eye(case.num_nodes, dtype=f64)
    value = advdiff.exponential(L, eye, time, method, 1e-12)
    return value.transpose(0, 1).numpy() if heads else value.numpy()[None]


@each(LARGER)
def test_rows_sum_to_the_growth_factor(case: GraphCase, beta: float) -> None:
    for time in (0.3, 1.0, 5.0):
        for method in METHODS if case.is_undirected else METHODS[:-1]:
            flow = np.exp(-beta * time) * propagators(case, beta, time, method, heads=3)
            assert np.abs(flow.sum(-1) - 1.0).max() <= 1e-10, (method, time)
            assert flow.min() >= -1e-10, (method, time)
            assert np.abs(flow).sum(-1).max() == pytest.approx(1.0, abs=1e-10)  # ‖e^{-LT}‖_∞ = e^{βT}


@each(LARGER)
def test_maximum_principle(case: GraphCase) -> None:
    """min Z ≤ e^{-βT} Z(T) ≤ max Z, column by column."""
    problem = make_problem(case, "row", 0.5)
    for time in (0.3, 1.0, 5.0):
        state = np.exp(-0.5 * time) * advdiff.exponential(problem.L, problem.Z, time, tol=1e-12)
        assert bool((state >= problem.Z.min(0).values - 1e-10).all())
        assert bool((state <= problem.Z.max(0).values + 1e-10).all())


def test_the_normalised_flow_forgets_where_it_started() -> None:
    """e^{-βT}e^{-LT} → 1πᵀ: the rows become equal, faster and faster."""
    case = block_model((30, 30), 0.3, 0.05)
    spreads = []
    for time in (5.0, 10.0, 20.0):
        flow = np.exp(-0.5 * time) * propagators(case, 0.5, time, "taylor")[0]
        spreads.append(float(np.ptp(flow, axis=0).max()))
    assert spreads[0] > 100 * spreads[1] > 1e4 * spreads[2]
    assert spreads[2] <= 1e-8


def test_an_isolated_node_loses_its_share() -> None:
    """Its row of P sums to 1 instead of 1 + β, so the ∞-norm stays below e^{βT}; a self-loop restores it."""
    case, time = BY_NAME["isolated"], 1.0
    lonely = case.adjacency.sum(1) == 0
    row_sums = propagators(case, 0.5, time, "taylor")[0].sum(1)
    assert np.all(row_sums[lonely] < np.exp(0.5 * time) - 0.1)
    coupling = make_problem(case, "row", 0.5).L.coupling
    L = advdiff.Generator(coupling, case.velocity("row", self_loops="isolated"), 0.5)
    grown = advdiff.exponential(L, torch.ones(case.num_nodes, dtype=f64), time, tol=1e-12)
    assert grown.numpy() == pytest.approx(np.full(case.num_nodes, np.exp(0.5 * time)), rel=1e-11)


def test_two_norm_of_a_star_is_far_beyond_the_growth() -> None:
    """Theory §3: 499 leaves, uniform attention, β = T = 1, rw is not normal: ‖e^{-L}‖₂ ≫ e^β = 2.72."""
    leaves = 499
    problem = hub_attention(leaves, "row")
    zeros = torch.zeros(leaves + 1, 1, dtype=f64)
    L = advdiff.Generator(advdiff.Attention(zeros, zeros), problem.L.velocity, 1.0)
    flow = advdiff.exponential(L, torch.eye(leaves + 1, dtype=f64), 1.0, "taylor", 1e-10)
    assert float(torch.linalg.matrix_norm(flow, 2)) == pytest.approx(19.4, rel=0.02)
    assert flow.sum(1).numpy() == pytest.approx(np.full(leaves + 1, np.e), rel=1e-9)
