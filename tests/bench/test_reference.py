"""The pseudo-code versions compute the same function as the fast model: else their timings would mean nothing."""

from collections.abc import Callable

import pytest
import torch

from advdiff.bench import reference
from advdiff.bench.problems import Graph, model, molecules, random_graph
from advdiff.nn import AdvDIFFormer


def _slow(module: AdvDIFFormer, graph: Graph, propagate: Callable, sparse: bool) -> torch.Tensor:
    adjacency = reference.sparse_adjacency(graph.edge_index, graph.x.size(0), "symmetric")
    extra = []
    if not sparse:
        adjacency = adjacency.to_dense()
        if graph.batch is not None:
            extra = [(graph.batch[:, None] == graph.batch[None, :]).to(graph.x.dtype)]
    return reference.whole_model(module, graph.x, lambda layer, z: propagate(layer, z, adjacency, *extra))


@pytest.fixture
def double():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("in_batch", [False, True])
@pytest.mark.parametrize(
    ("solver", "propagate", "sparse"),
    [
        ("series", reference.series_by_heads, True),
        ("series", reference.series_dense, False),
        ("inverse", reference.inverse_by_heads, False),
        ("exponential", reference.exponential_dense, False),
    ],
)
def test_reference_equals_model(double, solver, propagate, sparse, in_batch, heads):
    if in_batch and sparse:
        pytest.skip("the sparse pseudo-code is for a single graph")
    graph = molecules(graphs=9, atoms=16) if in_batch else random_graph(150)
    graph = graph._replace(x=graph.x.double())
    module = model(solver, heads)
    for layer in module.layers:
        layer.tol = 1e-13
    gradients = []
    for out in (module(graph.x, graph.edge_index, batch=graph.batch), _slow(module, graph, propagate, sparse)):
        module.zero_grad()
        out.square().mean().backward()
        gradients.append([out.detach(), *(p.grad.clone() for p in module.parameters())])
    for fast, slow in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, slow, rtol=1e-8, atol=1e-10)


def test_molecules_are_connected_and_stay_apart():
    graph = molecules(graphs=40)
    source, target = graph.edge_index
    assert torch.equal(graph.batch[source], graph.batch[target])
    assert int(graph.batch.max()) == 39
    sizes = torch.bincount(graph.batch)
    assert 10 <= int(sizes.min()) and int(sizes.max()) <= 30
    # a tree needs one bond less than it has atoms; rings only add bonds
    bonds = torch.bincount(graph.batch[source], minlength=40) // 2
    assert bool((bonds >= sizes - 1).all())
