"""Sparse node features (CSR): the same outputs and gradients as the dense ones."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from advdiff.nn import build, model_names
from advdiff.nn import model as module
from tests.cases import BY_NAME

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
    original = module.recall
    monkeypatch.setattr(module, "recall", lambda *given: made.append(original(*given)) or made[-1])
    x = features().to_sparse_csr()
    model = build("mlp", WIDTH, 4, 1).double()
    for _ in range(3):
        model(x, EDGES).sum().backward()
    assert len(made) == 3 and made[0] is made[1] is made[2]


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
