"""Every public function keeps the device and precision of its input: on ``meta`` anywhere, on ``cuda`` if there is one.

A tensor that a function made on the CPU by itself would fail to meet the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

import advdiff
from advdiff.propagation.exponential import METHODS
from tests.cases import BY_NAME, KINDS

CUDA = pytest.param(
    "cuda", marks=[pytest.mark.cuda, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]
)


class Setting:
    """The same inputs on any device."""

    def __init__(self, device: str, dtype: torch.dtype, heads: int | None, batched: bool, kind: str) -> None:
        case = BY_NAME["batch_unsorted" if batched else "weighted"]
        torch.manual_seed(0)
        shape = (8, 2) if heads is None else (8, heads, 2)

        def leaf(*shape: int) -> Tensor:
            return torch.randn(*shape).to(device, dtype).requires_grad_()

        self.query, self.key, self.Z = leaf(*shape), leaf(*shape), leaf(8, 3)
        self.beta = torch.tensor(0.5).to(device, dtype).requires_grad_()
        self.edge_index = case.edge_index.to(device)
        self.edge_weight = torch.tensor(case.weight).to(device, dtype)
        self.batch = case.batch_vector.to(device) if batched else None
        self.V = advdiff.normalize_adjacency(self.edge_index, 8, self.edge_weight, kind)
        self.C = advdiff.Attention(self.query, self.key, self.batch)
        self.L = advdiff.Generator(self.C, self.V, self.beta)

    @property
    def matrix(self) -> Tensor:
        """A sparse one with the weights of the edges."""
        return torch.sparse_coo_tensor(self.edge_index, self.edge_weight, (8, 8))

    @property
    def leaves(self) -> list[Tensor]:
        return [self.query, self.key, self.Z, self.beta]


def _normalized(s: Setting) -> Iterator[Tensor]:
    for kind in KINDS:
        for self_loops in ("none", "isolated", "all"):
            for weight in (None, s.edge_weight):
                V = advdiff.normalize_adjacency(s.edge_index, 8, weight, kind, self_loops=self_loops, dtype=s.Z.dtype)
                yield V.to_dense()
                yield V @ s.Z


def _products(A: advdiff.Operator, s: Setting) -> Iterator[Tensor]:
    yield A @ s.Z
    yield A.T @ s.Z
    yield advdiff.exponential(A, s.Z, 0.5)


TABLE: dict[str, Callable[[Setting], Iterator[Tensor]]] = {
    "normalize_adjacency": _normalized,
    "Velocity": lambda s: iter([s.V @ s.Z, s.V.T @ s.Z, s.V @ s.Z[:, 0], s.V.to_dense()]),
    "Attention": lambda s: iter([s.C @ s.Z, s.C.T @ s.Z, s.C @ s.Z[:, 0], s.C.to_dense()]),
    "Generator": lambda s: iter([s.L @ s.Z, s.L.T @ s.Z, s.L @ s.Z[:, 0], s.L.to_dense()]),
    "Propagator": lambda s: iter([s.L.propagator @ s.Z, s.L.propagator.T @ s.Z, s.L.propagator.to_dense()]),
    "gradient": lambda s: iter([advdiff.gradient(s.Z, s.edge_index)]),
    "divergence": lambda s: iter([advdiff.divergence(advdiff.gradient(s.Z, s.edge_index), s.edge_index, 8)]),
    "exponential": lambda s: (advdiff.exponential(s.L, s.Z, 1.0, m, 1e-5) for m in ("auto", *METHODS)),
    "resolvent": lambda s: (advdiff.resolvent(s.L, s.Z, 2.0, method) for method in ("auto", "dense", "lowrank")),
    "powers": lambda s: iter(
        [
            *advdiff.powers(s.L.propagator, s.Z, 3),
            *advdiff.powers(s.L.propagator, s.Z, 2, source=s.Z),
            *(state for P in (s.C, s.V) for state in advdiff.powers(P, s.Z, 2)),
        ]
    ),
    "phi": lambda s: (advdiff.phi(k, s.L, s.Z) for k in (1, 2)),
    "LowRank": lambda s: _products(advdiff.LowRank(s.Z, s.Z), s),
    "Sparse": lambda s: _products(advdiff.Sparse(s.matrix), s),
    "Operator": lambda s: _products(advdiff.LowRank(s.Z, s.Z) + advdiff.Sparse(s.matrix), s),
    "MatrixFree": lambda s: _products(
        advdiff.MatrixFree(lambda Z: 2.0 * Z, lambda Z: 2.0 * Z, num_nodes=8, field_of_values=(2.0, 2.0)), s
    ),
}
WITHOUT_TENSORS = {"NearSingularWarning", "SingularGeneratorError", "SingularVelocityError", "Solution", "Statistics"}
WITHOUT_TENSORS |= {"AccuracyWarning", "FlowOverflowError", "set_value_checks"}
WITHOUT_TENSORS |= {"as_scipy"}  # arrays of numpy, on the host


def test_the_table_is_complete() -> None:
    assert TABLE.keys() | WITHOUT_TENSORS == set(advdiff.__all__)


@pytest.fixture(params=["cpu", "meta", CUDA])
def device(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("function", TABLE.values(), ids=TABLE.keys())
def test_device_and_precision_are_kept(function, device: str, dtype: torch.dtype) -> None:
    _skip_what_torch_cannot_do(function, device)
    for heads, batched, kind in itertools.product((None, 3), (False, True), KINDS):
        setting = Setting(device, dtype, heads, batched, kind)
        for output in function(setting):
            assert (output.device.type, output.dtype) == (device, dtype)
            if output.requires_grad:
                _check_gradients(output, setting.leaves)


def _skip_what_torch_cannot_do(function: Callable[[Setting], Iterator[Tensor]], device: str) -> None:
    if device == "meta" and function in (TABLE["Sparse"], TABLE["Operator"]):
        pytest.skip("torch cannot coalesce a sparse tensor on the meta device")


def _check_gradients(output: Tensor, leaves: list[Tensor]) -> None:
    gradients = torch.autograd.grad(output.sum(), leaves, retain_graph=True, allow_unused=True)
    for leaf, gradient in zip(leaves, gradients, strict=True):
        if gradient is not None:
            assert (gradient.device, gradient.dtype, gradient.shape) == (leaf.device, leaf.dtype, leaf.shape)


@pytest.mark.parametrize("function", TABLE.values(), ids=TABLE.keys())
@pytest.mark.parametrize("device", ["meta", CUDA])
def test_shapes_and_values_are_those_of_the_cpu(function, device: str, dtype: torch.dtype) -> None:
    _skip_what_torch_cannot_do(function, device)
    for heads, kind in itertools.product((None, 3), KINDS):
        settings = [Setting(place, dtype, heads, True, kind) for place in ("cpu", device)]
        for expected, actual in zip(*(function(setting) for setting in settings), strict=True):
            assert actual.shape == expected.shape
            if device != "meta":
                torch.testing.assert_close(actual.cpu(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("beta", [0.5, torch.tensor(0.5)], ids=["number", "cpu_tensor"])
def test_beta_may_stay_on_the_cpu(beta, device: str) -> None:
    setting = Setting(device, torch.float32, 3, True, "symmetric")
    L = advdiff.Generator(setting.C, setting.V, beta)
    for output in (L @ setting.Z, advdiff.exponential(L, setting.Z), advdiff.resolvent(L, setting.Z, 2.0)):
        assert output.device.type == device
