"""Every bound: true on random changes of a graph, attained where it can be, and equal to its formula by hand.

The references are dense matrices in numpy and scipy. ``lazy_pair`` attains the bounds in the limit of a small change,
with any growth, so that a formula with a wrong factor or exponent is either too small there or too large.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import advdiff
from advdiff.theory import bounds
from tests.cases import KINDS, WITHOUT_ISOLATED, GraphCase, each
from tests.reference import hub_attention, make_problem, normalized
from tests.theory.strategies import ORDER, Change, changes, lazy_pair, mu2

times = st.sampled_from([0.0, 0.01, 0.3, 1.0, 3.0])
matrices = st.tuples(st.integers(1, 6), st.integers(0, 2**16), st.sampled_from([0.01, 0.3, 1.0, 3.0]))
e = math.exp
EXAMPLES = 60


def assert_bounded(actual: float, bound: float, scale: float = 1.0) -> None:
    """``scale``: of the numbers whose difference ``actual`` is, for its rounding."""
    assert actual <= bound * (1 + 1e-9) + 1e-12 * max(scale, 1.0)


def assert_tight(actual: float, bound: float, share: float) -> None:
    """Between ``share`` of the bound and the bound."""
    assert share * bound <= actual <= bound * (1 + 1e-9)


def random_pair(numbers: tuple[int, int, float], *, nonnormal: bool = True) -> tuple[np.ndarray, np.ndarray]:
    n, seed, size = numbers
    rng = np.random.default_rng(seed)
    X, E = rng.normal(size=(2, n, n))
    return (np.triu(X) * 1.5 if nonnormal else X - n * np.eye(n)), size * E


# --- growth -------------------------------------------------------------------------------------------------


def tensors(*arrays: np.ndarray) -> list[torch.Tensor]:
    return [torch.tensor(array) for array in arrays]


@settings(max_examples=EXAMPLES)
@given(st.sampled_from(["attention", "hub"]).flatmap(lambda name: changes(coupling=name)), st.floats(0.0, 4.0))
def test_growth_bounds_the_flow(change: Change, time: float):
    g = bounds.growth(advdiff.Attention(*tensors(change.query, change.key)), change.beta, change.kind)
    assert g == pytest.approx(change.growth, abs=1e-12)
    for flow in change.flows(time):
        assert_bounded(change.norm(flow), e(g * time))


@settings(max_examples=EXAMPLES)
@given(changes(), st.floats(0.0, 4.0))
def test_growth_without_a_coupling(change: Change, time: float):
    for V in change.V:
        flow = scipy.linalg.expm(time * (change.beta * V - np.eye(len(V))))
        assert_bounded(change.norm(flow), e(bounds.growth(None, change.beta, change.kind) * time))


@each([case for case in WITHOUT_ISOLATED if case.batch is None])
def test_row_growth_is_exact_without_isolated_nodes(case: GraphCase):
    problem = make_problem(case, "row", 0.7)
    assert bounds.growth(problem.L.coupling, 0.7, "row") == 0.7
    for time in (0.5, 4.0):
        flow = scipy.linalg.expm(time * (problem.P[0] - problem.eye))
        assert np.linalg.norm(flow, np.inf) == pytest.approx(e(0.7 * time), rel=1e-12)


@pytest.mark.parametrize(("uniform", "g"), [(True, 0.7), (False, -0.3)])
def test_symmetric_growth_is_exact_on_a_regular_graph(uniform, g):
    """On a ring, the vector of ones is the top eigenvector of V and of the uniform C = 11ᵀ/N (zero queries)."""
    ring = np.roll(np.eye(6), 1, axis=0) + np.roll(np.eye(6), -1, axis=0)
    zero = torch.zeros(6, 2, dtype=torch.float64)
    assert bounds.growth(advdiff.Attention(zero, zero) if uniform else None, 0.7) == pytest.approx(g, abs=1e-14)
    P = uniform * np.full((6, 6), 1 / 6) + 0.7 * normalized(ring, "symmetric")
    for time in (0.5, 4.0):
        flow = scipy.linalg.expm(time * (P - np.eye(6)))
        assert np.linalg.norm(flow, 2) == pytest.approx(e(g * time), rel=1e-12)


def test_growth_of_the_hub_is_the_best_rate_at_first():
    """μ₂(C) − 1 is the slope of log‖e^{-Lt}‖₂ at 0; for large t the rate falls to that of the spectrum, 0."""
    C = hub_attention(199).L.coupling
    g = bounds.growth(C, 0.0)
    assert g == pytest.approx((math.sqrt(200) - 1) / 2, rel=1e-12) == pytest.approx(6.571, abs=5e-4)
    flow = scipy.linalg.expm(1e-6 * (C.to_dense().numpy() - np.eye(200)))
    assert math.log(np.linalg.norm(flow, 2)) / 1e-6 == pytest.approx(g, rel=1e-4)


def test_bad_growth():
    C = advdiff.Attention(torch.ones(3, 2), torch.ones(3, 2))
    with pytest.raises(ValueError, match="symmetric, row"):
        bounds.growth(C, 0.5, "column")
    with pytest.raises(ValueError, match=r"beta is -1.*not negative"):
        bounds.growth(C, -1.0)
    with pytest.raises(ValueError, match="not transposed"):
        bounds.growth(C.T, 0.5, "row")
    with pytest.raises(ValueError, match="one graph at a time"):
        bounds.growth(advdiff.Attention(torch.ones(3, 2), torch.ones(3, 2), torch.tensor([0, 0, 1])), 0.5)


# --- formulas by hand ----------------------------------------------------------------------------------------

BY_HAND = [
    (bounds.paper_lemma, (0.5, 0.25), 0.25 * e(0.75)),
    (bounds.paper_local, (0.5, 3.0), 1.5 * e(1.5)),
    (bounds.paper_advective, (0.5, 0.2, 3.0, 1.7), 0.3 * e(5.1) * e(0.3)),
    (bounds.lemma_series, (0.5, 0.25), e(0.5) * (e(0.25) - 1)),
    (bounds.lemma_log_norm, (0.25, -0.5, -1.5), 0.25 * e(-0.5)),
    (bounds.lemma_log_norm, (0.25, -0.5, 0.75), 0.25 * e(0.75)),
    (bounds.local, (0.1, 3.0), 0.3),
    (bounds.local, (2.0, 3.0), 1 - e(-6)),
    (bounds.local, (2.0, 5.0), 0.9999546),  # theory §7
    (bounds.paper_local, (2.0, 5.0), 2.2026466e5),
    (bounds.local_sharp, (0.5, 3.0), 1 - e(-1.5)),
    (bounds.local_sharp, (0.5, 3.0, "row"), 2 * (1 - e(-0.75))),
    (bounds.local, (0.6, 3.0, "row"), 1.8),
    (bounds.local, (1.6, 3.0, "row"), 2.0),
    (bounds.exponential, (0.5, 0.2, 3.0, 0.7), 0.3 * e(2.1)),
    (bounds.exponential, (0.5, 0.2, 3.0, -0.7), 0.3 * e(-2.1)),
    (bounds.normalized_exponential, (0.5, 0.2, 3.0), 0.3),
    (bounds.normalized_exponential, (1.5, 2.0, 3.0), 2.0),
    (bounds.resolvent, (0.5, 0.2, 3.0, 0.5), 0.1 / 6.25),
    (bounds.resolvent, (0.5, 0.2, 0.0, -0.5), 0.1 / 0.25),
    (bounds.powers, (0.5, 0.2, 4, 1.5), 4 * 0.1 * 1.5**3),
    (bounds.powers, (0.5, 0.2, 3, 0.5), 3 * 0.1 * 0.25),
    (bounds.powers, (0.5, 0.2, 1, 0.0), 0.1),
    (bounds.first_order_error, (0.5, 0.2, 3.0, 0.7), 0.045 * e(2.1)),
    (bounds.multilayer, (0.5, [1.0, 2.0], [3.0, 5.0], [7.0, 0.1]), 0.5 * (1 * 3 * 0.1 + 2 * 5)),
    (bounds.multilayer, (0.5, [2.0, 3.0, 4.0], [1.0, 1.5, 2.5], [9.0, 2.0, 3.0]), 0.5 * (2 * 6 + 4.5 * 3 + 10)),
]


@pytest.mark.parametrize(("bound", "arguments", "expected"), BY_HAND)
def test_formulas_by_hand(bound, arguments, expected):
    assert bound(*arguments) == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("bound", "arguments"),
    [
        (bounds.paper_lemma, (1e9, 0.0)),
        (bounds.paper_local, (0.0, 1e9)),
        (bounds.paper_advective, (0.0, 1.0, 1e9, 1e9)),
        (bounds.paper_advective, (1.0, 0.0, 1e9, 1e9)),
        (bounds.lemma_series, (1e9, 0.0)),
        (bounds.lemma_log_norm, (0.0, 1e9, 1e9)),
        (bounds.local, (0.0, 1e9)),
        (bounds.local, (2.0, 0.0)),
        (bounds.local, (0.0, 1e9, "row")),
        (bounds.local_sharp, (0.0, 1e9)),
        (bounds.local_sharp, (2.0, 0.0, "row")),
        (bounds.exponential, (0.0, 1.0, 1e9, 1e9)),
        (bounds.exponential, (1.0, 1.0, 0.0, 1e9)),
        (bounds.normalized_exponential, (1.0, 0.0, 1e9)),
        (bounds.resolvent, (0.0, 1.0, 1.0, 0.5)),
        (bounds.powers, (1.0, 1.0, 0, 1e9)),
        (bounds.powers, (0.0, 1.0, 10**6, 1e9)),
        (bounds.first_order_error, (1.0, 0.0, 1e9, 1e9)),
        (bounds.multilayer, (0.0, [1.0], [1.0], [1.0])),
        (bounds.multilayer, (1.0, [], [], [])),
    ],
)
def test_no_change_no_variation(bound, arguments):
    assert bound(*arguments) == 0.0


@pytest.mark.parametrize(
    ("bound", "arguments"),
    [
        (bounds.paper_lemma, (1e9, 1.0)),
        (bounds.paper_local, (1.0, 1e9)),
        (bounds.paper_advective, (1.0, 1.0, 1e3, 1.0)),
        (bounds.lemma_series, (1e9, 1.0)),
        (bounds.lemma_series, (1.0, 1e9)),
        (bounds.lemma_log_norm, (1.0, -1.0, 1e9)),
        (bounds.exponential, (1.0, 1.0, 1e3, 1.0)),
        (bounds.powers, (1.0, 1.0, 1000, 10.0)),
        (bounds.first_order_error, (1.0, 1.0, 1e3, 1.0)),
        (bounds.first_order_error, (1e200, 1.0, 1.0, 0.0)),
        (bounds.resolvent, (1.0, 1.0, 1e-200, 0.0)),
    ],
)
def test_useless_bounds_are_infinite(bound, arguments):
    assert bound(*arguments) == math.inf


# --- any matrix: the lemma -----------------------------------------------------------------------------------


@settings(max_examples=EXAMPLES)
@given(matrices, st.booleans(), st.sampled_from([1, 2, np.inf]))
def test_lemmas(numbers, nonnormal, order):
    X, E = random_pair(numbers, nonnormal=nonnormal)
    flow = scipy.linalg.expm(X + E)
    actual, scale = np.linalg.norm(flow - scipy.linalg.expm(X), order), np.linalg.norm(flow, order)
    norm_X, norm_E = (float(np.linalg.norm(M, order)) for M in (X, E))
    assert_bounded(actual, bounds.lemma_series(norm_X, norm_E), scale)
    assert bounds.lemma_series(norm_X, norm_E) <= bounds.paper_lemma(norm_X, norm_E) * (1 + 1e-12)
    if order == 2:
        assert_bounded(actual, bounds.lemma_log_norm(norm_E, mu2(X), mu2(X + E)), scale)
        assert bounds.lemma_log_norm(norm_E, mu2(X), mu2(X + E)) <= bounds.paper_lemma(norm_X, norm_E) * (1 + 1e-12)


@pytest.mark.parametrize("a", [0.0, 2.0, 5.0])
def test_lemmas_are_attained_by_multiples_of_the_identity(a):
    """‖e^{(a+b)I} − e^{aI}‖ = e^a(e^b − 1) for a, b ≥ 0."""
    for b in (0.5, 3.0):
        assert bounds.lemma_series(a, b) == pytest.approx(e(a + b) - e(a), rel=1e-12)
    b = 1e-3
    assert_tight(e(a + b) - e(a), bounds.paper_lemma(a, b), 0.998)
    assert_tight(e(a + b) - e(a), bounds.lemma_log_norm(b, a, a + b), 0.999)
    assert_tight(e(-a) - e(-a - b), bounds.lemma_log_norm(b, -a, -a - b), 0.999)  # decay counts


# --- local diffusion -----------------------------------------------------------------------------------------


def local_variation(change: Change, time: float) -> float:
    V, V2 = (scipy.linalg.expm(time * (V - np.eye(len(V)))) for V in change.V)
    return change.norm(V2 - V)


@settings(max_examples=EXAMPLES)
@given(changes("symmetric", undirected=True), times)
def test_local_symmetric(change: Change, time: float):
    sharp, bound = bounds.local_sharp(change.x, time), bounds.local(change.x, time)
    assert_bounded(local_variation(change, time), sharp)
    assert sharp <= bound * (1 + 1e-12) and bound <= bounds.paper_local(change.x, time)


@settings(max_examples=EXAMPLES)
@given(changes("row"), times)
def test_local_row(change: Change, time: float):
    actual, sharp = local_variation(change, time), bounds.local_sharp(change.x, time, "row")
    assert_bounded(actual, bounds.local(change.x, time, "row"))
    assert sharp <= bounds.local(change.x, time, "row") * (1 + 1e-12)
    if change.A.any(1).all() and change.A2.any(1).all():
        assert_bounded(actual, sharp)


@pytest.mark.parametrize("time", [0.1, 1.0, 5.0])
def test_local_symmetric_is_attained_by_rewiring(time):
    """{01, 23} → {02, 13}: on (1, −1, 1, −1), V is −1 and V' is 1."""
    before, after = np.zeros((2, 4, 4))
    before[[0, 1, 2, 3], [1, 0, 3, 2]] = after[[0, 2, 1, 3], [2, 0, 3, 1]] = 1.0
    change = Change(before, after, np.eye(4), "symmetric", 1.0)
    actual = local_variation(change, time)
    assert change.x == pytest.approx(2.0, rel=1e-12)
    assert actual == pytest.approx(1 - e(-2 * time), rel=1e-12)
    for bound in (bounds.local, bounds.local_sharp):
        assert bound(change.x, time) == pytest.approx(actual, rel=1e-12)


def test_local_row_is_attained_by_moving_the_sink():
    """All walks end at node 0, then all at node 1: the difference is (1 − e^{-T})ΔV, and ‖ΔV‖_∞ = 2."""
    change = Change(np.array([[1.0, 0], [1, 0]]), np.array([[0, 1.0], [0, 1]]), np.eye(2), "row", 1.0)
    assert change.x == 2.0
    assert_tight(local_variation(change, 40.0), bounds.local(2.0, 40.0, "row"), 1 - 1e-12)
    assert_tight(local_variation(change, 1e-3), bounds.local(2.0, 1e-3, "row"), 0.999)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("time", [0.1, 1.0, 20.0])
def test_local_is_attained_by_the_lazy_pair(kind, time):
    change = lazy_pair(1e-4 / time, kind)
    assert_tight(local_variation(change, time), bounds.local(change.x, time, kind), 0.9997)
    assert_tight(local_variation(change, time), bounds.paper_local(change.x, time), 0.9995)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("time", [0.1, 1.0, 20.0])
def test_the_sharp_local_bound_is_attained_by_every_size(kind, epsilon, time):
    """The lazy pair, 1 − e^{-2εT} in the spectral norm; for row, leaving a node for good, 2(1 − e^{-εT})."""
    change = lazy_pair(epsilon, kind)
    if kind == "row":
        change = Change(np.eye(2), np.array([[1 - epsilon, epsilon], [0.0, 1.0]]), np.eye(2), "row", 1.0)
    assert change.x == pytest.approx(2 * epsilon, rel=1e-12)
    assert bounds.local_sharp(change.x, time, kind) == pytest.approx(local_variation(change, time), rel=1e-10)
    beta = 2.0
    change = Change(change.A, change.A2, change.C, kind, beta)
    flow, flow2 = change.flows(time / beta)
    actual = e(-time) * change.norm(flow2 - flow)  # C = I: βT takes the place of T
    assert bounds.local_sharp(change.x, time, kind) == pytest.approx(actual, rel=1e-10)


@settings(max_examples=EXAMPLES)
@given(changes("row"), times)
def test_sharp_bound_of_the_normalised_flow(change: Change, time: float):
    if not (change.A.any(1).all() and change.A2.any(1).all()):
        change = Change(
            change.A + np.eye(len(change.A)), change.A2 + np.eye(len(change.A)), change.C, "row", change.beta
        )
    flow, flow2 = (e(-change.beta * time) * flow for flow in change.flows(time))
    assert_bounded(change.norm(flow2 - flow), bounds.local_sharp(change.x, change.beta * time, "row"))


def test_the_papers_local_inequality_fails_for_row_normalisation():
    """Theory §7: two cliques with weights w_i w_j; an ordinary bound in ‖·‖₂ does not exist without a factor."""
    w = np.ones(20)
    w[0] = 50.0
    A = np.zeros((40, 40))
    A[:20, :20], A[20:, 20:] = np.outer(w, w), 1e4 * np.outer(w, w)
    np.fill_diagonal(A, 0.0)
    d = A.sum(1)
    A2 = A.copy()
    A2[:20, 20:] = 0.5 * (d[:20] / d[:20].max())[:, None] ** 2
    A2[20:, :20] = A2[:20, 20:].T
    change = Change(A, A2, np.eye(40), "row", 1.0)
    spectral = np.linalg.norm(change.V[1] - change.V[0], 2)
    flows = [scipy.linalg.expm(20 * (V - np.eye(40))) for V in change.V]
    assert np.linalg.norm(flows[1] - flows[0], 2) > 1.5 * bounds.paper_local(spectral, 20.0)
    assert np.linalg.norm(flows[1] - flows[0], np.inf) <= bounds.local(change.x, 20.0, "row")


# --- advective diffusion: statements (i) to (v) --------------------------------------------------------------


@settings(max_examples=EXAMPLES)
@given(changes(), times)
def test_exponential(change: Change, time: float):
    """(i) in the spectral norm, directed graphs included, and (ii) in the infinity norm."""
    flow, flow2 = change.flows(time)
    bound = bounds.exponential(change.x, change.beta, time, change.growth)
    assert_bounded(change.norm(flow2 - flow), bound, change.norm(flow))


@settings(max_examples=EXAMPLES)
@given(changes("symmetric"), times)
def test_papers_bound_before_its_last_step(change: Change, time: float):
    flow, flow2 = change.flows(time)
    norm_L = change.norm(change.L[0])
    bound = bounds.paper_advective(change.x, change.beta, time, norm_L)
    assert_bounded(change.norm(flow2 - flow), bound, change.norm(flow))


@settings(max_examples=EXAMPLES)
@given(changes("row"), times)
def test_normalized_exponential(change: Change, time: float):
    flow, flow2 = (e(-change.beta * time) * flow for flow in change.flows(time))
    assert_bounded(change.norm(flow2 - flow), bounds.normalized_exponential(change.x, change.beta, time))


@settings(max_examples=EXAMPLES)
@given(changes(), st.sampled_from([0.03, 0.3, 2.0]))
def test_resolvent(change: Change, gap: float):
    theta = change.growth + gap
    inverse, inverse2 = (np.linalg.inv(theta * np.eye(len(L)) + L) for L in change.L)
    bound = bounds.resolvent(change.x, change.beta, theta, change.growth)
    assert_bounded(change.norm(inverse2 - inverse), bound, 1 / gap**2)


@settings(max_examples=EXAMPLES)
@given(changes(), st.integers(0, 6))
def test_powers(change: Change, order: int):
    P, P2 = change.P
    norm_P = max(change.norm(P), change.norm(P2))
    if change.kind == "row":
        assert norm_P <= 1 + change.beta + 1e-12
    actual = change.norm(np.linalg.matrix_power(P2, order) - np.linalg.matrix_power(P, order))
    assert_bounded(actual, bounds.powers(change.x, change.beta, order, norm_P), norm_P**order)


def first_order_error(change: Change, time: float) -> float:
    L, L2 = change.L
    flow, flow2 = change.flows(time)
    derivative = scipy.linalg.expm_frechet(-time * L, time * (L - L2), compute_expm=False)
    return change.norm(flow2 - flow - derivative)


@settings(max_examples=EXAMPLES)
@given(changes(), times)
def test_first_order_error(change: Change, time: float):
    bound = bounds.first_order_error(change.x, change.beta, time, change.growth)
    assert_bounded(first_order_error(change, time), bound, change.norm(change.flows(time)[0]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("beta", "time"), [(1.0, 0.2), (0.2, 5.0), (2.0, 3.0)])
def test_statements_are_attained_by_the_lazy_pair(kind, beta, time):
    """Not only for short times, where e^{gT} ≈ 1: here it is up to e⁶."""
    change = lazy_pair(1e-4 / (beta * time), kind, beta)
    x, g = change.x, change.growth
    assert g == pytest.approx(beta, rel=1e-12)
    flow, flow2 = change.flows(time)
    actual = change.norm(flow2 - flow)
    assert_tight(actual, bounds.exponential(x, beta, time, g), 0.9997)
    assert_tight(e(-beta * time) * actual, bounds.normalized_exponential(x, beta, time), 0.9997)
    for theta in (beta + 0.3, beta + 4.0):
        inverse, inverse2 = (np.linalg.inv(theta * np.eye(2) + L) for L in change.L)
        assert_tight(change.norm(inverse2 - inverse), bounds.resolvent(x, beta, theta, g), 0.996)
    for order in (1, 2, 5):
        P, P2 = (np.linalg.matrix_power(P, order) for P in change.P)
        assert_tight(change.norm(P2 - P), bounds.powers(x, beta, order, 1 + beta), 0.999)
    change = lazy_pair(0.01 / (beta * time), kind, beta)  # the square of the change must exceed rounding
    assert_tight(first_order_error(change, time), bounds.first_order_error(change.x, beta, time, g), 0.99)


@pytest.mark.parametrize("beta", [0.2, 2.0])
def test_symmetric_statements_where_attention_is_not_normal(beta):
    """A hub, μ₂(C) > 1: (i) and (iii) are attained by short times and large θ, where C does not yet act twice."""
    change = Change(np.zeros((9, 9)), star_adjacency(9), hub_matrix(9), "symmetric", beta)
    assert change.x == pytest.approx(1.0, rel=1e-12) and mu2(change.C) == pytest.approx(2.0, rel=1e-12)
    flow, flow2 = change.flows(1e-3)
    assert_tight(change.norm(flow2 - flow), bounds.exponential(1.0, beta, 1e-3, change.growth), 0.99)
    inverse, inverse2 = (np.linalg.inv(1e3 * np.eye(9) + L) for L in change.L)
    assert_tight(change.norm(inverse2 - inverse), bounds.resolvent(1.0, beta, 1e3, change.growth), 0.99)


def star_adjacency(n: int) -> np.ndarray:
    A = np.zeros((n, n))
    A[0, 1:] = A[1:, 0] = 1.0
    return A


def hub_matrix(n: int) -> np.ndarray:
    C = np.zeros((n, n))
    C[:, 0] = 1.0
    return C


def test_the_row_bound_ignores_which_attention():
    """In the spectral norm the hub makes the star's flow grow with N; in the infinity norm it does not."""
    for n in (10, 100):
        change = Change(np.zeros((n, n)), star_adjacency(n), hub_matrix(n), "row", 1.0)
        flow, flow2 = change.flows(1.0)
        assert change.norm(flow2 - flow) <= bounds.exponential(change.x, 1.0, 1.0, 1.0) == pytest.approx(e(1))
        assert np.linalg.norm(flow2 - flow, 2) > math.sqrt(n) / 3


def test_normalized_exponential_is_attained_by_moving_the_sink():
    change = Change(np.array([[1.0, 0], [1, 0]]), np.array([[0, 1.0], [0, 1]]), np.eye(2), "row", 2.0)
    flow, flow2 = (e(-40.0) * flow for flow in change.flows(20.0))
    assert_tight(change.norm(flow2 - flow), bounds.normalized_exponential(change.x, 2.0, 20.0), 1 - 1e-9)


def test_an_isolated_node_costs_the_row_bound_nothing():
    """A row of V that appears from nothing has ‖ΔV‖_∞ = 1, and the first order already attains the bound."""
    change = Change(np.zeros((2, 2)), np.array([[0, 1.0], [1, 0]]), np.eye(2), "row", 0.01)
    flow, flow2 = change.flows(1.0)
    assert_tight(change.norm(flow2 - flow), bounds.exponential(1.0, 0.01, 1.0, 0.01), 0.99)


def test_reference_values_of_the_theory():
    """§8: actual, Fréchet, (i) and the paper's bound for N = 300, homophily #12, β = .5: .149, .173, .520, 1.62."""
    rng = np.random.default_rng(0)
    block = np.repeat(np.arange(5), 60)
    thrown = np.triu(rng.random((300, 300)), 1)
    same = block[:, None] == block
    A, A2 = ((thrown > 0) & (thrown < np.where(same, 0.1, p)) for p in (0.01, 0.01 + 0.05 * 11 / 12))
    query, key = rng.normal(size=(2, 300, 8))
    C = (
        1
        + (query / np.linalg.norm(query, axis=1, keepdims=True)) @ (key / np.linalg.norm(key, axis=1, keepdims=True)).T
    )
    C /= C.sum(1, keepdims=True)
    change = Change((A | A.T).astype(float), (A2 | A2.T).astype(float), C, "symmetric", 0.5)
    (flow, flow2), (L, L2) = change.flows(1.0), change.L
    derivative = scipy.linalg.expm_frechet(-L, L - L2, compute_expm=False)
    found = [
        change.norm(flow2 - flow),
        change.norm(derivative),
        bounds.exponential(change.x, 0.5, 1.0, change.growth),
        bounds.paper_advective(change.x, 0.5, 1.0, change.norm(L)),
    ]
    assert found == pytest.approx([0.149, 0.173, 0.520, 1.62], rel=0.15)
    assert found == sorted(found)


# --- several layers --------------------------------------------------------------------------------------------


def layered(V: np.ndarray, Z: np.ndarray, times: list[float], maps: list[np.ndarray]) -> tuple[np.ndarray, list[float]]:
    """Z_k = e^{-(I−V)τ_k} φ_k(Z_{k−1}) with φ_k(Z) = tanh(Z W_k), whose Lipschitz constant is at most ‖W_k‖₂."""
    sizes = []
    for tau, W in zip(times, maps, strict=True):
        Z = np.tanh(Z @ W)
        sizes.append(float(np.linalg.norm(Z)))
        Z = scipy.linalg.expm(tau * (V - np.eye(len(V)))) @ Z
    return Z, sizes


@settings(max_examples=EXAMPLES)
@given(changes("symmetric", undirected=True), st.lists(times, max_size=4), st.integers(0, 2**16))
def test_multilayer(change: Change, taus: list[float], seed: int):
    rng = np.random.default_rng(seed)
    maps = [rng.uniform(0.1, 2.0) * rng.normal(size=(3, 3)) for _ in taus]
    Z = rng.normal(size=(len(change.A), 3))
    after, sizes = layered(change.V[0], Z, taus, maps)
    after2, _ = layered(change.V[1], Z, taus, maps)
    bound = bounds.multilayer(change.x, taus, sizes, [float(np.linalg.norm(W, 2)) for W in maps])
    assert_bounded(float(np.linalg.norm(after2 - after)), bound)


def test_multilayer_is_attained_by_the_lazy_pair():
    """With φ_k multiplying by c_k: Z_K = Π c_k z on the first graph, times e^{-xΣτ} on the second."""
    x, taus, slopes, size = 1e-4, [0.5, 2.0, 1.0], [3.0, 0.4, 5.0], math.sqrt(2.0)
    inputs = list(size * np.cumprod(slopes))
    actual = size * math.prod(slopes) * (1 - e(-x * sum(taus)))
    assert_tight(actual, bounds.multilayer(x, taus, inputs, slopes), 0.9997)


# --- bad input ---------------------------------------------------------------------------------------------------

CALLS = {
    bounds.paper_lemma: dict(norm_X=1.0, norm_E=1.0),
    bounds.paper_local: dict(x=1.0, time=1.0),
    bounds.paper_advective: dict(x=1.0, beta=1.0, time=1.0, norm_L=1.0),
    bounds.lemma_series: dict(norm_X=1.0, norm_E=1.0),
    bounds.lemma_log_norm: dict(norm_E=1.0, mu_X=1.0, mu_X_plus_E=1.0),
    bounds.local: dict(x=1.0, time=1.0),
    bounds.local_sharp: dict(x=1.0, time=1.0),
    bounds.exponential: dict(x=1.0, beta=1.0, time=1.0, growth=1.0),
    bounds.normalized_exponential: dict(x=1.0, beta=1.0, time=1.0),
    bounds.resolvent: dict(x=1.0, beta=1.0, theta=2.0, growth=1.0),
    bounds.powers: dict(x=1.0, beta=1.0, order=2, norm_P=1.0),
    bounds.first_order_error: dict(x=1.0, beta=1.0, time=1.0, growth=1.0),
}
RATES = ("growth", "mu_X", "mu_X_plus_E", "theta")
ARGUMENTS = [(f, name) for f, given in CALLS.items() for name in given]


@pytest.mark.parametrize(("f", "name"), ARGUMENTS, ids=[f"{f.__name__}-{name}" for f, name in ARGUMENTS])
def test_bad_numbers_are_named(f, name):
    assert math.isfinite(f(**CALLS[f]))
    with pytest.raises(ValueError, match=name):
        f(**(CALLS[f] | {name: math.nan}))
    if name not in RATES:  # a rate may be negative
        for bad in (-1,) if name == "order" else (-1.0, math.inf):  # an order is an integer
            with pytest.raises(ValueError, match=rf"{name} is {bad:g}; .*not negative"):
                f(**(CALLS[f] | {name: bad}))


def test_other_bad_input():
    for theta in (1.0, 0.5):
        with pytest.raises(ValueError, match=rf"theta is {theta:g} and the growth 1; .* theta > growth"):
            bounds.resolvent(1.0, 1.0, theta, 1.0)
    with pytest.raises(ValueError, match="order is of type float; it must be an integer"):
        bounds.powers(1.0, 1.0, 2.5, 1.0)
    for bound in (bounds.local, bounds.local_sharp):
        with pytest.raises(ValueError, match="symmetric, row"):
            bound(1.0, 1.0, "column")
    with pytest.raises(ValueError, match="2 times, 1 inputs and 2 Lipschitz"):
        bounds.multilayer(1.0, [1.0, 2.0], [1.0], [1.0, 1.0])
    for times_, inputs, lipschitz, name in (
        ([-1.0], [1.0], [1.0], "times"),
        ([1.0], [math.nan], [1.0], "inputs"),
        ([1.0], [1.0], [-1.0], "lipschitz"),
    ):
        with pytest.raises(ValueError, match=f"{name} is"):
            bounds.multilayer(1.0, times_, inputs, lipschitz)
    with pytest.raises(ValueError, match="x is"):
        bounds.multilayer(-1.0, [], [], [])


def test_every_bound_is_tested_here():
    """A bound that is added to the module must be added to ``CALLS`` or be one of the two tested apart."""
    public = {v for k, v in vars(bounds).items() if callable(v) and getattr(v, "__module__", "") == bounds.__name__}
    public = {f for f in public if not f.__name__.startswith("_")}
    assert public == {*CALLS, bounds.growth, bounds.multilayer}
    assert set(ORDER) == set(KINDS)
