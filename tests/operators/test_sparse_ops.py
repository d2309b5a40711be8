"""``torch.ops.advdiff.spmm`` and ``sddmm`` against dense matrices, and as torch wants its operators."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import advdiff
from advdiff.operators.sparse_ops import sddmm, spmm, transposed
from tests.cases import BY_NAME

CASES = ["weighted", "directed_weighted", "duplicates", "isolated", "no_edges"]


def arrays(name: str) -> tuple[Tensor, Tensor, list[Tensor], Tensor]:
    """Entries, entries of the transpose, structure with the order of the entries, dense V."""
    case = BY_NAME[name]
    V = advdiff.normalize_adjacency(case.edge_index, case.num_nodes, case.edge_weight, dtype=torch.float64)
    V.entries.requires_grad_()
    value, back_value, structure = V.arrays(torch.float64)
    return value.detach(), back_value.detach(), [t.detach() for t in structure], V.to_dense().detach()


def random(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", CASES)
def test_products(name: str) -> None:
    value, back_value, structure, V = arrays(name)
    Z = random(V.size(0), 3)
    torch.testing.assert_close(spmm(value, back_value, Z, structure), V @ Z)
    torch.testing.assert_close(spmm(back_value, value, Z, transposed(structure)), V.T @ Z)
    Y = random(V.size(0), 3) + 1
    rows = torch.repeat_interleave(torch.arange(V.size(0)), structure[0].diff())
    torch.testing.assert_close(sddmm(Z, Y, structure), (Z @ Y.T)[rows, structure[1].long()])


@pytest.mark.parametrize("name", CASES[:3])
def test_gradients_of_any_order(name: str) -> None:
    value, _, structure, V = arrays(name)
    Z, Y = random(V.size(0), 2).requires_grad_(), (random(V.size(0), 2) + 1).requires_grad_()
    value.requires_grad_()

    def product(value: Tensor, Z: Tensor) -> Tensor:
        return spmm(value, value[structure[4]], Z, structure)

    assert torch.autograd.gradcheck(product, (value, Z))
    assert torch.autograd.gradgradcheck(product, (value, Z))
    assert torch.autograd.gradcheck(lambda X, Y: sddmm(X, Y, structure), (Z, Y))
    assert torch.autograd.gradgradcheck(lambda X, Y: sddmm(X, Y, structure), (Z, Y))


@pytest.mark.parametrize("name", ["weighted", "directed_weighted"])
def test_vmap_over_columns_and_over_entries(name: str) -> None:
    value, back_value, structure, V = arrays(name)
    Z = random(4, V.size(0), 2)
    torch.testing.assert_close(torch.vmap(lambda Z: spmm(value, back_value, Z, structure))(Z), V @ Z)
    scales = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    many = torch.vmap(lambda s: spmm(s * value, s * back_value, Z[0], structure))(scales)
    torch.testing.assert_close(many, scales[:, None, None] * (V @ Z[0]))
    dots = torch.vmap(lambda Z: sddmm(Z, Z, structure))(Z)
    torch.testing.assert_close(dots, torch.stack([sddmm(z, z, structure) for z in Z]))


def test_torch_finds_the_registrations_in_order() -> None:
    value, back_value, structure, V = arrays("directed_weighted")
    Z = random(V.size(0), 3).requires_grad_()
    torch.library.opcheck(torch.ops.advdiff.spmm.default, (value.requires_grad_(), back_value, Z, structure))
    torch.library.opcheck(torch.ops.advdiff.sddmm.default, (Z, random(V.size(0), 3), structure))
