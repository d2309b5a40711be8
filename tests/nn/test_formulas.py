"""The layers against their formulas: dense matrices in plain numpy, scipy's exponential, PyTorch Geometric's layers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor, nn
from torch_geometric.nn import AntiSymmetricConv, GATConv, GCNConv, SGConv

from advdiff.nn import build
from advdiff.nn.baselines import cde
from advdiff.nn.baselines.a_dgn import ADGN
from advdiff.nn.baselines.cde import CDE
from advdiff.nn.baselines.diffusion import (
    LinearDiffusion,
    NonLocalDiffusion,
    PiecewiseDiffusion,
    TimeDependentDiffusion,
)
from advdiff.nn.baselines.gat import GAT
from advdiff.nn.baselines.gcn import GCN
from advdiff.nn.baselines.grand import Grand
from advdiff.nn.baselines.integrate import integrate
from advdiff.nn.baselines.sgc import SGC
from tests.cases import BY_NAME, CASES, GraphCase, each, some
from tests.nn.dense import LARGE, array
from tests.reference import attention, normalized, relative_error

WIDTH = 6
heads_1_and_3 = pytest.mark.parametrize("heads", [1, 3])


def state(case: GraphCase) -> Tensor:
    return torch.tensor(np.random.default_rng(5).normal(size=(case.num_nodes, WIDTH)))


def run(layer: nn.Module, case: GraphCase, z: Tensor | None = None) -> Tensor:
    z = state(case) if z is None else z
    return layer.double()(z, case.edge_index, case.edge_weight, None, case.batch_vector)


def on_edges(layer: nn.Module, case: GraphCase, z: np.ndarray, self_loops: bool) -> np.ndarray:
    """The mean over the heads, of width d, of a_uv e^{q·k/√d} / Σ_w a_uw e^{q·k/√d}, entry by entry."""
    A = case.adjacency
    if self_loops:
        A = A - np.diag(np.diag(A)) + np.eye(len(A))
    total = np.zeros_like(A)
    query, key = (z @ array(linear.weight).T for linear in (layer.query, layer.key))
    if layer.query.bias is not None:
        query = query + array(layer.query.bias)
    size = query.shape[1] // layer.heads
    for h in range(layer.heads):
        block = slice(h * size, (h + 1) * size)
        for u in range(len(A)):
            part = np.array([A[u, v] * np.exp(query[u, block] @ key[v, block] / np.sqrt(size)) for v in range(len(A))])
            total[u] += part / part.sum() if part.sum() > 0 else 0.0
    return total / layer.heads


def everywhere(layer: nn.Module, case: GraphCase, z: np.ndarray) -> list[np.ndarray]:
    """C_h with c_uv ∝ 1 + q̂·k̂ for every head."""
    blocks = [slice(h * WIDTH, (h + 1) * WIDTH) for h in range(layer.heads)]
    return [attention(z @ array(layer.query.weight)[b].T, z @ array(layer.key.weight)[b].T, case.batch) for b in blocks]


# -- diffusion ----------------------------------------------------------------------------------------------------


@each([*CASES, LARGE])
@pytest.mark.parametrize("kind", ["symmetric", "row"])
def test_linear_diffusion_is_the_matrix_exponential(case: GraphCase, kind: str) -> None:
    C = normalized(case.adjacency, kind)
    expected = scipy.linalg.expm(-1.7 * (np.eye(case.num_nodes) - C)) @ array(state(case))
    layer = LinearDiffusion(WIDTH, time=1.7, normalization=kind, tol=1e-12)
    assert relative_error(run(layer, case), expected) <= 1e-11
    layer.tol = 1e-6
    assert relative_error(run(layer, case), expected) <= 1e-6


def test_layers_of_linear_diffusion_add_their_times() -> None:
    case = BY_NAME["weighted"]
    models = [
        build("diff-linear", WIDTH, 8, 2, num_layers=n, time=t, tol=1e-12).double() for n, t in ((3, 0.5), (1, 1.5))
    ]
    models[1].load_state_dict(models[0].state_dict())
    torch.testing.assert_close(*(run_model(model, case) for model in models))


def run_model(model: nn.Module, case: GraphCase) -> Tensor:
    return model(state(case), case.edge_index, case.edge_weight, None, case.batch_vector)


@some("undirected", "directed_weighted")
def test_piecewise_diffusion(case: GraphCase) -> None:
    model = build("diff-multilayer", WIDTH, WIDTH, 2, num_layers=3, time=0.4, tol=1e-12).double()
    kernel = scipy.linalg.expm(-0.4 * (np.eye(case.num_nodes) - normalized(case.adjacency, "symmetric")))
    z = array(model.encoder(state(case)))
    for number, layer in enumerate(model.layers):
        assert isinstance(layer, PiecewiseDiffusion)
        z = kernel @ (np.maximum(z, 0.0) if number else z) @ array(layer.transform.weight).T + array(
            layer.transform.bias
        )
    assert relative_error(run_model(model, case), array(model.decoder(torch.tensor(z)))) <= 1e-10


@heads_1_and_3
@each(CASES)
def test_time_dependent_diffusion(case: GraphCase, heads: int) -> None:
    layer, z = TimeDependentDiffusion(WIDTH, heads, time=1.2, steps=3).double(), array(state(case))
    for _ in range(3):
        z = z + 0.4 * (on_edges(layer, case, z, self_loops=False) @ z - z)
    assert relative_error(run(layer, case), z) <= 1e-12


@heads_1_and_3
@each(CASES)
def test_non_local_diffusion(case: GraphCase, heads: int) -> None:
    layer, z = NonLocalDiffusion(WIDTH, heads, time=1.2, steps=3).double(), array(state(case))
    for _ in range(3):
        z = z + 0.4 * (sum(everywhere(layer, case, z)) / heads @ z - z)
    assert relative_error(run(layer, case), z) <= 1e-12


# -- integration --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("rk4", 4)])
def test_order_of_the_integrators(method: str, order: int) -> None:
    """∂z/∂t = −z² has the solution z/(1 + zt); the slope of the error on log–log axes is the order."""
    z, steps = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64), [8, 16, 32, 64]
    exact = z / (1 + z)
    errors = [float((integrate(lambda x: -(x**2), z, 1.0, n, method) - exact).abs().max()) for n in steps]
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(-order, abs=0.15)


@pytest.mark.parametrize("name", ["diff-time", "diff-nonlocal", "grand", "cde"])
def test_methods_of_integration_agree(name: str) -> None:
    """Fine fixed steps and the adaptive ones of torchdiffeq; gradients too."""
    case, outs = BY_NAME["batch_unsorted"], []
    time = {"time" if name.startswith("diff-") else "integration_time": 0.8}
    for method, steps in (("euler", 400), ("rk4", 10), ("dopri5", 1), *([("series", 1)] if name == "grand" else [])):
        torch.manual_seed(0)
        model = build(name, WIDTH, 8, 2, steps=steps, method=method, **time).double()
        if name in ("grand", "cde"):
            shaken(model.layers[0])
        out = run_model(model, case)
        out.sum().backward()
        outs.append((out.detach(), model.encoder[0].weight.grad))
    for (value, grad), rtol in ((outs[0], 1e-3), *((out, 1e-4) for out in outs[2:])):
        torch.testing.assert_close(value, outs[1][0], rtol=rtol, atol=rtol)
        torch.testing.assert_close(grad, outs[1][1], rtol=0.0, atol=10 * rtol * float(outs[1][1].abs().max()))


# -- graph convolutions -------------------------------------------------------------------------------------------

UNDIRECTED = [c for c in [*CASES, LARGE] if c.is_undirected and c.name not in ("self_loops",)]


def twin(layer: nn.Module, of: nn.Module) -> nn.Module:
    """PyTorch Geometric's layer with the same parameters."""
    layer.load_state_dict(of.state_dict())
    return layer.double()


@each(UNDIRECTED)
def test_gcn_and_sgc_are_those_of_pyg(case: GraphCase) -> None:
    weight = None if case.weight is None else case.edge_weight
    for ours, theirs in ((GCN(WIDTH), GCNConv(WIDTH, WIDTH)), (SGC(WIDTH, hops=3), SGConv(WIDTH, WIDTH, K=3))):
        expected = twin(theirs, ours)(state(case), case.edge_index, weight)
        torch.testing.assert_close(run(ours, case), expected)


def test_sgc_is_one_linear_map_of_the_propagated_features() -> None:
    """Â³X W + b for the whole model, with W and b read off at two of its inputs."""
    case = BY_NAME["weighted"]
    A = torch.tensor(normalized(case.adjacency + np.eye(case.num_nodes), "symmetric"))
    model = build("sgc", WIDTH, 8, 2, hops=3).double()

    def at(x: Tensor) -> Tensor:
        return model(x, case.edge_index, case.edge_weight)

    x = state(case)
    still = at(torch.zeros_like(x))
    columns = torch.eye(WIDTH, dtype=torch.float64)
    # A feature that is Perron's vector of Â is propagated to itself: it shows W.
    perron = torch.tensor(np.sqrt(case.adjacency.sum(1) + 1.0))
    W = torch.stack([(at(perron[:, None] * column) - still)[0] / perron[0] for column in columns])
    torch.testing.assert_close(at(x), A @ A @ A @ x @ W + still)
    assert any(isinstance(module, nn.ReLU) for module in build("sgc", WIDTH, 8, 2, linear=False).decoder)


@heads_1_and_3
@each([c for c in CASES if c.weight is None])
def test_gat_is_that_of_pyg(case: GraphCase, heads: int) -> None:
    ours = GAT(WIDTH, heads)
    theirs = twin(GATConv(WIDTH, WIDTH // heads, heads), ours)
    z, other = state(case).requires_grad_(), state(case).requires_grad_()
    out, expected = run(ours, case, z), theirs(other, case.edge_index)
    torch.testing.assert_close(out, expected)
    for y in (out, expected):
        y.square().sum().backward()
    torch.testing.assert_close(z.grad, other.grad)
    for parameter, reference in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, reference.grad)


# -- differential equations ---------------------------------------------------------------------------------------


def shaken(layer: nn.Module) -> nn.Module:
    """In float64, with learned numbers that start at 0 at other values."""
    layer = layer.double()
    for name, value in (("alpha", 0.4), ("beta", -0.3), ("strength", 0.7)):
        if getattr(layer, name, None) is not None:
            nn.init.constant_(getattr(layer, name), value)
    return layer


@heads_1_and_3
@pytest.mark.parametrize("source", [True, False])
@each(CASES)
def test_linear_grand_is_a_matrix_exponential(case: GraphCase, heads: int, source: bool) -> None:
    """With the source term: Z(T) of the system of twice the size whose second half Z(0) stays what it is."""
    layer = shaken(Grand(WIDTH, heads, integration_time=3.0, source=source, tol=1e-12))
    z, size, identity = array(state(case)), case.num_nodes, np.eye(case.num_nodes)
    C = on_edges(layer, case, z, self_loops=True)
    np.testing.assert_allclose(C.sum(1), 1.0)
    rate, beta = 1.0 / (1.0 + np.exp(-0.4)), -0.3 if source else 0.0
    whole = np.block([[rate * (C - identity), beta * identity], [np.zeros((size, 2 * size))]])
    expected = (scipy.linalg.expm(3.0 * whole) @ np.concatenate([z, z]))[:size]
    assert relative_error(run(layer, case), expected) <= 1e-10
    layer.tol = 1e-4
    assert np.abs(array(run(layer, case)) - expected).max() <= (1.0 + abs(beta) / rate) * 1e-4 * np.abs(z).max()
    layer.method, layer.steps = "rk4", 60
    assert relative_error(run(layer, case), expected) <= 1e-7


def test_grand_at_time_zero_and_its_number_of_products() -> None:
    case, layer = BY_NAME["undirected"], Grand(WIDTH, integration_time=0.0).double()
    torch.testing.assert_close(run(layer, case), state(case))
    assert len(Grand(WIDTH).weights()) - 1 == 9  # as its docstring says
    weights = shaken(Grand(WIDTH, integration_time=30.0, source=False, tol=1e-9)).weights()
    assert float(weights.detach().sum()) == pytest.approx(1.0, abs=1e-9)


def test_adgn_is_that_of_pyg() -> None:
    case, ours = BY_NAME["undirected"], ADGN(WIDTH, num_layers=3, epsilon=0.2, gamma=0.3)
    theirs = AntiSymmetricConv(WIDTH, num_iters=3, epsilon=0.2, gamma=0.3)
    torch.testing.assert_close(run(ours, case), twin(theirs, ours)(state(case), case.edge_index))


def test_layers_of_adgn_share_their_weights() -> None:
    sizes = {sum(p.numel() for p in build("a-dgn", WIDTH, 8, 2, num_layers=n).parameters()) for n in (1, 20)}
    assert len(sizes) == 1


@pytest.mark.parametrize("velocity", ["tanh", "relu"])
@pytest.mark.parametrize("convection", ["mean", "sum"])
@some("undirected", "weighted", "directed_weighted", "duplicates", "isolated", "batch_unsorted")
def test_cde(case: GraphCase, convection: str, velocity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cde, "CHUNK", 5)
    layer = shaken(CDE(WIDTH, heads=2, integration_time=0.6, steps=2, convection=convection, velocity=velocity))
    z = start = array(state(case))
    A = normalized(case.adjacency, "row") if convection == "mean" else case.adjacency
    M, s = array(layer.speed.weight), np.tanh if velocity == "tanh" else lambda x: np.maximum(x, 0.0)
    for _ in range(2):
        flow = on_edges(layer, case, z, self_loops=True) @ z - z
        for u, v in np.argwhere(A > 0):
            flow[u] += 0.7 * A[u, v] * s(M @ (z[v] - z[u])) * z[v]
        z = z + 0.3 * (flow / (1.0 + np.exp(-0.4)) - 0.3 * start)
    assert relative_error(run(layer, case), z) <= 1e-12


@pytest.mark.parametrize("velocity", ["tanh", "relu"])
def test_gradient_of_the_convection(velocity: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cde, "CHUNK", 7)
    torch.manual_seed(0)
    case = BY_NAME["directed_weighted"]
    Y, Z = (torch.randn(case.num_nodes, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(
        lambda y, z: cde._Convection.apply(y, z, case.edge_index, case.edge_weight, velocity), (Y, Z)
    )
