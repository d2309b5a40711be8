"""β, θ and T as parameters: where they start, that they learn, and that they cannot leave their range."""

from __future__ import annotations

import pytest
import torch

from advdiff.nn import AdvDiffConv, AdvDIFFormer
from tests.cases import BY_NAME
from tests.nn.dense import every_solver

CASE = BY_NAME["weighted"]
EDGES = CASE.edge_index
X = torch.randn(CASE.num_nodes, 4, generator=torch.Generator().manual_seed(0))
OWN = {"series": (), "inverse": ("theta",), "exponential": ("time",)}


@every_solver
@pytest.mark.parametrize("heads", [1, 3])
def test_it_starts_as_the_model_without(solver: str, heads: int) -> None:
    learn = ("beta", *OWN[solver])
    models = []
    for names in ((), learn):
        torch.manual_seed(0)
        models.append(AdvDIFFormer(4, 8, 2, solver=solver, heads=heads, beta=0.3, theta=0.9, learn=names))
    fixed, learned = models
    assert not list(fixed.layers[0].learned.parameters())  # off by default
    assert sum(p.numel() for p in learned.layers[0].learned.parameters()) == heads + len(OWN[solver])
    torch.testing.assert_close(learned(X, EDGES), fixed(X, EDGES), rtol=1e-4, atol=1e-5)


@every_solver
def test_every_head_and_layer_has_its_own_and_gets_a_gradient(solver: str) -> None:
    model = AdvDIFFormer(4, 8, 2, solver=solver, heads=2, num_layers=2, learn=("beta", *OWN[solver]))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    before = [layer.beta.detach().clone() for layer in model.layers]
    model(X, EDGES).square().mean().backward()
    for layer in model.layers:
        for parameter in layer.learned.parameters():
            assert parameter.grad is not None and bool((parameter.grad != 0).all())
    optimiser.step()
    after = torch.stack([layer.beta for layer in model.layers])
    assert after.shape == (2, 2) and after.unique().numel() == 4  # each has moved its own way
    assert not torch.equal(after, torch.stack(before))


@pytest.mark.parametrize("raw", [-200.0, -5.0, 50.0])
def test_no_value_of_the_parameters_leaves_the_range(raw: float) -> None:
    layer = AdvDiffConv(4, 4, solver="inverse", heads=2, learn=("beta", "theta"))
    with torch.no_grad():
        for parameter in layer.learned.parameters():
            parameter.fill_(raw)
    assert bool((layer.beta >= 0).all()) and float(layer.theta) >= float(layer.beta.amax())
    assert float(AdvDiffConv(4, 4, solver="exponential", learn="time").time) == pytest.approx(1.0)


def test_theta_stays_above_a_beta_that_grows() -> None:
    """θ = 1 fixed would meet the singular point at β = 1; learned together, θ moves along."""
    layer = AdvDiffConv(4, 4, solver="inverse", normalization="row", learn=("beta", "theta"))
    with torch.no_grad():
        layer.learned["beta"].raw.fill_(5.0)
    assert float(layer.beta) > 5.0
    with torch.no_grad():
        assert bool(layer(X, EDGES).isfinite().all())


def test_reset_parameters_goes_back_to_the_start() -> None:
    layer = AdvDiffConv(4, 4, heads=2, beta=0.25, learn=["beta"])
    with torch.no_grad():
        layer.learned["beta"].raw.add_(3.0)
    layer.reset_parameters()
    torch.testing.assert_close(layer.beta, torch.full((2,), 0.25))


def test_a_saved_model_comes_back() -> None:
    model = AdvDIFFormer(4, 8, 2, solver="exponential", heads=2, learn=("beta", "time"))
    with torch.no_grad():
        model.layers[0].learned["time"].raw.add_(1.0)
    other = AdvDIFFormer(4, 8, 2, solver="exponential", heads=2, learn=("beta", "time"))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(X, EDGES), model(X, EDGES))


@pytest.mark.parametrize("settings, match", [
    ({"learn": ("gamma",)}, "cannot learn 'gamma'; choose among: beta, theta, time"),
    ({"learn": ("theta",)}, "solver='series' has no theta"),
    ({"learn": ("time",), "solver": "inverse"}, "solver='inverse' has no time"),
    ({"learn": ("beta",), "beta": 0.0}, "learned beta starts from 0"),
    ({"learn": ("theta",), "solver": "inverse", "theta": 0.5}, "stays above beta"),
    ({"tol": 0.0}, "tol is 0"),
])  # fmt: skip
def test_refused(settings: dict, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        AdvDIFFormer(4, 8, 2, **settings)


def test_print() -> None:
    """Red before for a layer whose β is a parameter."""
    layer = AdvDiffConv(4, 4, solver="inverse", heads=2, learn=("beta", "theta"))
    assert repr(layer) == ("AdvDiffConv(4, 4, solver='inverse', heads=2, beta=[0.5, 0.5] (learned), theta=1 (learned))")
    assert repr(layer) in str(AdvDIFFormer(4, 4, 2, solver="inverse", heads=2, learn=("beta", "theta")))
    layer = AdvDiffConv(4, 4)
    layer.beta = torch.nn.Parameter(torch.tensor(0.25))
    assert repr(layer) == "AdvDiffConv(4, 4, solver='series', heads=1, beta=0.25, order=2)"
    assert "-1" in repr(AdvDiffConv(-1, 4))


@pytest.mark.parametrize("solver", ["inverse", "exponential"])
def test_tol_of_the_model(solver: str) -> None:
    case = BY_NAME["sbm"] if "sbm" in BY_NAME else CASE
    x = torch.randn(case.num_nodes, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    outputs = []
    for tol in (1e-13, 1e-2, 1e-6):
        torch.manual_seed(0)
        model = AdvDIFFormer(4, 8, 2, solver=solver, tol=tol).double()
        assert model.layers[0].tol == tol
        outputs.append(model(x, case.edge_index))
    assert torch.allclose(outputs[0], outputs[2], rtol=1e-4)
