"""Sparse node features (CSR): the same outputs and gradients as the dense ones."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from advdiff.nn import build, model_names
from tests.cases import BY_NAME
from tests.nn.test_synchronisations import looks

EDGES = BY_NAME["undirected"].edge_index  # 8 nodes
WIDTH = 12


def features(dtype: torch.dtype = torch.float64) -> Tensor:
    x = (torch.rand(8, WIDTH, dtype=dtype) < 0.3) * torch.rand(8, WIDTH, dtype=dtype)
    x[3] = 0.0  # a node without features
    x[:, 5] = 0.0  # a feature without nodes
    return x


@pytest.mark.parametrize("name", model_names())
def test_every_model_gives_the_same_with_sparse_features(name: str) -> None:
    x = features()
    model = build(name, WIDTH, 8, 2).double()
    gradients = []
    for given in (x, x.to_sparse_csr()):
        torch.manual_seed(1)
        model.zero_grad()
        out = model(given, EDGES)
        out.square().sum().backward()
        gradients.append([out.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    for dense, sparse in zip(*gradients, strict=True):
        torch.testing.assert_close(sparse, dense)


def test_a_changed_matrix_is_noticed() -> None:
    x = features(torch.float32).to_sparse_csr()
    model = build("mlp", WIDTH, 4, 1)
    first = model.encoder[0].weight

    def gradient() -> Tensor:
        model.zero_grad()
        model(x, EDGES).sum().backward()
        assert first.grad is not None
        return first.grad.clone()

    before = gradient()
    torch.testing.assert_close(gradient(), before, rtol=0, atol=0)
    x.mul_(2.0)
    model.zero_grad()
    model(x.to_dense(), EDGES).sum().backward()
    torch.testing.assert_close(gradient(), first.grad)


def test_the_transpose_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = Tensor.to_sparse_csr
    monkeypatch.setattr(Tensor, "to_sparse_csr", lambda self: made.append(self) or original(self))
    x = original(features())
    model = build("mlp", WIDTH, 4, 1).double()
    for _ in range(3):
        model(x, EDGES).sum().backward()
    assert len(made) == 1


def test_features_that_need_a_gradient_get_it() -> None:
    x = features().to_sparse_csr().requires_grad_()
    build("gcn", WIDTH, 4, 1).double()(x, EDGES).sum().backward()
    assert x.grad is not None


def test_refused() -> None:
    model = build("gcn", WIDTH, 4, 1).double()
    with pytest.raises(ValueError, match=r"x is stored as torch.sparse_coo; pass it dense or as CSR"):
        model(features().to_sparse(), EDGES)
    bad = features().to_sparse_csr()
    bad.values()[0] = float("nan")
    with pytest.raises(ValueError, match="x holds 1 NaN"):
        model(bad, EDGES)


@pytest.mark.parametrize("column", [100_000, 7, 4, -1, -5])
def test_a_column_outside_of_the_matrix_is_refused(column: int) -> None:
    """torch multiplies with whatever lies there, or crashes."""
    x = torch.sparse_csr_tensor([0, 1, 2, 3], [0, 1, column], torch.ones(3), (3, 4), check_invariants=False)
    edges = torch.tensor([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match=r"x is a sparse matrix of shape \(3, 4\) whose indices point outside"):
        build("mlp", 4, 8, 1)(x, edges)


@pytest.mark.parametrize("pointers", [[0, 1, 2, 9], [1, 1, 2, 3], [0, 2, 1, 3], [0, 1, 2, -3]], ids=str)
def test_bad_row_pointers_are_refused(pointers: list[int]) -> None:
    x = torch.sparse_csr_tensor(pointers, [0, 1, 2], torch.ones(3), (3, 4), check_invariants=False)
    with pytest.raises(ValueError, match="indices point outside"):
        build("mlp", 4, 8, 1)(x, torch.tensor([[0, 1], [1, 2]]))


def test_an_index_changed_after_the_first_call_is_refused() -> None:
    """The layer multiplies with its own copy, so that the check and the product see the same matrix."""
    x, model = features().to_sparse_csr(), build("mlp", WIDTH, 4, 1).double()
    model(x, EDGES)
    x.col_indices().numpy()[0] = 10**6
    with pytest.raises(ValueError, match="indices point outside"):
        model(x, EDGES)


def test_a_good_matrix_is_checked_once() -> None:
    x, model = features().to_sparse_csr(), build("mlp", WIDTH, 4, 1).double()
    model(x, EDGES)
    assert looks(lambda: model(x, EDGES)) == 1
