"""Fixtures over the one table of cases: a test that names ``case``, ``kind``, … runs for all of them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import settings

from tests.cases import BETAS, CASES, DTYPES, HEADS, KINDS, GraphCase

# Small random graphs, the same in every run.
settings.register_profile("advdiff", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("advdiff")


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture(params=CASES, ids=lambda case: case.name)
def case(request: pytest.FixtureRequest) -> GraphCase:
    return request.param


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=DTYPES, ids=["float64", "float32"])
def dtype(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param


@pytest.fixture(params=BETAS, ids=lambda beta: f"beta{beta:g}")
def beta(request: pytest.FixtureRequest) -> float:
    return request.param


@pytest.fixture(params=HEADS, ids=lambda heads: f"heads{heads}")
def heads(request: pytest.FixtureRequest) -> int | None:
    return request.param
