"""Properties on random small graphs (hypothesis): equivariance, batches, linearity, the semigroup, transposes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import advdiff
from tests.cases import KINDS

f64 = torch.float64
METHODS = ("dense", "taylor", "krylov", "chebyshev")
TOL = 1e-11


@dataclass(frozen=True)
class Sample:
    """A random graph with random features."""

    edge_index: Tensor
    weight: Tensor
    query: Tensor
    key: Tensor
    Z: Tensor
    kind: str
    beta: float
    batch: Tensor | None = None

    @property
    def L(self) -> advdiff.Generator:
        V = advdiff.normalize_adjacency(self.edge_index, len(self.Z), self.weight, self.kind)
        return advdiff.Generator(advdiff.Attention(self.query, self.key, self.batch), V, self.beta)


@st.composite
def samples(draw: st.DrawFn, heads: int | str | None = "any", kind: str | None = None) -> Sample:
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=12))
    if draw(st.booleans()):
        edges += [(t, s) for s, t in edges]
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    heads = draw(st.sampled_from([None, 1, 3])) if heads == "any" else heads

    def randn(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=f64, generator=generator)

    shape = (n, 2) if heads is None else (n, heads, 2)
    return Sample(
        edge_index=torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T,
        weight=torch.rand(len(edges), dtype=f64, generator=generator) + 0.1,
        query=randn(*shape),
        key=randn(*shape),
        Z=randn(n, 2),
        kind=kind or draw(st.sampled_from(KINDS)),
        beta=draw(st.sampled_from([0.0, 0.2, 0.5, 1.0])),
    )


@st.composite
def functions(draw: st.DrawFn) -> Callable[[advdiff.Generator, Tensor], Tensor]:
    """Any of the library's linear functions of a generator and a state."""
    name = draw(st.sampled_from(["product", "transpose", "powers", "exponential", "lowrank", "dense"]))
    method, time = draw(st.sampled_from(METHODS)), draw(st.floats(0.1, 3.0))
    return {
        "product": lambda L, Z: L @ Z,
        "transpose": lambda L, Z: L.T @ Z,
        "powers": lambda L, Z: torch.stack(advdiff.powers(L.propagator, Z, 3)[1:]),
        "exponential": lambda L, Z: advdiff.exponential(L, Z, time, method, TOL),
        # θ = 6 is above ρ(P) − 1 for every graph of up to seven nodes.
        "lowrank": lambda L, Z: advdiff.resolvent(L, Z, 6.0, "lowrank", TOL),
        "dense": lambda L, Z: advdiff.resolvent(L, Z, 6.0, "dense", TOL),
    }[name]


def assert_close(actual: Tensor, expected: Tensor, tol: float = 1e-8) -> None:
    assert actual.shape == expected.shape
    assert float((actual - expected).norm()) <= tol * max(float(expected.norm()), 1.0)


@given(samples(), functions(), st.randoms(use_true_random=False))
def test_permutation_equivariance(sample: Sample, function, random) -> None:
    """Renumbering the nodes renumbers the result."""
    order = torch.tensor(random.sample(range(len(sample.Z)), len(sample.Z)))
    new_number = torch.argsort(order)  # node order[i] becomes node i
    permuted = replace(
        sample,
        edge_index=new_number[sample.edge_index],
        query=sample.query[order],
        key=sample.key[order],
        Z=sample.Z[order],
    )
    expected = function(sample.L, sample.Z)
    dim = expected.dim() - (2 if sample.query.dim() == 2 else 3)
    assert_close(function(permuted.L, permuted.Z), expected.index_select(dim, order))


@given(st.lists(samples(heads=3, kind="row"), min_size=1, max_size=4), functions(), st.booleans())
def test_a_batch_equals_its_graphs_one_by_one(graphs: list[Sample], function, shuffled: bool) -> None:
    """One-node graphs, graphs without edges and any order of the nodes included."""
    graphs = [replace(graph, beta=graphs[0].beta) for graph in graphs]
    counts = torch.tensor([len(graph.Z) for graph in graphs])
    first = counts.cumsum(0) - counts
    joined = Sample(
        edge_index=torch.cat([graph.edge_index + int(o) for graph, o in zip(graphs, first, strict=True)], dim=1),
        weight=torch.cat([graph.weight for graph in graphs]),
        query=torch.cat([graph.query for graph in graphs]),
        key=torch.cat([graph.key for graph in graphs]),
        Z=torch.cat([graph.Z for graph in graphs]),
        kind="row",
        beta=graphs[0].beta,
        batch=torch.repeat_interleave(torch.arange(len(graphs)) * 2, counts),  # odd graph numbers stay empty
    )
    order = torch.arange(len(joined.Z))
    if shuffled:
        order = torch.randperm(len(joined.Z), generator=torch.Generator().manual_seed(0))
        moved = {name: getattr(joined, name)[order] for name in ("query", "key", "Z", "batch")}
        joined = replace(joined, edge_index=torch.argsort(order)[joined.edge_index], **moved)
    actual = function(joined.L, joined.Z)
    apart = torch.cat([function(graph.L, graph.Z) for graph in graphs], dim=actual.dim() - 3)
    assert_close(actual, apart.index_select(actual.dim() - 3, order))


@given(samples(), functions(), st.floats(-3.0, 3.0), st.floats(-3.0, 3.0))
def test_linearity_in_the_state(sample: Sample, function, a: float, b: float) -> None:
    L, X, Y = sample.L, sample.Z, sample.Z.flip(0) + 1.0
    assert_close(function(L, a * X + b * Y), a * function(L, X) + b * function(L, Y))


@given(samples(heads=None), st.sampled_from(METHODS), st.floats(0.0, 2.0), st.floats(0.0, 2.0))
def test_semigroup(sample: Sample, method: str, s: float, t: float) -> None:
    """e^{-L(s+t)} = e^{-Ls} e^{-Lt}."""
    L, Z = sample.L, sample.Z
    twice = advdiff.exponential(L, advdiff.exponential(L, Z, t, method, TOL), s, method, TOL)
    assert_close(twice, advdiff.exponential(L, Z, s + t, method, TOL))


@given(samples(heads=3), functions())
def test_transposes_are_adjoint(sample: Sample, function) -> None:
    """⟨x, f(L) y⟩ = ⟨f(Lᵀ) x, y⟩, head by head."""
    n = len(sample.Z)
    x, y = (sample.Z.flip(0)[:, None, :].repeat(1, 3, 1), sample.Z[:, None, :].repeat(1, 3, 1))
    L = sample.L
    left = (x * function(L, y)).reshape(-1, n, 3, 2).sum((1, 3))
    right = (function(L.T, x) * y).reshape(-1, n, 3, 2).sum((1, 3))
    assert_close(left, right)


@given(samples(), st.sampled_from(METHODS), st.floats(0.1, 3.0))
def test_resolvent_inverts_and_the_flow_commutes(sample: Sample, method: str, time: float) -> None:
    """(θI + L)(θI + L)⁻¹Z = Z, and L e^{-LT}Z = e^{-LT} L Z."""
    L = sample.L
    Z = sample.Z if sample.query.dim() == 2 else sample.Z[:, None, :].repeat(1, sample.query.size(1), 1)
    X = advdiff.resolvent(L, Z, 6.0, "lowrank", TOL)
    assert_close(6.0 * X + L @ X, Z)
    assert_close(L @ advdiff.exponential(L, Z, time, method, TOL), advdiff.exponential(L, L @ Z, time, method, TOL))
