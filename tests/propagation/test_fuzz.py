"""The rule of the solvers over random problems: an error of at most 10·tol, or a warning or error by name.

The first 50 of 2,000 problems; ``make fuzz``, or ``ADVDIFF_FUZZ=2000`` in the environment, tries them all.
"""

from __future__ import annotations

import os

import pytest

from tests.propagation.fuzz import check

FIRST, CHUNK = 50, 25
CASES = int(os.environ.get("ADVDIFF_FUZZ", FIRST))


@pytest.mark.parametrize(
    "start", [pytest.param(start, marks=[pytest.mark.slow] * (start >= FIRST)) for start in range(0, CASES, CHUNK)]
)
def test_no_case_is_silently_wrong(start: int) -> None:
    broken = {seed: v for seed in range(start, min(start + CHUNK, CASES)) if (v := check(seed)).wrong}
    assert not broken, "\n".join(f"seed {seed}: {verdict}" for seed, verdict in broken.items())
