"""``torch.compile`` and ``torch.export``: how many graphs, and the same numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.backends.debugging import aot_eager

from advdiff.bench.problems import molecules
from advdiff.nn import AdvDIFFormer
from tests.cases import block_model

SBM = block_model((60, 60), 0.1, 0.02)
EDGES, NODES = SBM.edge_index, SBM.num_nodes
X = torch.randn(NODES, 5, generator=torch.Generator().manual_seed(0))
SETTINGS = {
    "one layer": {"normalization": "row", "order": 3, "edge_dim": 2},
    "deep": {"heads": 2, "num_layers": 2, "batch_norm": True, "residual": True, "learn": ("beta",)},
}


def arguments(settings: dict) -> dict[str, Tensor]:
    return {"edge_attr": torch.ones(EDGES.size(1), 2)} if "edge_dim" in settings else {}


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS.keys())
def test_the_series_model_is_one_graph_that_computes_the_same(settings: dict) -> None:
    torch.manual_seed(0)
    model, graphs = AdvDIFFormer(5, 8, 2, **settings).double(), []

    def counted(graph: torch.fx.GraphModule, example: list) -> Callable:
        graphs.append(graph)
        return aot_eager(graph, example)

    compiled = torch.compile(model, backend=counted)
    given = {name: value.double() for name, value in arguments(settings).items()}
    gradients = []
    for call in (model, compiled):
        model.zero_grad()
        out = call(X.double(), EDGES, **given)
        out.square().mean().backward()
        gradients.append([out.detach(), *(p.grad.clone() for p in model.parameters())])
    assert len(graphs) == 1
    for eager, again in zip(*gradients, strict=True):
        torch.testing.assert_close(again, eager, rtol=1e-9, atol=1e-11)


def test_what_dynamo_itself_says() -> None:
    explained = torch._dynamo.explain(AdvDIFFormer(5, 8, 2, heads=2, num_layers=2))(X, EDGES)
    assert explained.graph_count <= 2 and explained.graph_break_count <= 2


def test_another_graph_is_another_result_and_nan_is_refused() -> None:
    """What is remembered of a graph must not be baked into the code, and the checks still stand at the door."""
    model = AdvDIFFormer(5, 8, 2)
    compiled = torch.compile(model, backend="aot_eager")
    for edges in (EDGES, EDGES[:, ::2]):
        torch.testing.assert_close(compiled(X, edges), model(X, edges))
    with pytest.raises(ValueError, match="NaN or infinite"):
        compiled(torch.full_like(X, torch.nan), EDGES)


@pytest.mark.parametrize("hidden, sizes", [pytest.param(8, (None, 7), id="tiles"), pytest.param(64, (7,), id="blocks")])
def test_batches_of_graphs(hidden: int, sizes: tuple[int | None, ...]) -> None:
    graph = molecules(graphs=5, atoms=12)
    model = AdvDIFFormer(graph.x.size(1), hidden, 2, heads=2, task="graph")
    compiled = torch.compile(model, backend="aot_eager")
    for size in sizes:
        given = (graph.x, graph.edge_index, None, None, graph.batch, None, size)
        torch.testing.assert_close(compiled(*given), model(*given), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", ["inverse", "exponential"])
def test_the_other_solvers_run_compiled(solver: str) -> None:
    model = AdvDIFFormer(5, 8, 2, solver=solver)
    torch.testing.assert_close(torch.compile(model, backend="aot_eager")(X, EDGES), model(X, EDGES))


# ------------------------------------------------------------------------------------------------ torch.export


@pytest.mark.parametrize("settings", [{"heads": 2, "num_layers": 2, "edge_dim": 2}], ids=str)
def test_export_for_any_number_of_nodes_and_edges(settings: dict) -> None:
    model = AdvDIFFormer(5, 8, 2, **settings).eval()
    nodes, edges = torch.export.Dim("nodes", min=2), torch.export.Dim("edges", min=2)
    given = arguments(settings)
    shapes = {"x": {0: nodes}, "edge_index": {1: edges}, **{name: {0: edges} for name in given}}
    program = torch.export.export(model, (X, EDGES), given, dynamic_shapes=shapes).module()
    torch.testing.assert_close(program(X, EDGES, **given), model(X, EDGES, **given))
    fewer, few = X[:50], EDGES[:, (EDGES < 50).all(0)]
    part = {name: value[: few.size(1)] for name, value in given.items()}
    torch.testing.assert_close(program(fewer, few, **part), model(fewer, few, **part))


class Molecules(nn.Module):
    """A batch of a fixed number of graphs."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.model(x, edge_index, batch=batch, batch_size=6)


def test_export_of_a_batch_of_known_size() -> None:
    graph = molecules(graphs=5, atoms=12)
    model = Molecules(AdvDIFFormer(graph.x.size(1), 8, 2, task="graph").eval())
    given = (graph.x, graph.edge_index, graph.batch)
    program = torch.export.export(model, given).module()
    torch.testing.assert_close(program(*given), model(*given), rtol=1e-4, atol=1e-5)
    with pytest.raises(Exception, match="batch_size"):
        torch.export.export(model.model, given[:2], {"batch": graph.batch})
