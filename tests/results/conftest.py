"""Fixtures of the results: the toy experiment."""

from tests.experiments.conftest import toy  # noqa: F401
