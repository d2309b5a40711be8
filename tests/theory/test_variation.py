"""Measured variations against dense matrices in numpy and scipy: expm, inv, matrix_power, expm_frechet."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pytest
import scipy.linalg
import torch
from hypothesis import given, settings
from torch import Tensor

import advdiff
from advdiff.theory import bounds, norms, variation
from advdiff.theory.shifts import shift_size
from tests.cases import HEADS, KINDS, GraphCase, both_ways, star
from tests.reference import STATES, act, attention, hub_attention, normalized, relative_error
from tests.theory.strategies import Change, changes

f64, f32 = torch.float64, torch.float32
TOL = {f64: 1e-8, f32: 1e-4}  # of a variation, the difference of two larger numbers
NORMS = {"spectral": 2, "infinity": np.inf}

#: f of the library, and of a dense P.
FUNCTIONS: dict[str, tuple[variation.Function | None, Callable[[np.ndarray], np.ndarray]]] = {
    "default": (None, lambda P: scipy.linalg.expm(P - np.eye(len(P)))),
    "exponential": (
        partial(advdiff.exponential, time=2.5, tol=1e-11),
        lambda P: scipy.linalg.expm(2.5 * (P - np.eye(len(P)))),
    ),
    "resolvent": (
        partial(advdiff.resolvent, theta=6.0, tol=1e-11),
        lambda P: np.linalg.inv(7.0 * np.eye(len(P)) - P),
    ),
    "powers": (lambda L, Z: advdiff.powers(L.propagator, Z, 3)[-1], lambda P: np.linalg.matrix_power(P, 3)),
}


each_state = pytest.mark.parametrize(
    ("heads", "state"), [(heads, state) for heads in HEADS for state in STATES if heads or state != "heads"]
)


@dataclass(frozen=True)
class Pair:
    """Two generators of the library with one coupling, and the dense P of each made here, [H, N, N]."""

    L: advdiff.Generator
    other: advdiff.Generator
    P: np.ndarray
    P2: np.ndarray
    heads: int | None

    def state(self, name: str) -> Tensor:
        n = self.L.num_nodes
        shape = {"vector": (n,), "matrix": (n, 2), "heads": (n, self.heads or 1, 2)}[name]
        dtype = self.L.coupling.left.dtype if self.L.coupling is not None else self.L.velocity.dtype
        return torch.tensor(np.random.default_rng(1).normal(size=shape)).to(dtype)

    def operator(self, f: Callable[[np.ndarray], np.ndarray], norm: str) -> float:
        return max(float(np.linalg.norm(f(P2) - f(P), NORMS[norm])) for P, P2 in zip(self.P, self.P2, strict=True))

    def derivative(self, time: float) -> np.ndarray:
        eye = np.eye(self.L.num_nodes)
        pairs = zip(self.P, self.P2, strict=True)
        return np.stack(
            [scipy.linalg.expm_frechet(time * (P - eye), time * (P2 - P), compute_expm=False) for P, P2 in pairs]
        )


def random_case(n: int, directed: bool, seed: int) -> GraphCase:
    """Weighted, with self-loops and now and then an isolated node."""
    rng = np.random.default_rng(seed)
    edges = [(int(s), int(t)) for s, t in rng.integers(n, size=(2 * n, 2))]
    weight = list(rng.uniform(0.1, 2.0, len(edges)))
    return GraphCase("random", n, edges if directed else both_ways(edges), weight if directed else weight * 2)


@cache
def make_pair(
    n: int = 7,
    kind: str = "symmetric",
    heads: int | None = None,
    dtype: torch.dtype = f64,
    directed: bool = False,
    terms: str = "CV",
    beta: float = 0.5,
) -> Pair:
    rng = np.random.default_rng(3)
    P, P2 = np.zeros((2, heads or 1, n, n))
    coupling = None
    if "C" in terms:
        query, key = (torch.tensor(rng.normal(size=(n, heads or 1, 3))).to(dtype) for _ in range(2))
        for h in range(heads or 1):
            C = attention(query[:, h].double().numpy(), key[:, h].double().numpy())
            P[h], P2[h] = C, C
        coupling = advdiff.Attention(query, key) if heads else advdiff.Attention(query[:, 0], key[:, 0])
    velocities: list[advdiff.Velocity | None] = []
    for seed, dense in ((1, P), (2, P2)):
        case = random_case(n, directed, seed) if n else GraphCase("no_nodes", 0, [])
        velocities.append(case.velocity(kind, dtype))
        dense += beta * normalized(case.adjacency, kind)
    L, other = (advdiff.Generator(coupling, V, beta) for V in velocities)
    return Pair(L, other, P, P2, heads if coupling is not None else None)


# --- the norm of the variation ---------------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(("heads", "dtype"), [(None, f64), (1, f32), (3, f64)])
def test_operator_is_the_dense_norm(kind, heads, dtype, directed, norm, function):
    pair = make_pair(7, kind, heads, dtype, directed)
    f, dense = FUNCTIONS[function]
    found = variation.operator(pair.L, pair.other, **({} if f is None else {"f": f}), norm=norm)
    assert found == pytest.approx(pair.operator(dense, norm), rel=TOL[dtype])


@pytest.mark.parametrize(
    ("function", "n", "heads", "dtype", "directed"),
    [
        ("default", 50, None, f64, True),
        ("default", 100, None, f64, False),  # more than 64 nodes: the exponential by Chebyshev
        ("exponential", 70, None, f32, True),  # by Taylor
        ("exponential", 18, 3, f64, False),
        ("resolvent", 50, None, f64, True),
        ("resolvent", 18, 3, f64, False),
        ("resolvent", 130, None, f64, False),  # more than 128 nodes: by the low-rank inverse
        ("powers", 200, None, f64, True),
        ("powers", 40, 3, f32, False),
    ],
)
def test_operator_by_lanczos(function, n, heads, dtype, directed):
    """More than 48 unknowns: products with f and, from the transposed generators, with fᵀ."""
    pair = make_pair(n, "row", heads, dtype, directed)
    f, dense = FUNCTIONS[function]
    options = {} if f is None else {"f": f}
    found = variation.operator(pair.L, pair.other, **options)
    assert found == pytest.approx(pair.operator(dense, "spectral"), rel=TOL[dtype])
    if function == "powers":
        assert variation.operator(pair.L, pair.other, **options) == found
        assert variation.operator(pair.other.T, pair.L.T, **options) == pytest.approx(found, rel=TOL[dtype])


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_operator_without_a_coupling(kind, norm):
    pair = make_pair(7, kind, terms="V", beta=1.0)
    expected = pair.operator(FUNCTIONS["default"][1], norm)
    assert variation.operator(pair.L, pair.other, norm=norm) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("size", [7, 60])
@pytest.mark.parametrize("norm", NORMS)
def test_the_transpose_has_its_own_infinity_norm(size, norm):
    pair = make_pair(size, "row", directed=True)
    transposed = Pair(pair.L.T, pair.other.T, pair.P.swapaxes(1, 2), pair.P2.swapaxes(1, 2), None)
    expected = transposed.operator(FUNCTIONS["default"][1], norm)
    assert variation.operator(transposed.L, transposed.other, norm=norm) == pytest.approx(expected, rel=1e-8)
    if norm == "infinity":
        assert expected != pytest.approx(pair.operator(FUNCTIONS["default"][1], norm), rel=0.01)


@pytest.mark.parametrize("copies", [1, 20])
def test_rewiring_attains_the_local_bound(copies):
    """{01, 23} → {02, 13} by hand, once and twenty times over: 1 − e^{-2T}."""
    graphs = []
    for a, b in ([(0, 1), (2, 3)], [(0, 2), (1, 3)]):
        edges = [(s + 4 * c, t + 4 * c) for c in range(copies) for s, t in (a, b)]
        V = GraphCase("matching", 4 * copies, both_ways(edges)).velocity()
        graphs.append(advdiff.Generator(None, V, 1.0))
    for time in (0.3, 5.0):
        f = partial(advdiff.exponential, time=time, tol=1e-11)
        found = variation.operator(*graphs, f)
        assert found == pytest.approx(1 - math.exp(-2 * time), rel=1e-8)
        assert found == pytest.approx(bounds.local(shift_size(graphs[0].velocity, graphs[1].velocity), time), rel=1e-7)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("heads", HEADS)
@pytest.mark.parametrize("n", [0, 1, 5, 60])
def test_graphs_without_edges_do_not_vary(n, heads, norm):
    query = torch.randn((n, 2) if heads is None else (n, heads, 2), dtype=f64)
    V = GraphCase("no_edges", n, []).velocity()
    L, other = (advdiff.Generator(advdiff.Attention(query, query), V, beta) for beta in (0.5, 1.0))
    assert variation.operator(L, other, norm=norm) == 0.0
    assert variation.first_order_operator(L, other, norm=norm) == 0.0


@pytest.mark.parametrize("norm", NORMS)
def test_an_edge_that_appears_by_hand(norm):
    """C = I on two nodes, from no edge to one: e^{βTV} − I has the norm e^{βT} − 1 in both."""
    query = torch.tensor([[1.0], [-1.0]], dtype=f64)
    C = advdiff.Attention(query, query)
    L, other = (
        advdiff.Generator(C, GraphCase("pair", 2, edges).velocity(), 0.5) for edges in ([], both_ways([(0, 1)]))
    )
    assert variation.operator(L, other, norm=norm) == pytest.approx(math.exp(0.5) - 1, rel=1e-10)
    assert variation.first_order_operator(L, other, norm=norm) == pytest.approx(0.5, rel=1e-10)


@settings(max_examples=15)
@given(changes(coupling="attention"))
def test_measured_variations_obey_the_bounds(change: Change):
    """The three modules together, on random graphs: growth, size of the shift, bound, measurement."""
    norm = "infinity" if change.kind == "row" else "spectral"
    C = advdiff.Attention(torch.tensor(change.query), torch.tensor(change.key))
    velocities = []
    for A in (change.A, change.A2):
        target, source = np.nonzero(A)
        edges = torch.tensor(np.stack([source, target]))
        velocities.append(advdiff.normalize_adjacency(edges, len(A), torch.tensor(A[target, source]), change.kind))
    L, other = (advdiff.Generator(C, V, change.beta) for V in velocities)
    x, g = shift_size(*velocities, norm), bounds.growth(C, change.beta, change.kind)
    assert x == pytest.approx(change.x, abs=1e-10)
    flow, flow2 = change.flows(1.0)
    found = variation.operator(L, other, norm=norm)
    assert found == pytest.approx(change.norm(flow2 - flow), abs=1e-9 * change.norm(flow))
    assert found <= bounds.exponential(x, change.beta, 1.0, g) * (1 + 1e-9) + 1e-9
    assert variation.first_order_operator(L, other, norm=norm) <= bounds.exponential(x, change.beta, 1.0, g) + 1e-9


# --- the variation of a representation -----------------------------------------------------------------------------


@pytest.mark.parametrize("function", FUNCTIONS)
@each_state
def test_difference_and_relative(heads, dtype, state, function):
    pair = make_pair(7, "row", heads, dtype, directed=True)
    f, dense = FUNCTIONS[function]
    options = {} if f is None else {"f": f}
    Z = pair.state(state)
    before, after = (act(np.stack([dense(M) for M in P]), Z.double().numpy(), heads) for P in (pair.P, pair.P2))
    difference = variation.difference(pair.L, pair.other, Z, **options)
    assert difference.dtype == dtype and relative_error(difference, after - before) < TOL[dtype]
    expected = np.linalg.norm(after - before) / np.linalg.norm(before)
    assert variation.relative(pair.L, pair.other, Z, **options) == pytest.approx(expected, rel=TOL[dtype])


def test_relative_is_relative_to_the_first_graph():
    """P₂ → no edge, local: Z = (1, 1) stays, then decays by e^{-1}."""
    L, other = (
        advdiff.Generator(None, GraphCase("pair", 2, edges).velocity(), 1.0) for edges in (both_ways([(0, 1)]), [])
    )
    Z = torch.ones(2, dtype=f64)
    assert variation.relative(L, other, Z) == pytest.approx(1 - math.exp(-1), rel=1e-10)
    assert variation.relative(other, L, Z) == pytest.approx(math.e - 1, rel=1e-10)
    assert variation.relative(L, L, Z) == 0.0


def test_nonlocal_diffusion_does_not_see_the_graph():
    pair = make_pair(7, beta=0.0)
    assert variation.operator(pair.L, pair.other) == 0.0
    assert variation.relative(pair.L, pair.other, pair.state("matrix")) == 0.0


# --- first order ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("time", [0.0, 0.3, 4.5])
@each_state
def test_first_order_is_the_frechet_derivative(heads, dtype, state, time):
    pair = make_pair(7, "row", heads, dtype, directed=True)
    Z = pair.state(state)
    expected = act(pair.derivative(time), Z.double().numpy(), heads)
    found = variation.first_order(pair.L, pair.other, Z, time)
    assert found.dtype == dtype and relative_error(found, expected) < (1e-11 if dtype == f64 else 1e-4)


@pytest.mark.parametrize(("heads", "directed"), [(None, True), (3, False)])
@pytest.mark.parametrize(("norm", "lanczos"), [("spectral", False), ("spectral", True), ("infinity", False)])
def test_first_order_operator(heads, directed, norm, lanczos, monkeypatch):
    if lanczos:  # as for large graphs, on one where it is quick
        monkeypatch.setattr(norms, "_LANCZOS_VECTORS", 6)
    pair = make_pair(7, "symmetric", heads, f64, directed)
    expected = max(float(np.linalg.norm(M, NORMS[norm])) for M in pair.derivative(0.7))
    assert variation.first_order_operator(pair.L, pair.other, 0.7, norm) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(("leaves", "time"), [(100, 1.0), (30, 20.0)])
def test_first_order_where_the_generator_is_large(leaves, time):
    """The hub attention on a star: ‖L‖₂ ≈ √N and far from normal; the quadrature still has all digits."""
    hub = hub_attention(leaves, "row", 1.0)
    case = star(leaves)
    trimmed = GraphCase("trimmed", leaves + 1, [edge for edge in case.edges if 1 not in edge])
    other = advdiff.Generator(hub.L.coupling, trimmed.velocity("row"), 1.0)
    direction = normalized(trimmed.adjacency, "row") - normalized(case.adjacency, "row")
    derivative = scipy.linalg.expm_frechet(time * (hub.P[0] - hub.eye), time * direction, compute_expm=False)
    expected = derivative @ hub.Z.numpy()
    assert relative_error(variation.first_order(hub.L, other, hub.Z, time), expected) < 1e-9


def test_first_order_is_wrong_in_the_second_order():
    """Halve the change and the error falls to a quarter, and obeys (v)."""
    base = random_case(7, False, 1)
    query, key = torch.randn(2, 7, 3, dtype=f64)
    C, Z = advdiff.Attention(query, key), torch.randn(7, 2, dtype=f64)
    bump = 1 + 0.5 * np.cos(np.arange(len(base.edges) // 2))
    L = advdiff.Generator(C, base.velocity(), 1.0)
    errors = []
    for share in (0.02, 0.01, 0.005):
        weight = np.array(base.weight) * np.tile(bump, 2) ** share
        other = advdiff.Generator(C, GraphCase("bumped", 7, base.edges, list(weight)).velocity(), 1.0)
        error = variation.difference(L, other, Z) - variation.first_order(L, other, Z)
        x = shift_size(L.velocity, other.velocity)
        assert error.norm() <= bounds.first_order_error(x, 1.0, 1.0, bounds.growth(C, 1.0)) * Z.norm()
        errors.append(float(error.norm()))
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.02)


def test_first_order_is_adjoint_to_that_of_the_transposes():
    pair = make_pair(7, "row", 3, f64, True)
    Y, Z = torch.randn(2, 7, 3, 2, dtype=f64)
    left = (Y * variation.first_order(pair.L, pair.other, Z)).sum()
    right = (variation.first_order(pair.L.T, pair.other.T, Y) * Z).sum()
    assert float(left) == pytest.approx(float(right), rel=1e-10)


def test_first_order_and_difference_are_differentiable():
    pair = make_pair(7, "row", directed=True)
    Z = torch.randn(7, 2, dtype=f64, requires_grad=True)
    weight = torch.randn(7, 2, dtype=f64)
    for measure in (variation.first_order, variation.difference):
        (gradient,) = torch.autograd.grad((weight * measure(pair.L, pair.other, Z)).sum(), Z)
        expected = measure(pair.L.T, pair.other.T, weight)
        assert torch.allclose(gradient, expected, rtol=1e-8, atol=1e-10)


# --- bad input -----------------------------------------------------------------------------------------------------

MEASURES: dict[str, Callable[[advdiff.Generator, advdiff.Generator, Tensor], object]] = {
    "difference": variation.difference,
    "relative": variation.relative,
    "operator": lambda L, other, _: variation.operator(L, other),
    "operator_infinity": lambda L, other, _: variation.operator(L, other, norm="infinity"),
    "first_order": variation.first_order,
    "first_order_operator": lambda L, other, _: variation.first_order_operator(L, other),
}
each_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())


def on_meta(terms: str) -> advdiff.Generator:
    query, edges = torch.ones(7, 3, device="meta"), torch.zeros(2, 4, dtype=torch.int64, device="meta")
    V = advdiff.normalize_adjacency(edges, 7)
    return advdiff.Generator(
        advdiff.Attention(query, query) if "C" in terms else None, V if "V" in terms else None, 1.0
    )


@each_measure
def test_graphs_of_different_sizes(measure):
    pair, larger = make_pair(7), make_pair(50)
    with pytest.raises(ValueError, match=r"7 and 50 nodes; .*same nodes"):
        measure(pair.L, larger.L, pair.state("matrix"))


@each_measure
def test_couplings_with_different_heads(measure):
    """Seven heads on seven nodes, where shapes would match by accident."""
    pair, other = make_pair(7), make_pair(7, heads=7)
    with pytest.raises(ValueError, match="heads=None and heads=7"):
        measure(pair.L, other.L, pair.state("matrix"))
    with pytest.raises(ValueError, match="heads=7 and heads=3"):
        measure(other.L, make_pair(7, heads=3).L, pair.state("matrix"))


@pytest.mark.parametrize("terms", ["C", "V", "CV"])
@pytest.mark.parametrize("name", ["relative", "operator", "operator_infinity", "first_order_operator"])
def test_generators_without_values(name, terms):
    with pytest.raises(ValueError, match=r"meta device .* move it"):
        MEASURES[name](on_meta(terms), on_meta(terms), torch.ones(7, 2, device="meta"))


@pytest.mark.parametrize("name", ["relative", "operator", "first_order_operator"])
def test_one_generator_without_values(name):
    pair = make_pair(7, dtype=f32)
    with pytest.raises(ValueError, match=r"meta"):
        MEASURES[name](pair.L, on_meta("CV"), pair.state("matrix"))


@each_measure
def test_precisions_that_differ(measure):
    pair, single = make_pair(7), make_pair(7, dtype=f32)
    with pytest.raises(ValueError, match="make them agree"):
        measure(pair.L, single.L, pair.state("matrix"))


def test_unknown_norms_and_times():
    pair = make_pair(7)
    with pytest.raises(ValueError, match="spectral, infinity"):
        variation.operator(pair.L, pair.other, norm="nuclear")
    with pytest.raises(ValueError, match="spectral, infinity"):
        variation.first_order_operator(pair.L, pair.other, norm="nuclear")
    for time in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=r"time is .*not negative"):
            variation.first_order(pair.L, pair.other, pair.state("matrix"), time)
        with pytest.raises(ValueError, match=r"time is .*not negative"):
            variation.first_order_operator(pair.L, pair.other, time)


def test_states_that_do_not_fit():
    pair = make_pair(7)
    for measure in (variation.difference, variation.relative, variation.first_order):
        with pytest.raises(ValueError, match="5 rows but the graph has 7 nodes"):
            measure(pair.L, pair.other, torch.ones(5, 2, dtype=f64))
    with pytest.raises(ValueError, match="is zero; a relative variation is not defined"):
        variation.relative(pair.L, pair.other, torch.zeros(7, 2, dtype=f64))


def test_the_infinity_norm_is_for_small_graphs():
    n = variation.LARGEST_DENSE + 1
    L = advdiff.Generator(None, GraphCase("no_edges", n, []).velocity(), 1.0)
    with pytest.raises(ValueError, match=rf"has {n} nodes; use norm='spectral' above 4096"):
        variation.operator(L, L, norm="infinity")
