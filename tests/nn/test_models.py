"""Every model of the registry: shapes, symmetry, batches, gradients, edge weights, awkward graphs and bad input."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest
import torch
from torch import Tensor

import advdiff.nn
from advdiff import viz
from advdiff.nn import GraphModel, build, model_names, model_settings
from advdiff.nn.registry import MODELS
from tests.cases import BATCHED, BY_NAME, CASES, GraphCase, each, some
from tests.nn.dense import every_task, features, rings

NAMES = (
    *("advdifformer-s", "advdifformer-i", "advdifformer-e"),
    *("diff-linear", "diff-multilayer", "diff-time", "diff-nonlocal"),
    *("mlp", "gcn", "gat", "sgc", "gdc", "grand", "a-dgn", "cde", "graphtrans", "graphgps", "difformer"),
    *("sgformer", "polynormer"),
)
#: Their layers are not alike, or share their weights: one module of the stack holds all of them.
WHOLE = ("a-dgn", "graphtrans", "graphgps", "sgformer", "polynormer")
#: They do not look at the graph.
BLIND = ("mlp", "diff-nonlocal")
WIDTH, HIDDEN, OUT = 3, 8, 2
PAIRS = torch.tensor([[0, 3, 2], [3, 0, 2]])
GRAPH = BY_NAME["undirected"]

every_name = pytest.mark.parametrize("name", NAMES)
every_seeing_name = pytest.mark.parametrize("name", [name for name in NAMES if name not in BLIND])


def make(name: str, task: str = "node", **settings: object) -> GraphModel:
    """A model in float64 and evaluation mode (batch norm), with tolerances that leave only rounding."""
    torch.manual_seed(0)
    if "heads" in model_settings(name):
        settings = {"heads": 2, **settings}
    model = build(name, WIDTH, HIDDEN, OUT, task=task, **settings).double().eval()
    for layer in model.layers:
        if hasattr(layer, "tol"):
            layer.tol = 1e-13
        if name == "cde":  # which starts without convection, so that the velocity would have no gradient
            torch.nn.init.constant_(layer.strength, 0.1)
    return model


def inputs(case: GraphCase, task: str = "node", edge_dim: int | None = None) -> dict[str, Tensor | None]:
    pairs = PAIRS.clamp(max=case.num_nodes - 1) if task == "edge" else None
    return {**features(case, WIDTH, edge_dim), "edge_label_index": pairs}


def rows(case: GraphCase, task: str) -> int:
    return {"node": case.num_nodes, "edge": PAIRS.size(1), "graph": max(case.batch or [0]) + 1}[task]


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-10)


# -- the registry -------------------------------------------------------------------------------------------------


def test_names() -> None:
    assert model_names() == NAMES
    assert {name: spec.title for name, spec in MODELS.items()} == viz.NAMES


@pytest.mark.parametrize("name", [n for n in NAMES if not n.startswith(("advdifformer", "diff-"))])
def test_no_baseline_takes_a_setting_of_advdifformer_for_its_own(name: str) -> None:
    """A recipe's common settings reach every model that has them; β, θ, K and T are AdvDIFFormer's."""
    assert not {"beta", "theta", "order", "time"} & set(model_settings(name))


@every_name
def test_settings_are_those_that_build_accepts(name: str) -> None:
    settings = model_settings(name)
    assert {"num_layers", "dropout", "batch_norm", "residual"} <= set(settings)
    build(name, WIDTH, HIDDEN, OUT, **settings)
    settings["num_layers"] = 99
    assert model_settings(name)["num_layers"] != 99


@every_name
def test_models_are_called_alike(name: str) -> None:
    parameters = list(inspect.signature(make(name).forward).parameters)
    assert parameters == ["x", "edge_index", "edge_weight", "edge_attr", "batch", "edge_label_index", "batch_size"]


def test_unknown_name_and_setting() -> None:
    with pytest.raises(ValueError, match=r"unknown model 'gin'; choose one of: advdifformer-s, .*, polynormer\."):
        build("gin", WIDTH, HIDDEN, OUT)
    with pytest.raises(ValueError, match="unknown model 'gin'"):
        model_settings("gin")
    with pytest.raises(
        ValueError, match=r"sgc has no setting 'beta', 'heads'; its settings are: num_layers, .*hops, linear\."
    ):
        build("sgc", WIDTH, HIDDEN, OUT, heads=2, beta=0.5)
    with pytest.raises(ValueError, match=r"advdifformer-s has no setting 'theta'; its settings are: .*order"):
        build("advdifformer-s", WIDTH, HIDDEN, OUT, theta=1.0)
    with pytest.raises(ValueError, match="advdifformer-i has no setting 'solver'"):
        build("advdifformer-i", WIDTH, HIDDEN, OUT, solver="series")


BAD_SETTINGS = [
    ("gcn", {"num_layers": 0}, "num_layers is 0; it must be at least 1"),
    ("gcn", {"dropout": 1.5}, "dropout probability has to be between 0 and 1, but got 1.5"),
    ("gcn", {"task": "link"}, "unknown task 'link'; choose one of: node, edge, graph"),
    ("gat", {"heads": 3}, "hidden_channels=8 must be a multiple of heads=3"),
    ("graphtrans", {"heads": 3}, "hidden_channels=8 must be a multiple of heads=3"),
    ("graphtrans", {"attention_layers": 0}, "attention_layers is 0"),
    ("graphgps", {"heads": 8}, "hidden_channels=8 must be at least twice heads=8"),
    ("difformer", {"heads": 0}, "heads is 0; it must be at least 1"),
    ("difformer", {"tau": 0.0}, r"tau is 0; it must lie in \(0, 1\]"),
    ("difformer", {"normalization": "column"}, "unknown kind of normalisation 'column'"),
    ("diff-linear", {"time": -1.0}, "time is -1; it must be"),
    ("diff-time", {"steps": 0}, "steps is 0; it must be at least 1"),
    ("grand", {"method": "rk5"}, "unknown method 'rk5'; choose one of: series, euler, rk4, dopri5"),
    ("grand", {"heads": 3}, "hidden_channels=8 must be a multiple of heads=3"),
    ("grand", {"integration_time": -1.0}, "integration_time is -1; it must be"),
    ("cde", {"convection": "max"}, "unknown convection 'max'; choose one of: sum, mean"),
    ("cde", {"velocity": "sine"}, "unknown velocity 'sine'; choose one of: tanh, relu"),
    ("sgc", {"hops": 0}, "hops is 0"),
    ("gdc", {"t": float("nan")}, "t is nan"),
    ("gdc", {"kernel": "wave"}, "unknown kernel 'wave'; choose one of: heat, ppr"),
    ("gdc", {"teleport": 1.0}, "teleport is 1; it must lie strictly between 0 and 1"),
    ("gdc", {"neighbours": 0}, "neighbours is 0"),
    ("gdc", {"prune": -1.0}, "prune is -1"),
    ("a-dgn", {"num_layers": 0}, "num_layers is 0"),
    ("a-dgn", {"epsilon": 0.0}, "epsilon is 0; it must be positive"),
    ("graphgps", {"walk_length": -1}, "walk_length is -1"),
    ("graphgps", {"attention": "linear"}, "unknown attention 'linear'; choose one of: performer, softmax"),
    ("graphgps", {"local": "gat"}, "unknown local 'gat'; choose one of: auto, gcn, gine"),
    ("sgformer", {"graph_weight": 1.5}, r"graph_weight is 1.5; it must lie in \[0, 1\]"),
    ("sgformer", {"attention_layers": 0}, "attention_layers is 0"),
    ("polynormer", {"attention_layers": 0}, "attention_layers is 0"),
    ("polynormer", {"heads": 3}, "hidden_channels=8 must be a multiple of heads=3"),
    ("polynormer", {"local": "gine"}, "unknown local 'gine'; choose one of: gat, gcn"),
]


@pytest.mark.parametrize(("name", "settings", "message"), BAD_SETTINGS, ids=str)
def test_bad_settings(name: str, settings: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(name, WIDTH, HIDDEN, OUT, **settings)


@every_name
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.ones(8, 2)}, r"x has shape \(8, 2\); the model expects \[N, 3\]"),
        ({"x": torch.full((8, 3), float("nan"))}, "x holds 24 NaN"),
        ({"edge_index": GRAPH.edge_index + 1}, "edge_index names nodes 1 to 8"),
        ({"edge_weight": torch.ones(3)}, r"edge_weight has shape \(3,\)"),
        ({"edge_weight": -torch.ones(24)}, "edge_weight holds negative entries"),
        ({"edge_attr": torch.ones(24, 2)}, "edge_attr was given but edge_dim is None"),
        ({"batch": torch.zeros(7, dtype=torch.int64)}, r"batch has shape \(7,\)"),
        ({"batch": torch.arange(8)}, "24 edges join nodes of different graphs"),
    ],
    ids=["width", "nan", "edges", "weights", "negative", "edge_attr", "batch", "crossing"],
)
def test_bad_input(name: str, changes: dict, message: str) -> None:
    model = build(name, WIDTH, HIDDEN, OUT)
    with pytest.raises(ValueError, match=message):
        model(**{"x": torch.ones(8, 3), "edge_index": GRAPH.edge_index, **changes})


@every_name
def test_edges_to_predict_must_be_given(name: str) -> None:
    with pytest.raises(ValueError, match="task='edge' needs edge_label_index"):
        make(name, "edge")(**inputs(GRAPH))


# -- graphs -------------------------------------------------------------------------------------------------------


@every_name
@every_task
def test_shape_on_every_graph(task: str, name: str) -> None:
    model = make(name, task)
    for case in CASES:
        out = model(**inputs(case, task))
        assert out.shape == (rows(case, task), OUT) and out.dtype == torch.float64, case.name
        assert out.isfinite().all(), case.name


@every_name
@every_task
@pytest.mark.parametrize("batched", [False, True], ids=["", "batch"])
def test_graph_without_nodes(task: str, name: str, batched: bool) -> None:
    none = torch.zeros(2, 0, dtype=torch.int64)
    batch = torch.zeros(0, dtype=torch.int64) if batched else None
    out = make(name, task)(torch.zeros(0, WIDTH).double(), none, batch=batch, edge_label_index=none)
    assert out.shape == ({"node": 0, "edge": 0, "graph": 1}[task], OUT) and out.isfinite().all()


@every_name
@every_task
@some("directed_weighted", "isolated", "batch_unsorted")
def test_renumbering_the_nodes(case: GraphCase, task: str, name: str) -> None:
    """Nodes and edges in another order: the same answer, for nodes in that order."""
    model, data = make(name, task, num_layers=2, edge_dim=2), inputs(case, task, edge_dim=2)
    order, edge_order = torch.randperm(case.num_nodes), torch.randperm(len(case.edges))
    number = torch.argsort(order)
    moved = {
        "x": data["x"][order],
        "edge_index": number[data["edge_index"]][:, edge_order],
        "edge_weight": None if case.weight is None else data["edge_weight"][edge_order],
        "edge_attr": data["edge_attr"][edge_order],
        "batch": None if case.batch is None else data["batch"][order],
        "edge_label_index": number[PAIRS] if task == "edge" else None,
    }
    expected = model(**data)
    close(model(**moved), expected[order] if task == "node" else expected)


def parts(case: GraphCase) -> list[tuple[list[int], list[int]]]:
    """Nodes and edges of each graph of a batch that has any."""
    return [
        (
            [u for u in range(case.num_nodes) if case.batch[u] == graph],
            [e for e, (source, _) in enumerate(case.edges) if case.batch[source] == graph],
        )
        for graph in sorted(set(case.batch))
    ]


@every_name
@each(BATCHED)
def test_batch_equals_one_by_one(case: GraphCase, name: str) -> None:
    nodes_model, graphs_model = (make(name, task, num_layers=2, edge_dim=2) for task in ("node", "graph"))
    data = inputs(case, edge_dim=2)
    of_nodes, of_graphs = nodes_model(**data), graphs_model(**data)
    for nodes, edges in parts(case):
        number = {u: position for position, u in enumerate(nodes)}
        ends = [[number[case.edges[e][end]] for e in edges] for end in (0, 1)]
        alone = {
            "x": data["x"][nodes],
            "edge_index": torch.tensor(ends, dtype=torch.int64),
            "edge_weight": None if case.weight is None else data["edge_weight"][edges],
            "edge_attr": data["edge_attr"][edges],
        }
        close(nodes_model(**alone), of_nodes[nodes])
        close(graphs_model(**alone)[0], of_graphs[case.batch[nodes[0]]])


@every_seeing_name
def test_edge_weights_count_like_parallel_edges(name: str) -> None:
    model, case = make(name), BY_NAME["directed"]
    x, edge_index = inputs(case)["x"], case.edge_index
    weight = torch.ones(edge_index.size(1), dtype=torch.float64)
    plain = model(x, edge_index)
    close(model(x, edge_index, weight), plain)
    weight[2], weight[5] = 2.0, 3.0
    weighted = model(x, edge_index, weight)
    assert (weighted - plain).abs().max() > 1e-6
    close(model(x, torch.cat([edge_index, edge_index[:, [2, 5, 5]]], 1)), weighted)


@every_seeing_name
def test_an_edge_of_weight_zero_is_none(name: str) -> None:
    model, case = make(name), BY_NAME["directed_weighted"]
    x, edge_index, weight = inputs(case)["x"], case.edge_index, case.edge_weight
    weight[::4] = 0.0
    close(model(x, edge_index, weight), model(x, edge_index[:, weight > 0], weight[weight > 0]))


@every_seeing_name
@every_task
def test_edge_features_are_seen(name: str, task: str) -> None:
    model, data = make(name, task, edge_dim=2), inputs(GRAPH, task, edge_dim=2)
    changed = {**data, "edge_attr": data["edge_attr"] + 1.0}
    assert (model(**data) - model(**changed)).abs().max() > 1e-6


@pytest.mark.parametrize("name", [*BLIND, "difformer"])
def test_blind_models_do_not_see_the_graph(name: str) -> None:
    model = make(name, edge_dim=2, **({"use_graph": False} if name == "difformer" else {}))
    data = inputs(GRAPH, edge_dim=2)
    if name == "difformer":  # edge features enter before the layers
        model, data = make(name, use_graph=False), inputs(GRAPH)
    others = {
        "edge_index": GRAPH.edge_index[:, 3:],
        "edge_weight": torch.rand(21),
        "edge_attr": None if data["edge_attr"] is None else torch.rand(21, 2),
    }
    assert torch.equal(model(**data), model(**{**data, **others}))


# -- what a module must do ----------------------------------------------------------------------------------------


@every_name
@every_task
@each([GRAPH, rings(3)])
def test_gradients_reach_every_parameter(case: GraphCase, task: str, name: str) -> None:
    model, data = make(name, task, num_layers=2, edge_dim=2), inputs(case, task, edge_dim=2)
    data["x"].requires_grad_()
    model(**data).square().sum().backward()
    for label, tensor in [("x", data["x"]), *model.named_parameters()]:
        assert tensor.grad is not None and tensor.grad.isfinite().all(), label
        assert tensor.grad.abs().max() > 1e-10, label


@every_name
@some("undirected", "batch_unsorted")
def test_gradient_agrees_with_differences(case: GraphCase, name: str) -> None:
    model, data = make(name), inputs(case)
    x, direction = data.pop("x"), torch.randn(case.num_nodes, WIDTH).double()
    x.requires_grad_()

    def loss(at: Tensor) -> Tensor:
        return model(at, **data).square().sum()

    (gradient,) = torch.autograd.grad(loss(x), x)
    step = 1e-6
    with torch.no_grad():
        slope = (loss(x + step * direction) - loss(x - step * direction)) / (2 * step)
    torch.testing.assert_close((gradient * direction).sum(), slope, rtol=1e-5, atol=1e-7)


@every_name
@every_task
def test_single_precision(name: str, task: str) -> None:
    model, data = make(name, task, edge_dim=2), inputs(BY_NAME["weighted"], task, edge_dim=2)
    expected = model(**data)
    single = {key: t.float() if t is not None and t.is_floating_point() else t for key, t in data.items()}
    out = model.float()(**single)
    assert out.dtype == torch.float32
    torch.testing.assert_close(out.double(), expected, rtol=1e-3, atol=1e-4)


@every_name
@every_task
@some("undirected", "batch_with_one_node_graph")
def test_meta_device(case: GraphCase, task: str, name: str) -> None:
    model, data = make(name, task, edge_dim=2).to("meta"), inputs(case, task, edge_dim=2)
    out = model(**{key: None if t is None else t.to("meta") for key, t in data.items()})
    assert out.device.type == "meta"
    if task != "graph":  # the number of graphs is a value, which ``meta`` does not have
        assert out.shape == (rows(case, task), OUT)
    out.sum().backward()
    assert {p.grad.device.type for p in model.parameters()} == {"meta"}


@every_name
def test_copies_compute_the_same(name: str) -> None:
    model, data = make(name, num_layers=2), inputs(GRAPH)
    expected = model(**data)
    loaded = make(name, num_layers=2)
    loaded.reset_parameters()
    loaded.load_state_dict(model.state_dict())
    for other in (loaded, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(**data), expected)
        assert str(other) == str(model)


@every_name
def test_seeds(name: str) -> None:
    model, twin, data = make(name), make(name), inputs(GRAPH)
    first = model(**data)
    assert torch.equal(twin(**data), first)
    for seeded in (model, twin):
        torch.manual_seed(1)
        seeded.reset_parameters()
    assert torch.equal(model(**data), twin(**data))
    assert not torch.allclose(model(**data), first)


@every_name
def test_dropout_acts_in_training_only(name: str) -> None:
    plain, dropping = (make(name, num_layers=2, dropout=rate) for rate in (0.0, 0.5))
    data = inputs(GRAPH)
    assert torch.equal(dropping(**data), plain(**data))
    dropping.train()
    assert not torch.equal(dropping(**data), dropping(**data))


@every_name
@pytest.mark.parametrize("extras", [{"batch_norm": True}, {"residual": True}, {"num_layers": 3}], ids=str)
def test_extras_of_the_stack(name: str, extras: dict) -> None:
    model, data = make(name, **extras).train(), inputs(GRAPH)
    depth = extras.get("num_layers", model_settings(name)["num_layers"])
    assert len(model.layers) == (1 if name in WHOLE else depth)
    inside = model.layers[0] if name == "graphtrans" else model  # it takes them between its convolutions
    norms = [norm for norm in inside.norms if isinstance(norm, torch.nn.BatchNorm1d)]
    assert len(norms) == (len(inside.norms) if "batch_norm" in extras else 0)
    assert inside.residual == ("residual" in extras)
    assert model(**data).isfinite().all()


@every_name
def test_inference_then_training_on_the_same_graph(name: str) -> None:
    """What inference mode remembered of a graph serves autograd too."""
    model, data = make(name), inputs(BY_NAME["weighted"])
    with torch.inference_mode():
        expected = model(**data).clone()
    out = model(**data)
    out.sum().backward()
    assert torch.equal(out, expected)


@every_name
def test_every_model_learns(name: str) -> None:
    """A function of the nodes' features, on one graph and on a batch of small ones."""
    settings = {"t": 0.5} if name == "gdc" else {}  # its default leaves little of eight nodes' differences
    for case in (GRAPH, BY_NAME["batch_with_one_node_graph"]):
        model, data = make(name, **settings), inputs(case)
        y = data["x"][:, :OUT]
        model.train()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        losses = []
        for _ in range(40):
            optimizer.zero_grad()
            loss = (model(**data) - y).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert losses[-1] < 0.8 * losses[0], (case.name, losses[::20])


def test_public_names() -> None:
    assert set(advdiff.nn.__all__) == {
        *("AdvDIFFormer", "AdvDiffConv", "GraphModel", "attention_maps"),
        *("build", "model_names", "model_settings"),
    }
