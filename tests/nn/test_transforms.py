"""``torch.func`` and gradients of gradients, for layer, model and solvers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, jacrev, stack_module_state, vmap

import advdiff
from advdiff.nn import AdvDiffConv, AdvDIFFormer
from tests.cases import BY_NAME

CASE = BY_NAME["directed_weighted"]
EDGES, WEIGHT, NODES = CASE.edge_index, CASE.edge_weight, CASE.num_nodes


def random(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


X = random(NODES, 3)


def model(**settings) -> AdvDIFFormer:
    torch.manual_seed(0)
    return AdvDIFFormer(3, 4, 2, heads=2, **settings).double()


def loss(parameters: dict, module: AdvDIFFormer, x: Tensor, *rest) -> Tensor:
    return functional_call(module, parameters, (x, EDGES, *rest)).square().sum()


@pytest.mark.parametrize("settings", [{}, {"num_layers": 2, "learn": ("beta",)}], ids=["plain", "learned"])
def test_functional_call_and_grad(settings: dict) -> None:
    module = model(**settings)
    parameters = dict(module.named_parameters())
    by_func = grad(loss)(parameters, module, X)
    loss(parameters, module, X).backward()
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(by_func[name], parameter.grad, msg=name)


def test_grad_with_respect_to_features_and_edge_weights() -> None:
    module = model()
    parameters = dict(module.named_parameters())
    x, weight = X.clone().requires_grad_(), WEIGHT.clone().requires_grad_()
    expected = torch.autograd.grad(loss(parameters, module, x, weight), (x, weight))
    for found, wanted in zip(grad(loss, (2, 3))(parameters, module, X, WEIGHT), expected, strict=True):
        torch.testing.assert_close(found, wanted)


def test_vmap_over_features() -> None:
    module = model()
    many = random(4, NODES, 3, seed=1)
    torch.testing.assert_close(vmap(lambda x: module(x, EDGES))(many), torch.stack([module(x, EDGES) for x in many]))
    per_sample = vmap(grad(lambda x: module(x, EDGES).square().sum()))(many)
    for x, found in zip(many, per_sample, strict=True):
        x = x.clone().requires_grad_()
        torch.testing.assert_close(found, torch.autograd.grad(module(x, EDGES).square().sum(), x)[0])


def test_an_ensemble_in_one_call() -> None:
    members = [AdvDIFFormer(3, 4, 2).double() for _ in range(3)]
    parameters, buffers = stack_module_state(members)
    out = vmap(lambda p, b: functional_call(members[0], (p, b), (X, EDGES)))(parameters, buffers)
    torch.testing.assert_close(out, torch.stack([member(X, EDGES) for member in members]))


def test_jacobian_of_a_batch_of_graphs() -> None:
    case = BY_NAME["batch_unsorted"]
    layer = AdvDiffConv(3, 2).double()
    x = random(case.num_nodes, 3)
    found = jacrev(lambda x: layer(x, case.edge_index, batch=case.batch_vector))(x)
    wanted = torch.autograd.functional.jacobian(lambda x: layer(x, case.edge_index, batch=case.batch_vector), x)
    torch.testing.assert_close(found, wanted)


# ------------------------------------------------------------------------------------------------ twice


@pytest.mark.parametrize("name", ["directed_weighted", "batch_unsorted", "isolated"])
def test_attention_twice(name: str) -> None:
    case = BY_NAME[name]
    query, key = (random(case.num_nodes, 2, 2, seed=s).requires_grad_() for s in (0, 1))

    def factors(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
        C = advdiff.Attention(query, key, case.batch_vector)
        return C.left, C.right

    assert torch.autograd.gradgradcheck(factors, (query, key))


SOLVERS: dict[str, Callable[[advdiff.Generator, Tensor, Tensor, Tensor], Tensor]] = {
    "product": lambda L, Z, T, theta: L @ Z,
    "powers": lambda L, Z, T, theta: torch.stack(advdiff.powers(L.propagator, Z, 3)[1:]),
    "powers with a source": lambda L, Z, T, theta: torch.stack(advdiff.powers(L.propagator, Z, 2, source=Z.tanh())[1:]),
    "resolvent, dense": lambda L, Z, T, theta: advdiff.resolvent(L, Z, theta, "dense"),
    "resolvent, lowrank": lambda L, Z, T, theta: advdiff.resolvent(L, Z, theta, "lowrank", 1e-12),
    "exponential, dense": lambda L, Z, T, theta: advdiff.exponential(L, Z, T, "dense"),
    "exponential, taylor": lambda L, Z, T, theta: advdiff.exponential(L, Z, T, "taylor", 1e-9),
}


@pytest.mark.parametrize("name", ["directed_weighted", "batch_unsorted"])
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
def test_every_solver_twice(name: str, solver: Callable) -> None:
    """Second gradients in query, key, edge weights, β of each head, T, θ and Z."""
    if name == "batch_unsorted" and solver is SOLVERS["exponential, dense"]:
        pytest.skip("its gradient is that of taylor")
    case = BY_NAME[name]
    query, key = (random(case.num_nodes, 2, 2, seed=s).requires_grad_() for s in (0, 1))
    Z = random(case.num_nodes, 2, seed=2).requires_grad_()
    weight = torch.linspace(0.5, 1.5, case.edge_index.size(1), dtype=torch.float64).requires_grad_()
    beta = torch.tensor([0.3, 0.7], dtype=torch.float64, requires_grad=True)
    time, theta = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.7, 2.0))

    def function(query, key, weight, beta, time, theta, Z):
        V = advdiff.normalize_adjacency(case.edge_index, case.num_nodes, weight)
        return solver(advdiff.Generator(advdiff.Attention(query, key, case.batch_vector), V, beta), Z, time, theta)

    given = (query, key, weight, beta, time, theta, Z)
    assert torch.autograd.gradgradcheck(function, given, fast_mode=True, atol=1e-5)


def test_a_penalty_on_the_gradient_of_the_model() -> None:
    """As in robust or physics-informed training: against the same by finite differences."""
    module, weight = model(order=3), WEIGHT
    first = module.layers[0].output

    def penalty() -> Tensor:
        x = X.clone().requires_grad_()
        (slope,) = torch.autograd.grad(module(x, EDGES, weight).sum(), x, create_graph=True)
        return slope.square().sum()

    penalty().backward()
    found, step = first.grad[0, 0, 0, 0].item(), 1e-6
    with torch.no_grad():
        values = []
        for sign in (1, -1):
            first[0, 0, 0, 0] += sign * step
            with torch.enable_grad():
                values.append(penalty().item())
            first[0, 0, 0, 0] -= sign * step
    assert found == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-5)
