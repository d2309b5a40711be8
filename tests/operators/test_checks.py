"""Bad input is answered at the boundary by a ``ValueError`` that says what was wrong and what would be right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

import advdiff
from tests.cases import PATH

NAN, INF = float("nan"), float("inf")
EDGES = PATH.edge_index
V = PATH.velocity("row", torch.float32)
ZEROS = torch.zeros(4, 2)
HEADS = torch.zeros(4, 3, 2)
Z = torch.ones(4, 2)
C = advdiff.Attention(ZEROS, ZEROS)
L = advdiff.Generator(C, V, 0.5)
L3 = advdiff.Generator(advdiff.Attention(HEADS, HEADS), V, 0.5)


def with_entry(value: float, *shape: int) -> torch.Tensor:
    tensor = torch.ones(*shape)
    tensor.view(-1)[0] = value
    return tensor


def normalize(edges: object = EDGES, n: int = 4, weight: object = None, **options: object) -> object:
    edges = edges if isinstance(edges, torch.Tensor) else torch.tensor(edges)
    return advdiff.normalize_adjacency(edges, n, weight, **options)


def batch_of(*numbers: float, **options: object) -> object:
    return advdiff.Attention(ZEROS, ZEROS, torch.tensor(numbers, **options))


Row = tuple[str, Callable[[], object], str]

GRAPH: list[Row] = [
    ("edge index too large", lambda: normalize([[0], [4]]), r"nodes 0 to 4.*num_nodes=4.*valid numbers are 0 to 3"),
    ("edge index negative", lambda: normalize([[-1], [2]]), r"nodes -1 to 2.*valid numbers are 0 to 3"),
    ("edges as pairs", lambda: normalize(EDGES.T), r"shape \(6, 2\).*must be \[2, number of edges\]"),
    ("edges as numbers", lambda: normalize(EDGES.float()), r"float32.*must be integers"),
    ("negative number of nodes", lambda: normalize(EDGES, -1), "num_nodes is -1.*not be negative"),
    ("NaN weight", lambda: normalize(weight=with_entry(NAN, 6)), "edge_weight holds 1 NaN or infinite.*must be finite"),
    ("infinite weight", lambda: normalize(weight=with_entry(INF, 6)), "edge_weight holds 1 NaN or infinite"),
    ("negative weight", lambda: normalize(weight=with_entry(-1.0, 6)), "negative entries.*at least 0"),
    ("integer weights", lambda: normalize(weight=torch.ones(6).long()), r"int64.*must be floating point"),
    ("too few weights", lambda: normalize(weight=torch.ones(5)), r"shape \(5,\).*each of the 6 edges: \[6\]"),
    ("weights in a column", lambda: normalize(weight=torch.ones(6, 1)), r"shape \(6, 1\).*\[6\]"),
    ("unknown normalisation", lambda: normalize(kind="left"), "unknown kind.*'left'; choose one of: symmetric, row"),
    ("unknown self-loops", lambda: normalize(self_loops="yes"), "unknown self_loops 'yes'.*none, isolated, all"),
    ("gradient out of range", lambda: advdiff.gradient(torch.ones(3), EDGES), "valid numbers are 0 to 2"),
    ("gradient of integers", lambda: advdiff.gradient(torch.ones(4).long(), EDGES), "must be floating point"),
    ("gradient of NaN", lambda: advdiff.gradient(with_entry(NAN, 4, 2), EDGES), "Z holds 1 NaN or infinite entries"),
    ("divergence of NaN", lambda: advdiff.divergence(with_entry(NAN, 6), EDGES, 4), "E holds 1 NaN or infinite"),
    ("divergence of too little", lambda: advdiff.divergence(torch.ones(5), EDGES, 4), "5 rows.*6 edges; pass one row"),
]
OPERATORS: list[Row] = [
    ("query unlike key", lambda: advdiff.Attention(ZEROS, HEADS), r"both must be \[N, d\] or \[N, H, d\]"),
    ("one-dimensional query", lambda: advdiff.Attention(Z[:, 0], Z[:, 0]), r"both must be \[N, d\] or \[N, H, d\]"),
    ("mixed precision", lambda: advdiff.Attention(ZEROS, ZEROS.double()), "float32.*float64.*make them agree"),
    ("integer query", lambda: advdiff.Attention(ZEROS.long(), ZEROS.long()), "query.*int64.*must be floating point"),
    ("NaN query", lambda: advdiff.Attention(with_entry(NAN, 4, 2), ZEROS), "query holds 1 NaN or infinite entries"),
    ("infinite key", lambda: advdiff.Attention(ZEROS, with_entry(-INF, 4, 2)), "key holds 1 NaN or infinite entries"),
    ("short batch", lambda: batch_of(0, 0, 1), r"shape \(3,\).*each of the 4 nodes"),
    ("real batch", lambda: batch_of(0.0, 0.0, 1.0, 1.0), "float32.*one integer graph number"),
    ("boolean batch", lambda: batch_of(0, 0, 1, 1, dtype=torch.bool), "torch.bool.*one integer graph number"),
    ("byte batch", lambda: batch_of(0, 0, 1, 1, dtype=torch.uint8), "torch.uint8.*one integer graph number"),
    ("negative batch", lambda: batch_of(-1, 0, 0, 0), "negative graph numbers; number the graphs 0, 1, 2"),
    ("edges across graphs", lambda: advdiff.Generator(batch_of(0, 0, 1, 1), V), "2 edges join.*the same graph number"),
    ("nothing at all", lambda: advdiff.Generator(None, None), "needs a coupling, a velocity or both"),
    ("sizes of C and V", lambda: advdiff.Generator(C, normalize(n=5)), "velocity has 5 nodes and the coupling 4"),
    ("negative beta", lambda: advdiff.Generator(C, V, -0.1), "beta is -0.1; it must be a finite number.*not negative"),
    ("NaN beta", lambda: advdiff.Generator(C, V, NAN), "beta is nan; it must be a finite number"),
    ("beta per head", lambda: advdiff.Generator(C, V, torch.ones(3)), r"beta has shape \(3,\).*one for each"),
]
#: Everything that multiplies by a state refuses the same states.
PRODUCTS: dict[str, Callable[[object], object]] = {
    "V": lambda Z: V @ Z,
    "C": lambda Z: C @ Z,
    "L": lambda Z: L @ Z,
    "exponential": lambda Z: advdiff.exponential(L, Z),
    "resolvent": lambda Z: advdiff.resolvent(L, Z),
    "powers": lambda Z: advdiff.powers(L.propagator, Z, 2),
}
MULTI_HEAD: dict[str, Callable[[object], object]] = {
    "L": lambda Z: L3 @ Z,
    "exponential": lambda Z: advdiff.exponential(L3, Z),
    "resolvent": lambda Z: advdiff.resolvent(L3, Z),
    "powers": lambda Z: advdiff.powers(L3.propagator, Z, 2),
}
STATES: list[tuple[str, torch.Tensor, str]] = [
    ("NaN", with_entry(NAN, 4, 2), "Z holds 1 NaN or infinite entries; it must be finite"),
    ("infinite", with_entry(INF, 4), "Z holds 1 NaN or infinite entries"),
    ("too few rows", torch.ones(3, 2), "Z has 3 rows but the graph has 4 nodes; pass one row per node"),
    ("a number", torch.tensor(1.0), "pass one row per node"),
    ("integers", torch.ones(4, 2).long(), "Z has dtype torch.int64; it must be floating point"),
]
PROPAGATION: list[Row] = [
    ("negative time", lambda: advdiff.exponential(L, Z, -1.0), "time is -1; it must be a finite number.*not negative"),
    ("infinite time", lambda: advdiff.exponential(L, Z, INF), "time is inf; it must be a finite number"),
    ("NaN time", lambda: advdiff.exponential(L, Z, NAN), "time is nan; it must be a finite number"),
    (
        "unknown exponential",
        lambda: advdiff.exponential(L, Z, method="pade"),
        "unknown method 'pade'; choose one of: auto, dense, taylor, krylov, chebyshev, rational, ode",
    ),
    (
        "unknown resolvent",
        lambda: advdiff.resolvent(L, Z, method="cg"),
        "unknown method 'cg'; choose one of: auto, dense, lowrank",
    ),
    ("zero tolerance", lambda: advdiff.exponential(L, Z, tol=0.0), "tol is 0; it must lie strictly between 0 and 1"),
    ("large tolerance", lambda: advdiff.resolvent(L, Z, tol=1.0), "tol is 1; it must lie strictly between 0 and 1"),
    (
        "option of another method",
        lambda: advdiff.exponential(L, Z, steps=2),
        "steps has no meaning.*belongs to: taylor",
    ),
    ("order of nothing", lambda: advdiff.exponential(L, Z, 1.0, "taylor", order=0), "must be at least 1"),
    ("too many poles", lambda: advdiff.exponential(L, Z, 1.0, "rational", order=15), "order is 15.*orders 1 to 14"),
    ("NaN theta", lambda: advdiff.resolvent(L, Z, NAN), "theta is nan; it must be a finite number"),
    ("theta at the singular value", lambda: advdiff.resolvent(L, Z, 0.5), "singular.*choose a larger θ"),
    ("theta below it", lambda: advdiff.resolvent(L, Z, 0.3), "below the singular value.*larger θ, or pass indefinite"),
    ("negative order", lambda: advdiff.powers(L.propagator, Z, -1), "order is -1; it must be 0 or larger"),
    ("source unlike Z", lambda: advdiff.powers(L.propagator, Z, 1, source=Z[:, :1]), "source has shape.*must agree"),
    ("other precision", lambda: L @ Z.double(), "Z is torch.float64.*attention is torch.float32.*make them agree"),
    ("other heads", lambda: L3 @ torch.ones(4, 2, 2), r"Z has 2 heads but the operator has 3; pass \[N, 3, F\]"),
]


@pytest.mark.parametrize("call, message", [pytest.param(f, m, id=n) for n, f, m in [*GRAPH, *OPERATORS, *PROPAGATION]])
def test_bad_input(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=f"(?s){message}"):
        call()


@pytest.mark.parametrize("product", PRODUCTS.values(), ids=PRODUCTS.keys())
@pytest.mark.parametrize("state, message", [pytest.param(z, m, id=n) for n, z, m in STATES])
def test_bad_states(product: Callable[[object], object], state: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        product(state)


@pytest.mark.parametrize("product", MULTI_HEAD.values(), ids=MULTI_HEAD.keys())
def test_heads_take_at_most_three_dimensions(product: Callable[[object], object]) -> None:
    """[N, H, F, 2] would otherwise be flattened and come back in another shape."""
    with pytest.raises(ValueError, match=r"\[N, 3, F\]"):
        product(torch.ones(4, 3, 2, 2))


def test_dense_methods_refuse_large_graphs() -> None:
    n = 10_000
    large = advdiff.Generator(advdiff.Attention(torch.ones(n, 1), torch.ones(n, 1)))
    for call in (advdiff.exponential, advdiff.resolvent):
        with pytest.raises(ValueError, match=r"10000×10000 matrix; it is limited to 8192 nodes: use method='auto'"):
            call(large, torch.ones(n), 1.0, "dense")


def test_two_devices() -> None:
    meta = torch.device("meta")
    with pytest.raises(ValueError, match="move both to one device"):
        V @ Z.to(meta)
    with pytest.raises(ValueError, match="move both to one device"):
        advdiff.Generator(advdiff.Attention(ZEROS.to(meta), ZEROS.to(meta)), V)
    with pytest.raises(ValueError, match="make them agree"):
        C @ Z.to(meta)


def test_legal_input_is_not_refused() -> None:
    """What the checks must let through: huge finite numbers, whose sum overflows, and tiny ones."""
    huge = torch.full((4, 2), 3e38)
    assert bool(torch.isfinite(advdiff.Attention(huge * 1e-20, ZEROS) @ Z).all())
    assert bool(torch.isfinite(V @ huge).all())
    assert np.isfinite(advdiff.gradient(huge, EDGES).numpy()).all()
