"""The singular points of the inverse, and the series of which the inverse and the exponential are limits."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import pytest
import torch

from advdiff import NearSingularWarning, SingularGeneratorError
from tests.cases import KINDS, PATH, GraphCase, each
from tests.nn.dense import EXACT, LARGE, features, layer_error, make_layer, rings

WIDTH = 3
#: Solved with dense matrices, as a batch, and with sparse products.
every_path = each([PATH, rings(3), LARGE])


# -- the singular points of the inverse -------------------------------------------------------------------------


@every_path
@pytest.mark.parametrize("theta", [0.5, 1.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("tol", [1e-6, EXACT])
def test_theta_equal_to_beta_is_singular(case: GraphCase, theta: float, dtype: torch.dtype, tol: float) -> None:
    """Row-normalised without isolated nodes, P1 = (1 + β)1."""
    layer = make_layer("inverse", heads=2, theta=theta, beta=theta, normalization="row", tol=tol).to(dtype)
    data = features(case, WIDTH)
    with pytest.raises(SingularGeneratorError, match=r"singular.*choose a larger θ"):
        layer(**{**data, "x": data["x"].to(dtype)})


@every_path
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("theta", "beta"), [(0.5, 0.75), (0.5, 0.8), (0.5, 1.0)])
def test_theta_below_beta_warns_and_solves(case: GraphCase, kind: str, theta: float, beta: float) -> None:
    """Pairs of the paper's grid, where (θI + L)⁻¹ exists but is no mean of the flow."""
    layer = make_layer("inverse", theta=theta, beta=beta, normalization=kind)
    with pytest.warns(NearSingularWarning, match="below the singular value"):
        assert layer_error(layer, case) <= 1e-9


@every_path
def test_theta_above_beta_is_silent(case: GraphCase) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert layer_error(make_layer("inverse", theta=0.6, beta=0.5, normalization="row"), case) <= 1e-9


# -- one family -------------------------------------------------------------------------------------------------

Weight = Callable[[int], float]
#: Solver, coefficient of P^k, and a bound on Σ_{k>K} coefficient · ‖P‖^k where ‖P‖_∞ = 1 + β = 1.5.
LIMITS = [
    ("inverse", lambda k: 2.0 ** -(k + 1), lambda K: 0.75 ** (K + 1) / 0.5),
    ("exponential", lambda k: math.exp(-1) / math.factorial(k), lambda K: 1.5 ** (K + 1) / math.factorial(K + 1)),
]


@every_path
@pytest.mark.parametrize(("solver", "coefficient", "tail"), LIMITS, ids=["inverse", "exponential"])
def test_the_series_converges_to_the_other_solvers(
    case: GraphCase, solver: str, coefficient: Weight, tail: Weight
) -> None:
    """Σ_k P^k/(1+θ)^{k+1} → (θI + L)⁻¹ for θ > β, and e^{-T} Σ_k (TP)^k/k! → e^{-LT}, with T = θ = 1, β = 1/2.

    Both are series layers: block k of W_O is the coefficient of P^k times I.
    """
    limit, data = make_layer(solver, normalization="row"), features(case, WIDTH)
    identity = torch.eye(WIDTH, dtype=torch.float64)
    limit.output.data[0, 0] = identity
    for order in (1, 4, 12, 90):
        series = make_layer("series", normalization="row", order=order)
        series.query, series.key = limit.query, limit.key
        series.output.data = torch.stack([coefficient(k) * identity for k in range(order + 1)]).unsqueeze(1)
        distance = (series(**data) - limit(**data)).abs().max()
        assert distance <= tail(order) * data["x"].abs().max() + 1e-9
