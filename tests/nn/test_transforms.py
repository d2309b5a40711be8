"""``torch.func`` and gradients of gradients, for layer, model and solvers."""

from __future__ import annotations

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


@pytest.mark.parametrize("name", ["directed_weighted", "batch_unsorted"])
def test_the_model_twice(name: str) -> None:
    """A penalty on the gradient, as in physics-informed or robust training."""
    case, module = BY_NAME[name], model(order=3)
    x = random(case.num_nodes, 3).requires_grad_()

    def function(x: Tensor) -> Tensor:
        return module(x, case.edge_index, case.edge_weight, batch=case.batch_vector).tanh()

    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))
