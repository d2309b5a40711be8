"""The layers against their formulas: dense matrices in plain numpy, scipy's exponential, PyTorch Geometric's layers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor, nn
from torch_geometric.nn import AntiSymmetricConv, GATConv, GCNConv, GPSConv, SGConv
from torch_geometric.transforms import GDC as GDCTransform

from advdiff.nn import build, differential, graphtrans
from advdiff.nn.convolutions import GAT, GCN, GDC, SGC
from advdiff.nn.differential import ADGN, CDE, Grand
from advdiff.nn.diffusion import LinearDiffusion, NonLocalDiffusion, PiecewiseDiffusion, TimeDependentDiffusion
from advdiff.nn.graphtrans import SelfAttention, Transformer
from advdiff.nn.integrate import integrate
from advdiff.nn.transformers import Difformer, GraphGPS
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
    """The mean over the heads of a_uv e^{q·k/√d} / Σ_w a_uw e^{q·k/√d}, entry by entry."""
    A = case.adjacency
    if self_loops:
        A = A - np.diag(np.diag(A)) + np.eye(len(A))
    total = np.zeros_like(A)
    for h in range(layer.heads):
        block = slice(h * WIDTH, (h + 1) * WIDTH)
        query, key = (z @ array(linear.weight)[block].T for linear in (layer.query, layer.key))
        for u in range(len(A)):
            part = np.array([A[u, v] * np.exp(query[u] @ key[v] / np.sqrt(WIDTH)) for v in range(len(A))])
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
    for method, steps in (("euler", 400), ("rk4", 10), ("dopri5", 1)):
        torch.manual_seed(0)
        model = build(name, WIDTH, 8, 2, time=0.8, steps=steps, method=method).double()
        out = run_model(model, case)
        out.sum().backward()
        outs.append((out.detach(), model.encoder[0].weight.grad))
    for (value, grad), rtol in ((outs[0], 1e-3), (outs[2], 1e-4)):
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
    for ours, theirs in ((GCN(WIDTH), GCNConv(WIDTH, WIDTH)), (SGC(WIDTH, order=3), SGConv(WIDTH, WIDTH, K=3))):
        expected = twin(theirs, ours)(state(case), case.edge_index, weight)
        torch.testing.assert_close(run(ours, case), expected)


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


@each([*UNDIRECTED, BY_NAME["directed_weighted"]])
def test_gdc_is_the_heat_kernel(case: GraphCase) -> None:
    layer = GDC(WIDTH, time=2.5, tol=1e-12)
    S = scipy.linalg.expm(
        -2.5 * (np.eye(case.num_nodes) - normalized(case.adjacency + np.eye(case.num_nodes), "symmetric"))
    )
    expected = S @ array(state(case)) @ array(layer.double().weight).T + array(layer.bias)
    assert relative_error(run(layer, case), expected) <= 1e-10


def test_gdc_is_that_of_pyg() -> None:
    """The transform's exact diffusion matrix, before it drops entries."""
    case, transform = BY_NAME["undirected"], GDCTransform()
    loops = torch.arange(case.num_nodes).expand(2, -1)
    edge_index = torch.cat([case.edge_index, loops], 1)
    weight = torch.ones(edge_index.size(1), dtype=torch.float64)
    edge_index, weight = transform.transition_matrix(edge_index, weight, case.num_nodes, "sym")
    S = transform.diffusion_matrix_exact(edge_index, weight, case.num_nodes, "heat", t=3.0)
    layer = GDC(WIDTH, time=3.0, tol=1e-12).double()
    torch.testing.assert_close(run(layer, case), S @ state(case) @ layer.weight.T + layer.bias)


# -- differential equations ---------------------------------------------------------------------------------------


@heads_1_and_3
@each(CASES)
def test_linear_grand_is_a_matrix_exponential(case: GraphCase, heads: int) -> None:
    layer, z = Grand(WIDTH, heads, time=1.5, steps=60).double(), array(state(case))
    C = on_edges(layer, case, z, self_loops=True)
    np.testing.assert_allclose(C.sum(1), 1.0)
    expected = scipy.linalg.expm(-1.5 * (np.eye(case.num_nodes) - C)) @ z
    assert relative_error(run(layer, case), expected) <= 1e-8
    layer.steps = 4  # the default for T = 1
    assert relative_error(run(layer, case), expected) <= 2e-3


def test_adgn_is_that_of_pyg() -> None:
    case, ours = BY_NAME["undirected"], ADGN(WIDTH, steps=3, epsilon=0.2, gamma=0.3)
    theirs = AntiSymmetricConv(WIDTH, num_iters=3, epsilon=0.2, gamma=0.3)
    torch.testing.assert_close(run(ours, case), twin(theirs, ours)(state(case), case.edge_index))


@pytest.mark.parametrize("convection", ["mean", "sum"])
@some("undirected", "weighted", "directed_weighted", "duplicates", "isolated", "batch_unsorted")
def test_cde(case: GraphCase, convection: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential, "CHUNK", 5)
    layer, z = CDE(WIDTH, heads=2, time=0.6, steps=2, convection=convection).double(), array(state(case))
    A = normalized(case.adjacency, "row") if convection == "mean" else case.adjacency
    M = array(layer.velocity.weight)
    for _ in range(2):
        flow = on_edges(layer, case, z, self_loops=True) @ z - z
        for u, v in np.argwhere(A > 0):
            flow[u] += A[u, v] * np.tanh(M @ (z[v] - z[u])) * z[v]
        z = z + 0.3 * flow
    assert relative_error(run(layer, case), z) <= 1e-12


def test_gradient_of_the_convection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential, "CHUNK", 7)
    case = BY_NAME["directed_weighted"]
    Y, Z = (torch.randn(case.num_nodes, 3, dtype=torch.float64, requires_grad=True) for _ in range(2))
    assert torch.autograd.gradcheck(
        lambda y, z: differential._Convection.apply(y, z, case.edge_index, case.edge_weight), (Y, Z)
    )


# -- Transformers -------------------------------------------------------------------------------------------------


@heads_1_and_3
@each(CASES)
def test_self_attention_stays_within_graphs(case: GraphCase, heads: int) -> None:
    """softmax(QKᵀ/√d_h)V entry by entry, before the output, norms and feed-forward part."""
    block, z = SelfAttention(WIDTH, heads, 0.0).double(), state(case)
    block.output, block.forward_part, block.norms = (
        nn.Identity(),
        nn.Linear(WIDTH, WIDTH),
        nn.ModuleList([nn.Identity()] * 2),
    )
    block.forward_part = block.forward_part.double()
    query, key, value = np.split(array(block.project(z)), 3, axis=1)
    graph, size = case.batch or [0] * case.num_nodes, WIDTH // heads
    expected = array(z).copy()
    for h in range(heads):
        part = slice(h * size, (h + 1) * size)
        for u in range(case.num_nodes):
            near = [v for v in range(case.num_nodes) if graph[v] == graph[u]]
            score = np.exp([query[u, part] @ key[v, part] / np.sqrt(size) for v in near])
            expected[u, part] += score / score.sum() @ value[near, part]
    out = block(z, graphtrans.Padding(case.num_nodes, case.batch_vector))
    expected = torch.tensor(expected)
    torch.testing.assert_close(out, expected + block.forward_part(expected))


def test_transformer_is_that_of_torch() -> None:
    case, ours = BY_NAME["undirected"], Transformer(WIDTH, heads=2).double()
    block, theirs = ours.blocks[0], nn.TransformerEncoderLayer(WIDTH, 2, 4 * WIDTH, 0.0, batch_first=True).double()
    pairs = [
        (theirs.linear1, block.forward_part[0]),
        (theirs.linear2, block.forward_part[3]),
        (theirs.norm1, block.norms[0]),
        (theirs.norm2, block.norms[1]),
        (theirs.self_attn.out_proj, block.output[0]),
    ]
    for to, source in pairs:
        to.load_state_dict(source.state_dict())
    theirs.self_attn.in_proj_weight = block.project.weight
    theirs.self_attn.in_proj_bias = block.project.bias
    torch.testing.assert_close(run(ours, case), theirs(ours.start(state(case))[None])[0])


def test_graphtrans_refuses_what_would_take_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphtrans, "MAX_NODES", 5)
    model = build("graphtrans", WIDTH, 8, 2).double()
    assert run_model(model, BY_NAME["batch_with_one_node_graph"]).size(0) == 9
    with pytest.raises(ValueError, match="graphtrans attends between all pairs of nodes, and a graph has 8; beyond 5"):
        run_model(model, BY_NAME["undirected"])


@pytest.mark.parametrize("training", [False, True])
@heads_1_and_3
def test_graphgps_is_that_of_pyg_on_one_graph(heads: int, training: bool) -> None:
    case, ours = BY_NAME["undirected"], GraphGPS(WIDTH, heads).train(training)
    options = {"head_channels": WIDTH // heads}
    theirs = GPSConv(WIDTH, GCNConv(WIDTH, WIDTH), heads, attn_type="performer", attn_kwargs=options).train(training)
    torch.testing.assert_close(run(ours, case), twin(theirs, ours)(state(case), case.edge_index))


@heads_1_and_3
@pytest.mark.parametrize("use_graph", [True, False])
@each(CASES)
def test_difformer(case: GraphCase, heads: int, use_graph: bool) -> None:
    layer, z = Difformer(WIDTH, heads, tau=0.3, use_graph=use_graph).double(), array(state(case))
    A, spread = normalized(case.adjacency, "symmetric"), 0.0
    for h, C in enumerate(everywhere(layer, case, z)):
        P = 0.5 * (C + A) if use_graph else C
        spread += P @ z @ array(layer.value.weight)[h * WIDTH : (h + 1) * WIDTH].T / heads
    assert relative_error(run(layer, case), 0.7 * z + 0.3 * spread) <= 1e-12
