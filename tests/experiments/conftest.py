"""Fixtures of the experiments."""

from __future__ import annotations

import pytest

from tests.experiments import toy as toys


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The experiment "toy" in the place of the real data and models, in this process."""
    monkeypatch.delenv("ADVDIFF_PROFILE", raising=False)
    toys.install(monkeypatch)
