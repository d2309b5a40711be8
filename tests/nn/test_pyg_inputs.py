"""What users of PyG hand over: Data, Batch, EdgeIndex, adj_t, features of unknown width, graphs of several kinds."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import ToSparseTensor

from advdiff.nn import AdvDiffConv, AdvDIFFormer, build, model_names
from tests.cases import BY_NAME
from tests.nn.dense import every_solver

CASE = BY_NAME["directed_weighted"]
EDGES, WEIGHT, NODES = CASE.edge_index, CASE.edge_weight.float(), CASE.num_nodes
X = torch.randn(NODES, 5, generator=torch.Generator().manual_seed(0))
ADJ_T = torch.sparse_coo_tensor(EDGES.flip(0), WEIGHT, (NODES, NODES)).coalesce()  # adj_t[target, source]


def molecule(nodes: int, seed: int) -> Data:
    random = torch.Generator().manual_seed(seed)
    path = torch.arange(max(nodes - 1, 0))
    edges = torch.stack([path, path + 1]) if nodes > 1 else torch.empty(2, 0, dtype=torch.int64)
    edge_index = torch.cat([edges, edges.flip(0)], dim=1)
    attr = torch.randn(edge_index.size(1), 2, generator=random, dtype=torch.float64)
    return Data(x=torch.randn(nodes, 5, generator=random), edge_index=edge_index, edge_attr=attr)


@every_solver
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_adj_t_is_the_same_graph(solver: str, layout: torch.layout) -> None:
    model = AdvDIFFormer(5, 8, 2, solver=solver)
    adj_t = ADJ_T if layout == torch.sparse_coo else ADJ_T.to_sparse(layout=layout)
    expected = model(X, EDGES, WEIGHT)
    assert torch.allclose(model(X, adj_t), expected, atol=1e-6)
    assert torch.allclose(model(X, adj_t), expected, atol=1e-6)  # from memory
    layer = AdvDiffConv(5, 5, solver=solver)
    assert torch.allclose(layer(X, adj_t), layer(X, EDGES, WEIGHT), atol=1e-6)


def test_adj_t_of_the_transform() -> None:
    data = Data(x=X, edge_index=EDGES)
    model = build("gcn", 5, 8, 2)
    expected = model(data)
    assert torch.allclose(model(ToSparseTensor(layout=torch.sparse_csr)(data.clone())), expected, atol=1e-6)


def test_edge_index_of_pyg() -> None:
    model = AdvDIFFormer(5, 8, 2)
    edges = EdgeIndex(EDGES.contiguous(), sparse_size=(NODES, NODES))
    layer = AdvDiffConv(5, 5)
    assert torch.equal(layer(X, edges, WEIGHT), layer(X, EDGES, WEIGHT))
    assert torch.equal(model(X, edges, WEIGHT), model(X, EDGES, WEIGHT))


@pytest.mark.parametrize("name", sorted(model_names()))
def test_every_model_reads_a_data(name: str) -> None:
    model = build(name, 5, 8, 2).eval()
    data = Data(x=X, edge_index=EDGES, edge_weight=WEIGHT)
    assert torch.equal(model(data), model(X, EDGES, WEIGHT))


@every_solver
def test_a_trailing_empty_graph_is_kept(solver: str) -> None:
    """Red before: the batch vector alone cannot tell of a last graph without nodes, and its row was missing."""
    graphs = [molecule(4, 0), molecule(0, 1), molecule(3, 2), molecule(0, 3)]
    batch = Batch.from_data_list(graphs)
    model = AdvDIFFormer(5, 8, 2, solver=solver, task="graph", edge_dim=2).eval()
    out = model(batch)
    assert out.shape == (4, 2)
    given = (batch.x, batch.edge_index, None, batch.edge_attr, batch.batch)
    assert torch.equal(out, model(*given, batch_size=4))
    assert torch.equal(out[:3], model(*given))
    assert torch.equal(out[1], out[3])  # both sums are empty
    assert torch.allclose(out[0], model(graphs[0])[0], atol=1e-5)


def test_a_batch_of_nothing() -> None:
    batch = Batch.from_data_list([molecule(0, 0), molecule(0, 1)])
    assert AdvDIFFormer(5, 8, 2, task="graph", edge_dim=2)(batch).shape == (2, 2)


@every_solver
@pytest.mark.parametrize("name", ["AdvDIFFormer", "layer", "gcn", "graphgps"])
def test_edge_features_in_double_precision(name: str, solver: str) -> None:
    """Red before: an error from inside torch about scalar types."""
    data = molecule(6, 0)
    model = {
        "AdvDIFFormer": lambda: AdvDIFFormer(5, 8, 2, solver=solver, edge_dim=2),
        "layer": lambda: AdvDiffConv(5, 2, solver=solver, edge_dim=2),
    }.get(name, lambda: build(name, 5, 8, 2, edge_dim=2))().eval()
    double = model(data.x, data.edge_index, edge_attr=data.edge_attr)
    assert double.dtype == torch.float32
    assert torch.allclose(double, model(data.x, data.edge_index, edge_attr=data.edge_attr.float()), atol=1e-6)


# ------------------------------------------------------------------------------------------------ lazy widths


@every_solver
@pytest.mark.parametrize("make", [
    lambda width, solver: AdvDIFFormer(width, 8, 2, solver=solver),
    lambda width, solver: AdvDiffConv(width, 2, solver=solver, heads=2),
    lambda width, solver: build("gcn", width, 8, 2),
], ids=["model", "layer", "baseline"])  # fmt: skip
def test_features_of_unknown_width(make, solver: str) -> None:
    lazy = make(-1, solver)
    repr(lazy)
    assert lazy(X, EDGES).shape == (NODES, 2)
    known = make(5, solver)
    assert {n: p.shape for n, p in lazy.named_parameters()} == {n: p.shape for n, p in known.named_parameters()}
    known.load_state_dict(lazy.state_dict())
    assert torch.equal(known(X, EDGES), lazy(X, EDGES))
    other = make(-1, solver)
    other.load_state_dict(known.state_dict())  # before the first input
    assert torch.equal(other(X, EDGES), known(X, EDGES))
    with pytest.raises(ValueError, match=r"\[N, 5\]"):
        lazy(X[:, :4], EDGES)


def test_parameters_that_an_optimiser_holds_already_are_the_ones_that_get_their_size() -> None:
    layer = AdvDiffConv(-1, 2)
    held = list(layer.parameters())
    layer(X, EDGES)
    assert all(a is b for a, b in zip(held, layer.parameters(), strict=True))


# ------------------------------------------------------------------------------------------------ what is refused


def hetero() -> HeteroData:
    data = HeteroData()
    data["a"].x, data["b"].x = torch.ones(2, 5), torch.ones(3, 5)
    data["a", "to", "b"].edge_index = torch.tensor([[0], [1]])
    return data


REFUSED = {
    "HeteroData": (lambda m: m(hetero()), "to_homogeneous"),
    "x_dict": (lambda m: m({"a": X}, {("a", "to", "a"): EDGES}), "to_homogeneous"),
    "bipartite": (lambda m: m((X, X[:2]), EDGES), "bipartite.*to_homogeneous"),
    "edge_index_dict": (lambda m: m(X, {("a", "to", "a"): EDGES}), "to_homogeneous"),
    "rectangular": (lambda m: m(X, torch.ones(NODES, 2).to_sparse_csr()), "bipartite.*to_homogeneous"),
    "too large": (lambda m: m(X, torch.eye(NODES + 1).to_sparse_csr()), "rows but x has"),
    "weights twice": (lambda m: m(X, ADJ_T, WEIGHT), "put the weights into adj_t"),
    "no edges": (lambda m: m(X), "edge_index was not given"),
    "empty Data": (lambda m: m(Data(edge_index=EDGES)), "has no x"),
    "edgeless Data": (lambda m: m(Data(x=X)), "has no edge_index"),
    "Data and more": (lambda m: m(Data(x=X, edge_index=EDGES), EDGES), "store the tensors in the Data"),
    "too few graphs": (lambda m: m(X, EDGES, batch=torch.ones(NODES, dtype=torch.int64), batch_size=1), "numbers 2"),
    "no batch": (lambda m: m(X, EDGES, batch_size=3), "without a batch"),
    "list": (lambda m: m(X, object()), "of type object"),
}


@pytest.mark.parametrize("call, match", REFUSED.values(), ids=REFUSED.keys())
def test_refused(call, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call(AdvDIFFormer(5, 8, 2, task="graph"))


@pytest.mark.parametrize("x", [(X, X), {"a": X}], ids=["bipartite", "hetero"])
def test_the_layer_refuses_several_kinds_of_nodes(x: Tensor) -> None:
    with pytest.raises(ValueError, match="to_homogeneous"):
        AdvDiffConv(5, 5)(x, EDGES)
