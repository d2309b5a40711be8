"""``AdvDiffConv`` against the dense formulas of the paper's Appendix D, head by head."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import functional_call
from torch.utils._python_dispatch import TorchDispatchMode

from advdiff import Velocity
from advdiff.nn import AdvDiffConv
from tests.cases import BATCHED, KINDS, GraphCase, each, some
from tests.nn.dense import LARGE, SOLVERS, array, dense_layer, every_solver, features, layer_error, make_layer, rings
from tests.reference import relative_error

WIDTH = 3
LARGE_DIRECTED = GraphCase("large_directed", LARGE.num_nodes, LARGE.edges[: len(LARGE.edges) * 2 // 3])


# -- the formulas -----------------------------------------------------------------------------------------------


@every_solver
@pytest.mark.parametrize("edge_dim", [None, 2], ids=["", "edge_features"])
@pytest.mark.parametrize("num_heads", [1, 2, 3])
def test_forward_is_the_formula(case: GraphCase, kind: str, num_heads: int, edge_dim: int | None, solver: str) -> None:
    assert layer_error(make_layer(solver, heads=num_heads, normalization=kind, edge_dim=edge_dim), case) <= 1e-9


@some("undirected", "directed_weighted", "isolated", "batch_unsorted")
@pytest.mark.parametrize(
    ("solver", "options"),
    [
        *((solver, {"beta": beta}) for solver in SOLVERS for beta in (0.0, 1.0)),
        *((solver, {"in_channels": 1, "out_channels": 5}) for solver in SOLVERS),
        *(("series", {"order": order, "edge_dim": 1}) for order in (0, 1, 6)),
        *(("inverse", {"theta": theta}) for theta in (0.8, 3.0)),
        *(("exponential", {"time": time, "edge_dim": 1}) for time in (0.0, 0.3, 4.0)),
    ],
    ids=str,
)
def test_options_are_those_of_the_formula(case: GraphCase, solver: str, options: dict) -> None:
    assert layer_error(make_layer(solver, heads=2, **{"theta": 1.5, **options}), case) <= 1e-9


@every_solver
@each([LARGE, LARGE_DIRECTED])
@pytest.mark.parametrize("kind", KINDS)
def test_forward_is_the_formula_beyond_the_dense_sizes(case: GraphCase, kind: str, solver: str) -> None:
    assert layer_error(make_layer(solver, heads=2, normalization=kind, edge_dim=2), case) <= 1e-9


@every_solver
@some("weighted", "batch_unsorted")
def test_float32_and_the_default_tolerance(case: GraphCase, solver: str) -> None:
    layer = make_layer(solver, heads=2, tol=1e-6)
    data = features(case, WIDTH)
    expected = dense_layer(layer, case, array(data["x"]))
    assert relative_error(layer(**data), expected) <= 2e-6
    out = layer.float()(**{**data, "x": data["x"].float()})
    assert out.dtype == torch.float32
    assert relative_error(out, expected) <= 1e-5


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "AdvDiffConv(3, 4, solver='series', heads=1, beta=0.5, order=2)"),
        ({"solver": "inverse", "theta": 0.75}, "AdvDiffConv(3, 4, solver='inverse', heads=1, beta=0.5, theta=0.75)"),
        ({"solver": "exponential", "heads": 2}, "AdvDiffConv(3, 4, solver='exponential', heads=2, beta=0.5, time=1)"),
    ],
)
def test_repr(options: dict, expected: str) -> None:
    assert str(AdvDiffConv(3, 4, **options)) == expected


# -- symmetries -------------------------------------------------------------------------------------------------


@st.composite
def graphs(draw: st.DrawFn) -> GraphCase:
    """Weighted directed graphs in a batch, in any order of the nodes; no edge joins two of them."""
    batch = draw(st.lists(st.integers(0, 2), min_size=1, max_size=8))
    node = st.integers(0, len(batch) - 1)
    drawn = draw(st.lists(st.tuples(node, node, st.floats(0.0, 4.0)), max_size=16))
    edges = [(s, t, w) for s, t, w in drawn if batch[s] == batch[t] and (w == 0.0 or w > 1e-3)]
    return GraphCase("drawn", len(batch), [(s, t) for s, t, _ in edges], [w for *_, w in edges], batch)


@every_solver
@given(case=graphs(), seed=st.integers(0, 99))
def test_renumbering_the_nodes_renumbers_the_output(solver: str, case: GraphCase, seed: int) -> None:
    layer = make_layer(solver, heads=2, edge_dim=1)
    assert layer_error(layer, case) <= 1e-9
    order = torch.randperm(case.num_nodes, generator=torch.Generator().manual_seed(seed))
    data = features(case, WIDTH, 1)
    renumbered = {**data, "x": data["x"][order], "edge_index": order.argsort()[data["edge_index"]]}
    renumbered["batch"] = data["batch"][order]
    torch.testing.assert_close(layer(**renumbered), layer(**data)[order], rtol=1e-10, atol=1e-10)


@every_solver
@each(BATCHED)
def test_a_batch_is_its_graphs_one_by_one(case: GraphCase, solver: str) -> None:
    layer, data = make_layer(solver, heads=2, edge_dim=2), features(case, WIDTH, 2)
    together, batch = layer(**data), data["batch"]
    for number in set(case.batch):
        node, edge = batch == number, batch[data["edge_index"][0]] == number
        edge_index = (node.cumsum(0) - 1)[data["edge_index"][:, edge]]
        weight = None if data["edge_weight"] is None else data["edge_weight"][edge]
        alone = layer(data["x"][node], edge_index, weight, data["edge_attr"][edge])
        torch.testing.assert_close(together[node], alone, rtol=1e-10, atol=1e-10)


# -- gradients --------------------------------------------------------------------------------------------------


@every_solver
@some("path", "batch_with_one_node_graph", "batch_unsorted", "isolated")
def test_gradcheck(case: GraphCase, solver: str) -> None:
    """In x, the edge features and every parameter."""
    layer = make_layer(solver, 2, 1, heads=2, edge_dim=1)
    data = features(case, 2, 1)
    names = [name for name, _ in layer.named_parameters()]
    constant = {name: data[name] for name in ("edge_index", "edge_weight", "batch")}

    def forward(x: torch.Tensor, edge_attr: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
        inputs = {**constant, "x": x, "edge_attr": edge_attr}
        return functional_call(layer, dict(zip(names, parameters, strict=True)), (), inputs)

    inputs = [data["x"], data["edge_attr"], *(p.detach() for p in layer.parameters())]
    assert torch.autograd.gradcheck(forward, [t.clone().requires_grad_() for t in inputs])


# -- work -------------------------------------------------------------------------------------------------------


class Counting(TorchDispatchMode):
    """Counts the operations that reach torch's kernels."""

    operations = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.operations += 1
        return func(*args, **(kwargs or {}))


@every_solver
def test_work_is_not_repeated_per_head_or_graph(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward and backward launch as many operations for 2 heads on 3 graphs as for 5 heads on 11."""
    products = 0
    original = Velocity.add_product_

    def counted(self: Velocity, *args: object, **options: object) -> torch.Tensor:
        nonlocal products
        products += 1
        return original(self, *args, **options)

    monkeypatch.setattr(Velocity, "add_product_", counted)
    seen = set()
    for heads, number in ((2, 3), (5, 3), (2, 11), (5, 11)):
        layer, data = make_layer(solver, heads=heads, edge_dim=2, tol=1e-6), features(rings(number), WIDTH, 2)
        products = 0
        with Counting() as counting:
            layer(**data).square().sum().backward()
        seen.add((products, counting.operations))
    assert len(seen) == 1, f"(sparse products, operations): {seen}"
    assert products > 0
