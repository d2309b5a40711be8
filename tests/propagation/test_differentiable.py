"""Gradients in everything: edge weights through the degrees, θ, T, and β of each head, for every solver."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import advdiff
from tests.cases import BY_NAME, GraphCase
from tests.reference import leaf

f64 = torch.float64
SOLVERS: dict[str, Callable[[advdiff.Generator, Tensor, Tensor, Tensor], Tensor]] = {
    **{
        f"exponential, {m}": lambda L, Z, T, theta, m=m: advdiff.exponential(L, Z, T, m, 1e-10)
        for m in ("dense", "taylor", "krylov", "chebyshev", "rational", "ode")
    },
    **{
        f"resolvent, {m}": lambda L, Z, T, theta, m=m: advdiff.resolvent(L, Z, theta, m, 1e-11)
        for m in ("dense", "lowrank")
    },
    "powers": lambda L, Z, T, theta: torch.stack(advdiff.powers(L.propagator, Z, 2)[1:]),
    "product": lambda L, Z, T, theta: L @ Z,
}


def weights_of(case: GraphCase) -> Tensor:
    """Symmetric where the edges are, so that perturbed weights alone make the graph directed."""
    source, target = case.edge_index
    return (0.5 + 0.1 * (source + target).double()).requires_grad_()


@pytest.mark.parametrize("name", ["path", "batch_unsorted"])
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
def test_edge_weights_theta_time_and_beta_of_each_head(name: str, solver: Callable, kind: str) -> None:
    case = BY_NAME[name]
    query, key, Z = leaf(case.num_nodes, 2, 2), leaf(case.num_nodes, 2, 2), leaf(case.num_nodes, 2)
    beta = torch.tensor([0.3, 0.7], dtype=f64, requires_grad=True)
    time, theta = (torch.tensor(value, dtype=f64, requires_grad=True) for value in (0.7, 2.0))

    def of_tensors(weight, beta, time, theta, Z):
        V = advdiff.normalize_adjacency(case.edge_index, case.num_nodes, weight, kind)
        L = advdiff.Generator(advdiff.Attention(query.detach(), key.detach(), case.batch_vector), V, beta)
        return solver(L, Z, time, theta)

    assert torch.autograd.gradcheck(of_tensors, (weights_of(case), beta, time, theta, Z), atol=1e-6, fast_mode=True)


def test_every_entry_of_the_jacobian(kind: str) -> None:
    """The same without random projections, on the path of four nodes."""
    case = BY_NAME["path"]

    def of_tensors(weight, beta, time):
        L = advdiff.Generator(None, advdiff.normalize_adjacency(case.edge_index, 4, weight, kind), beta)
        return advdiff.exponential(L, torch.eye(4, 1, dtype=f64), time, "taylor", 1e-11)

    beta = torch.tensor([0.3, 0.7], dtype=f64, requires_grad=True)
    time = torch.tensor([0.9], dtype=f64, requires_grad=True)
    assert torch.autograd.gradcheck(of_tensors, (weights_of(case), beta, time), atol=1e-6)


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
def test_beta_of_each_head_is_the_generator_of_that_head(solver: Callable, kind: str) -> None:
    case, betas = BY_NAME["directed_weighted"], (0.0, 0.4, 1.1)
    V, Z = case.velocity(kind), leaf(case.num_nodes, 2).detach()
    query, key = (leaf(case.num_nodes, 3, 2).detach() for _ in range(2))
    numbers = torch.tensor(0.8, dtype=f64), torch.tensor(1.7, dtype=f64)
    together = solver(advdiff.Generator(advdiff.Attention(query, key), V, torch.tensor(betas, dtype=f64)), Z, *numbers)
    for h, beta in enumerate(betas):
        one = solver(advdiff.Generator(advdiff.Attention(query[:, h], key[:, h]), V, beta), Z, *numbers)
        torch.testing.assert_close(together.select(-2, h), one, rtol=1e-9, atol=1e-9)


def test_weights_of_many_graphs_reach_the_product_with_V(kind: str) -> None:
    """V @ Z alone, once and twice differentiated, with duplicate edges."""
    case = BY_NAME["duplicates"]
    weight, Z = weights_of(case), leaf(case.num_nodes, 2)

    def product(weight: Tensor, Z: Tensor) -> Tensor:
        V = advdiff.normalize_adjacency(case.edge_index, case.num_nodes, weight, kind)
        return V.T @ (V @ Z)

    assert torch.autograd.gradcheck(product, (weight, Z))
    assert torch.autograd.gradgradcheck(product, (weight, Z), fast_mode=True)


def test_float32_weights_get_float32_gradients() -> None:
    case = BY_NAME["path"]
    weight = torch.ones(6, requires_grad=True)
    V = advdiff.normalize_adjacency(case.edge_index, 4, weight)
    advdiff.exponential(advdiff.Generator(None, V, 0.5), torch.arange(4.0)).sum().backward()
    assert weight.grad is not None and weight.grad.dtype == torch.float32 and bool(weight.grad.abs().sum() > 0)
