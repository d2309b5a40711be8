"""The empty folders in which a test of a loader puts its files and finds its cache."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where loaders look for files; it does not exist yet. What they parse is kept beside it, for this test alone."""
    monkeypatch.setenv("ADVDIFF_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ADVDIFF_CACHE", str(tmp_path / "cache"))
    return tmp_path / "data"
