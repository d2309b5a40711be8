"""``AdvDIFFormer``: the paper's model by hand, what a module must do, and that it learns."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
from collections import Counter

import pytest
import torch
from torch import Tensor

from advdiff.nn import AdvDIFFormer
from tests.cases import BY_NAME, GraphCase, each, some
from tests.nn.dense import EXACT, LARGE, dense_model, every_solver, every_task, features
from tests.reference import relative_error

WIDTH, HIDDEN, OUT = 4, 6, 2
PAIRS = [(0, 3), (2, 2), (3, 0), (1, 5)]
GRAPH = BY_NAME["undirected"]


def make_model(solver: str = "series", task: str = "node", **options: object) -> AdvDIFFormer:
    torch.manual_seed(0)
    model = AdvDIFFormer(WIDTH, HIDDEN, OUT, solver=solver, task=task, **options).double()
    for layer in model.layers:
        layer.tol = EXACT
    return model


def inputs(model: AdvDIFFormer, case: GraphCase = GRAPH) -> dict[str, Tensor | None]:
    pairs = torch.tensor(PAIRS).T if model.task == "edge" else None
    return {**features(case, WIDTH, model.layers[0].edge_dim), "edge_label_index": pairs}


def converted(data: dict[str, Tensor | None], to: torch.dtype | str) -> dict[str, Tensor | None]:
    """Floating-point tensors in another precision, or all tensors on another device."""
    move = {name: t is not None and (isinstance(to, str) or t.is_floating_point()) for name, t in data.items()}
    return {name: t.to(to) if move[name] else t for name, t in data.items()}


# -- the model --------------------------------------------------------------------------------------------------


@every_solver
@every_task
@some("undirected", "directed_weighted", "batch_unsorted", "batch_with_empty_graph")
@pytest.mark.parametrize(
    "extras",
    [
        {},
        {"num_layers": 2, "residual": True, "dropout": 0.5},
        {"num_layers": 3, "batch_norm": True, "normalization": "row", "residual": True},
    ],
    ids=["paper", "residual", "all_extras"],
)
def test_model_is_encoder_propagation_decoder(case: GraphCase, task: str, solver: str, extras: dict) -> None:
    model = make_model(solver, task, heads=2, edge_dim=2, **extras)
    data = inputs(model, case)
    model(**data)  # in training mode, so that the batch norm has seen data
    out = model.eval()(**data)
    expected = dense_model(model, case, data["x"], data["edge_attr"], PAIRS)
    rows = {"node": case.num_nodes, "edge": len(PAIRS), "graph": max(case.batch or [0]) + 1}
    assert out.shape == (rows[task], OUT)
    assert relative_error(out, expected) <= 1e-9


def test_signature_is_that_of_the_design() -> None:
    """What the paper does not mention is off; what the design does not mention can be given by its name only."""
    everything = inspect.signature(AdvDIFFormer).parameters.values()
    parameters = [p for p in everything if p.kind is not inspect.Parameter.KEYWORD_ONLY]
    assert [p.name for p in parameters][:3] == ["in_channels", "hidden_channels", "out_channels"]
    assert {p.name: p.default for p in parameters[3:]} == {
        **{"solver": "series", "heads": 1, "beta": 0.5, "theta": 1.0, "order": 2, "time": 1.0, "num_layers": 1},
        **{"dropout": 0.0, "batch_norm": False, "residual": False, "normalization": "symmetric"},
        **{"edge_dim": None, "task": "node"},
    }


@pytest.mark.parametrize(("num_layers", "batch_norm", "dropout"), [(1, False, 0.0), (3, True, 0.4)])
def test_extras_are_there_when_asked_for(num_layers: int, batch_norm: bool, dropout: float) -> None:
    model = make_model(num_layers=num_layers, batch_norm=batch_norm, dropout=dropout)
    count = Counter(type(module).__name__ for module in model.modules())
    assert (count["AdvDiffConv"], count["BatchNorm1d"]) == (num_layers, num_layers if batch_norm else 0)
    # In the encoder, between layers and in the decoder.
    assert [m.p for m in model.modules() if isinstance(m, torch.nn.Dropout)] == [dropout] * 3


@every_solver
@every_task
@some("undirected", "batch_unsorted")
def test_gradients_reach_every_parameter(case: GraphCase, task: str, solver: str) -> None:
    model = make_model(solver, task, heads=2, num_layers=2, residual=True, edge_dim=2)
    data = inputs(model, case)
    data["x"].requires_grad_()
    model(**data).square().sum().backward()
    for name, tensor in [("x", data["x"]), *model.named_parameters()]:
        assert tensor.grad is not None and tensor.grad.isfinite().all(), name
        assert tensor.grad.abs().max() > 1e-8, name


@every_solver
@every_task
@pytest.mark.parametrize("batched", [False, True], ids=["", "batch"])
def test_empty_graph_and_single_node(task: str, solver: str, batched: bool) -> None:
    model = make_model(solver, task, heads=2)
    for nodes in (0, 1):
        batch = torch.zeros(nodes, dtype=torch.int64) if batched else None
        none = torch.zeros(2, 0, dtype=torch.int64)
        x = torch.ones(nodes, WIDTH, dtype=torch.float64)
        out = model(x, none, batch=batch, edge_label_index=none)
        assert out.shape == ({"node": nodes, "edge": 0, "graph": 1}[task], OUT)
        assert out.isfinite().all()


# -- what a module must do --------------------------------------------------------------------------------------


@every_solver
@every_task
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_dtype_is_kept(task: str, solver: str, dtype: torch.dtype) -> None:
    model = make_model(solver, task, heads=2, edge_dim=2)
    data = inputs(model)
    expected = model(**data)
    out = model.to(dtype)(**converted(data, dtype))
    assert out.dtype == dtype
    torch.testing.assert_close(out.double(), expected, rtol=1e-4, atol=1e-5)


@every_solver
def test_copies_compute_the_same(solver: str) -> None:
    model = make_model(solver, heads=2, num_layers=2, batch_norm=True, edge_dim=2)
    data = inputs(model)
    model(**data)
    expected = model.eval()(**data)
    torch.save(model.state_dict(), saved := io.BytesIO())
    saved.seek(0)
    loaded = AdvDIFFormer(WIDTH, HIDDEN, OUT, solver, heads=2, num_layers=2, batch_norm=True, edge_dim=2).double()
    loaded.load_state_dict(torch.load(saved, weights_only=True))
    for layer in loaded.layers:
        layer.tol = EXACT
    for other in (loaded.eval(), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(**data), expected)
        assert str(other) == str(model)


def test_reset_and_seed() -> None:
    model, twin = make_model(heads=2, edge_dim=2), make_model(heads=2, edge_dim=2)
    before = copy.deepcopy(dict(model.named_parameters()))
    for seeded in (model, twin):
        for name, value in seeded.named_parameters():
            assert torch.equal(value, before[name]), name
        torch.manual_seed(1)
        seeded.reset_parameters()
        for name, value in seeded.named_parameters():
            assert not torch.allclose(value, before[name]) and value.std() > 0, name
    assert torch.equal(model(**inputs(model)), twin(**inputs(twin)))


@every_solver
def test_dropout_acts_in_training_only(solver: str) -> None:
    plain, dropping = (make_model(solver, num_layers=2, dropout=rate) for rate in (0.0, 0.5))
    data = inputs(plain)
    expected = plain(**data)
    assert torch.equal(plain.eval()(**data), expected)
    assert not torch.equal(dropping(**data), dropping(**data))
    assert torch.equal(dropping.eval()(**data), expected)


CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@every_solver
@every_task
@each([GRAPH, LARGE, BY_NAME["batch_with_one_node_graph"]])
@pytest.mark.parametrize("device", ["meta", pytest.param("cuda", marks=[pytest.mark.cuda, CUDA])])
def test_device_is_kept(case: GraphCase, task: str, solver: str, device: str) -> None:
    model = make_model(solver, task, heads=2, edge_dim=2)
    data = inputs(model, case)
    expected = model(**data)
    out = model.to(device)(**converted(data, device))
    assert out.device.type == device
    out.sum().backward()
    assert {p.grad.device.type for p in model.parameters()} == {device}
    if device == "cuda":
        torch.testing.assert_close(out.cpu(), expected)
    elif task != "graph":  # the number of graphs is a value, which ``meta`` does not have
        assert out.shape == expected.shape


# -- learning ---------------------------------------------------------------------------------------------------


@every_solver
@each([GRAPH, LARGE])
def test_training_learns_a_function_of_the_graph(case: GraphCase, solver: str) -> None:
    """y = V²x summed over the features, which no function of a node's own features is."""
    torch.manual_seed(0)
    model, x = AdvDIFFormer(WIDTH, 8, 1, solver=solver, heads=2), features(case, WIDTH)["x"].float()
    edge_index, V = case.edge_index, case.velocity(dtype=torch.float32)
    y = (V @ (V @ x)).sum(1, keepdim=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(200):
        optimizer.zero_grad()
        loss = (model(x, edge_index) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] <= losses[0] / 5, losses[::40]
