"""Sparse features whose indices were damaged: torch's kernels would read and write wherever they point."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

from advdiff.nn import build
from tests.faults.survive import complaint

EDGES = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
TRIES = 300


@pytest.mark.parametrize("part", ["columns", "pointers", "values"])
def test_a_damaged_matrix_is_refused_or_harmless(part: str, tried: Callable[[int], None]) -> None:
    draw, model = random.Random(part), build("mlp", 5, 4, 1)
    for _ in range(TRIES):
        x = torch.rand(4, 5, generator=torch.Generator().manual_seed(draw.randrange(10**6))).round().to_sparse_csr()
        pointers, columns, values = x.crow_indices().clone(), x.col_indices().clone(), x.values().clone()
        damaged = {"columns": columns, "pointers": pointers, "values": values}[part]
        if not damaged.numel():
            continue
        number = draw.choice([-(2**40), -5, -1, 4, 5, 7, 100_000, 2**31, 2**62])
        damaged[draw.randrange(damaged.numel())] = float("nan") if part == "values" else number
        bad = torch.sparse_csr_tensor(pointers, columns, values, (4, 5), check_invariants=False)
        assert complaint(lambda: model(bad, EDGES).sum().backward()) is None  # noqa: B023
    tried(TRIES)
