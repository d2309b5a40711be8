"""Deep copies, pickles and ``.to()`` of the operators: the same numbers, and nothing shared that is written to."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest
import torch

import advdiff
from advdiff.operators.segments import Segments
from tests.cases import BY_NAME, GraphCase

CASES = [BY_NAME[name] for name in ("weighted", "directed_weighted", "batch_unsorted")]


def generator(case: GraphCase, kind: str = "symmetric") -> advdiff.Generator:
    random = torch.Generator().manual_seed(0)
    query, key = (torch.randn(case.num_nodes, 2, 3, generator=random, dtype=torch.float64) for _ in range(2))
    weight = case.edge_weight
    V = advdiff.normalize_adjacency(case.edge_index, case.num_nodes, weight, kind, dtype=torch.float64)
    return advdiff.Generator(advdiff.Attention(query, key, case.batch_vector), V, beta=0.7)


@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
@pytest.mark.parametrize("copied", [deepcopy, lambda L: pickle.loads(pickle.dumps(L))], ids=["deepcopy", "pickle"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_copy_is_equal_and_independent(case: GraphCase, copied, used: bool) -> None:
    L = generator(case)
    Z = torch.ones(case.num_nodes, 2, dtype=torch.float64)
    if used:  # products keep CSR matrices, which torch cannot copy
        L @ Z, L.T @ Z
    expected = L.to_dense()
    copy = copied(L)
    assert torch.equal(copy.to_dense(), expected)
    assert torch.allclose(copy @ Z, L @ Z, rtol=1e-14) and torch.allclose(copy.T @ Z, L.T @ Z, rtol=1e-14)
    copy.velocity.entries.zero_()
    assert torch.equal(L.to_dense(), expected)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_to_another_dtype_and_back_loses_nothing_of_V(case: GraphCase) -> None:
    V = generator(case).velocity
    single = V.to(torch.float32)
    assert single.dtype == torch.float32 and single.to_dense().dtype == torch.float32
    assert torch.equal(single.to(torch.float64).to_dense(), V.to_dense())
    Z = torch.ones(case.num_nodes, 1)
    assert torch.allclose(single @ Z, (V @ Z.double()).float(), rtol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_generator_moves_as_a_whole(case: GraphCase) -> None:
    L = generator(case)
    single = L.to(torch.float32)
    Z = torch.ones(case.num_nodes, 2)
    assert (single @ Z).dtype == torch.float32
    assert torch.allclose(single @ Z, (L @ Z.double()).float(), rtol=1e-5, atol=1e-6)
    elsewhere = L.to("meta")
    assert {elsewhere.velocity.device.type, elsewhere.coupling.left.device.type} == {"meta"}
    assert (elsewhere @ Z.double().to("meta")).shape == (case.num_nodes, 2, 2)


def test_to_is_called_like_that_of_tensors() -> None:
    V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
    for moved in (V.to("cpu", torch.float64), V.to(torch.zeros(1, dtype=torch.float64)), V.to(dtype=torch.float64)):
        assert moved.dtype == torch.float64 and moved.device == V.device


def test_a_parameter_stays_a_parameter() -> None:
    case = BY_NAME["weighted"]
    beta = torch.nn.Parameter(torch.tensor(0.5, dtype=torch.float64))
    L = advdiff.Generator(velocity=generator(case).velocity, beta=beta)
    moved = L.to(torch.float32)
    (moved @ torch.ones(case.num_nodes)).sum().backward()
    assert beta.grad is not None and beta.grad.dtype == torch.float64


@pytest.mark.parametrize("batch, number, match", [
    (torch.tensor([0, 0, 2]), 2, "batch numbers 3"),
    (None, 2, "without a batch"),
])  # fmt: skip
def test_a_wrong_number_of_graphs_is_refused(batch, number: int, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Segments(3, batch, torch.device("cpu"), number)


def test_graphs_without_nodes_have_sums_of_zero() -> None:
    segments = Segments(2, torch.tensor([1, 1]), torch.device("cpu"), 4)
    assert segments.sum(torch.ones(2)).tolist() == [0.0, 2.0, 0.0, 0.0]
    assert segments.outer(torch.ones(2, 1, 1), torch.ones(2, 1, 1)).flatten().tolist() == [0.0, 2.0, 0.0, 0.0]
    nobody = Segments(0, torch.empty(0, dtype=torch.int64), torch.device("cpu"), 3)
    assert nobody.sum(torch.ones(0, 5)).shape == (3, 5)
