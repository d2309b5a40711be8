"""PyG's explainers weigh the edges of the layer as they do those of PyG's own."""

from __future__ import annotations

import pytest
import torch
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

import advdiff
from advdiff.nn import AdvDiffConv, AdvDIFFormer
from tests.cases import BY_NAME
from tests.nn.dense import every_solver

CASE = BY_NAME["weighted"]
EDGES, WEIGHT, NODES = CASE.edge_index, CASE.edge_weight.float(), CASE.num_nodes
X = torch.randn(NODES, 4, generator=torch.Generator().manual_seed(0))


@every_solver
def test_a_mask_weighs_the_entries_of_V(solver: str) -> None:
    layer = AdvDiffConv(4, 4, solver=solver, heads=2)
    mask = torch.linspace(0.0, 1.0, EDGES.size(1))
    V = advdiff.normalize_adjacency(EDGES, NODES, WEIGHT)
    source, target = EDGES
    dense = torch.zeros(NODES, NODES, dtype=torch.float64).index_put(
        (target, source), V.entries * mask, accumulate=True
    )
    set_masks(layer, mask, EDGES, apply_sigmoid=False)
    masked = layer.mask(V)
    torch.testing.assert_close(masked.to_dense(torch.float64), dense)
    Z = torch.eye(NODES)
    torch.testing.assert_close(masked.T @ Z, dense.T.float())  # one-sided masks make an undirected graph directed
    out = layer(X, EDGES, WEIGHT)
    clear_masks(layer)
    assert not torch.allclose(out, layer(X, EDGES, WEIGHT))
    torch.testing.assert_close(layer(X, masked), out)


@every_solver
def test_without_edges_only_attention_is_left(solver: str) -> None:
    model = AdvDIFFormer(4, 8, 2, solver=solver, num_layers=2)
    set_masks(model, torch.zeros(EDGES.size(1)), EDGES, apply_sigmoid=False)
    masked = model(X, EDGES)
    clear_masks(model)
    torch.testing.assert_close(masked, model(X, EDGES[:, :0]), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("solver", ["series", "inverse"])
def test_gnn_explainer_finds_the_edge_that_matters(solver: str) -> None:
    """Two pairs of nodes; what the model says of node 0 comes from node 1 through the edge between them."""
    torch.manual_seed(0)
    edges = torch.tensor([[1, 0, 3, 2], [0, 1, 2, 3]])
    x = torch.randn(4, 3)
    model = AdvDIFFormer(3, 8, 1, solver=solver, beta=1.0, theta=2.0, diffusion=False)
    explainer = Explainer(
        model,
        GNNExplainer(epochs=40, lr=0.1),
        explanation_type="model",
        edge_mask_type="object",
        model_config={"mode": "regression", "task_level": "node", "return_type": "raw"},
    )
    mask = explainer(x, edges, index=0).edge_mask
    assert mask.shape == (4,)
    assert int(mask.argmax()) in (0, 1) and float(mask[2:].max()) == 0.0  # the other pair gets no gradient at all
    assert all(not module.explain for module in model.modules() if hasattr(module, "explain"))
