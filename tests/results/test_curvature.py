"""The bulge of an error below its chord: zero on lines, positive where it grows super-linearly."""

import json
from dataclasses import replace

import numpy as np
import pytest

from advdiff.experiments.plan import plans
from advdiff.experiments.recipes import find
from advdiff.results.curvature import bulge, curvature, shifts_of
from tests.experiments.made_up import changed, record

OPTIONS = {"shift": "density", "labels": "shared", "num_nodes": 60}


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_the_bulge_does_not_depend_on_units(scale):
    x = np.array([1.0, 2.0, 4.0, 8.0])
    assert bulge(scale * x, scale * (3 + 2 * x)) == pytest.approx(0.0, abs=1e-10)
    y = 1 + x**2
    assert bulge(scale * x, y) == pytest.approx(bulge(x, scale * y)) == pytest.approx(49 / 4 / y.mean())
    assert bulge(x, np.sqrt(x)) < 0


def runs(error):
    made = []
    for plan in plans(find("synthetic"), "diff-linear", 4, "quick", {}, None, OPTIONS):
        shifts = shifts_of(json.dumps({**OPTIONS, "seed": plan.seed}, sort_keys=True))
        noise = np.random.default_rng(plan.seed)
        metrics = {name: float(error(x) * (1 + 0.002 * noise.normal())) for name, x in shifts.items()}
        options = {name: plan.options[name] for name in OPTIONS}
        outcome = changed(record(), metrics=metrics, test=list(shifts))
        made.append(replace(outcome, plan=replace(plan, options=options)))
    return made


@pytest.mark.parametrize(("error", "sign"), [(lambda x: 1 + x**2, 1), (lambda x: 1 + x, 0), (lambda x: x**0.3, -1)])
def test_the_interval_tells_super_linear_from_linear(error, sign):
    found = curvature(runs(error))
    assert found.low < found.gain < found.high
    assert (found.low > 0) - (found.high < 0) == sign


def test_a_run_without_an_error_is_refused():
    (first, *_) = runs(lambda x: x)
    broken = changed(first, metrics={**first.outcome.metrics, "#5": None})
    with pytest.raises(ValueError, match="has no error on some test graph"):
        curvature([broken])
