"""The CSR pattern against dense matrices, with its kernels and without."""

from __future__ import annotations

import pytest
import torch

from advdiff.operators.pattern import Pattern
from tests.cases import GraphCase
from tests.reference import randn


@pytest.fixture(params=[True, False], ids=["csr", "gather"], autouse=True)
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(Pattern, "has_kernels", lambda self, X: False)


def test_matrix_product_and_dot(case: GraphCase) -> None:
    n, (source, target) = case.num_nodes, case.edge_index
    pattern, weight = Pattern.sort(target, source, n), randn(source.numel())
    dense = torch.zeros(n, n, dtype=torch.float64).index_put((target, source), weight, accumulate=True)
    value, rows, columns = pattern.merge(weight), pattern.rows, pattern.columns.long()
    pairs = list(zip(rows.tolist(), columns.tolist(), strict=True))
    assert pairs == sorted({(int(t), int(s)) for s, t in case.edge_index.T})
    assert pattern.size == n
    torch.testing.assert_close(value, dense[rows, columns])
    torch.testing.assert_close(pattern.matrix(value).to_dense(), dense)
    Z, Y = randn(n, 3), randn(n, 3)
    torch.testing.assert_close(pattern.product(value, Z), dense @ Z)
    torch.testing.assert_close(pattern.dot(Y, Z), (Y @ Z.T)[rows, columns])


def test_on_meta_every_edge_is_an_entry() -> None:
    ends = torch.zeros(5, dtype=torch.int64, device="meta")
    pattern = Pattern.sort(ends, ends, 3)
    assert pattern.rows.shape == pattern.columns.shape == pattern.merge(torch.ones(5, device="meta")).shape == (5,)
