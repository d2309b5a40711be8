"""The layer and the model of the paper's Appendix D in plain numpy: dense matrices, one head after the other."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor, nn

from advdiff.nn import AdvDiffConv, AdvDIFFormer
from tests.cases import GraphCase, block_model, both_ways
from tests.reference import attention, normalized, relative_error

SOLVERS = ("series", "inverse", "exponential")
TASKS = ("node", "edge", "graph")
EXACT = 1e-13  # a tolerance that leaves only rounding

every_solver = pytest.mark.parametrize("solver", SOLVERS)
every_task = pytest.mark.parametrize("task", TASKS)

#: Larger than the sizes up to which the inverse and the exponential use dense matrices.
LARGE = block_model((75, 75), 0.1, 0.02)


def rings(number: int) -> GraphCase:
    """A batch of rings of six nodes."""
    edges = [(6 * g + u, 6 * g + (u + 1) % 6) for g in range(number) for u in range(6)]
    return GraphCase(
        f"{number}_rings", 6 * number, both_ways(edges), batch=[g for g in range(number) for _ in range(6)]
    )


def make_layer(solver: str, in_channels: int = 3, out_channels: int = 3, **options: object) -> AdvDiffConv:
    torch.manual_seed(0)
    return AdvDiffConv(in_channels, out_channels, solver=solver, **{"tol": EXACT, **options}).double()


def features(case: GraphCase, width: int, edge_dim: int | None = None) -> dict[str, Tensor | None]:
    """The arguments of ``forward``: a case with random node and edge features in float64."""
    rng = np.random.default_rng(3)
    return {
        "x": torch.tensor(rng.normal(size=(case.num_nodes, width))),
        "edge_index": case.edge_index,
        "edge_weight": case.edge_weight,
        "edge_attr": None if edge_dim is None else torch.tensor(rng.normal(size=(len(case.edges), edge_dim))),
        "batch": case.batch_vector,
    }


def array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().numpy()


def edge_signal(layer: AdvDiffConv, case: GraphCase, edge_attr: Tensor) -> np.ndarray:
    """m_u = Σ_v ã_uv W_E e_uv; parallel edges share ã_uv in proportion to their weights."""
    A, V = case.adjacency, normalized(case.adjacency, layer.normalization)
    M = np.zeros((case.num_nodes, layer.in_channels))
    weights = case.weight or [1.0] * len(case.edges)
    for (source, target), weight, e in zip(case.edges, weights, array(edge_attr), strict=True):
        if weight > 0:
            M[target] += V[target, source] * weight / A[target, source] * (array(layer.edge.weight) @ e)
    return M


def dense_layer(layer: AdvDiffConv, case: GraphCase, z: np.ndarray, edge_attr: Tensor | None = None) -> np.ndarray:
    """Σ_h [Z⁽⁰⁾, …, Z⁽ᴷ⁾] W_{O,h}, Σ_h L_h⁻¹Z⁽⁰⁾ W_{O,h} or Σ_h e^{-(I − P_h)T}Z⁽⁰⁾ W_{O,h}."""
    identity, V = np.eye(case.num_nodes), normalized(case.adjacency, layer.normalization)
    M = np.zeros_like(z) if edge_attr is None else edge_signal(layer, case, edge_attr)
    total = np.zeros((case.num_nodes, layer.out_channels))
    for h in range(layer.heads):
        rows = slice(h * layer.in_channels, (h + 1) * layer.in_channels)
        query, key = (z @ array(linear.weight)[rows].T for linear in (layer.query, layer.key))
        P = attention(query, key, case.batch) + layer.beta * V
        W_O = array(layer.output)[:, h].reshape(-1, layer.out_channels)
        if layer.solver == "series":
            states = [z]
            for _ in range(layer.order):
                states.append(P @ (states[-1] + M))
            total += np.concatenate(states, axis=1) @ W_O
        elif layer.solver == "inverse":
            total += np.linalg.solve((1.0 + layer.theta) * identity - P, z + M) @ W_O
        else:
            total += scipy.linalg.expm(-layer.time * (identity - P)) @ (z + M) @ W_O
    return total


def layer_error(layer: AdvDiffConv, case: GraphCase) -> float:
    """‖layer − formula‖ / ‖formula‖ on the features of :func:`features`."""
    data = features(case, layer.in_channels, layer.edge_dim)
    return relative_error(layer(**data), dense_layer(layer, case, array(data["x"]), data["edge_attr"]))


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0.0)


def mlp(module: nn.Sequential, x: np.ndarray) -> np.ndarray:
    first, second = (m for m in module if isinstance(m, nn.Linear))
    hidden = relu(x @ array(first.weight).T + array(first.bias))
    return hidden @ array(second.weight).T + array(second.bias)


def dense_model(
    model: AdvDIFFormer, case: GraphCase, x: Tensor, edge_attr: Tensor | None = None, pairs: list | None = None
) -> np.ndarray:
    """Encoder, layers (with the extras of the released code, in evaluation mode), decoder."""
    z = mlp(model.encoder, array(x))
    for number, (layer, norm) in enumerate(zip(model.layers, model.norms, strict=True)):
        given = relu(z) if number else z
        z = dense_layer(layer, case, given, edge_attr)
        if isinstance(norm, nn.BatchNorm1d):
            z = (z - array(norm.running_mean)) / np.sqrt(array(norm.running_var) + norm.eps)
            z = z * array(norm.weight) + array(norm.bias)
        z = z + given if model.residual else z
    if model.task == "edge":
        z = np.stack([np.concatenate([z[u], z[v]]) for u, v in pairs])
    elif model.task == "graph":
        graph = np.array(case.batch or [0] * case.num_nodes)
        z = np.stack([z[graph == g].sum(0) for g in range(graph.max() + 1)])
    return mlp(model.decoder, z)
