"""The same model as the paper's pseudo-code reads: loops over heads, dense matrices, torch's own autograd.

These are what the fast versions are measured against and agree with. They use the parameters of an
:class:`advdiff.nn.AdvDIFFormer` with one layer, so that both sides compute the same function.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from advdiff.nn import AdvDiffConv, AdvDIFFormer
from advdiff.operators.graph import normalize_adjacency


def sparse_adjacency(edge_index: Tensor, num_nodes: int, kind: str) -> Tensor:
    """Ã as a torch sparse tensor (CSR: the faster of torch's formats in this product)."""
    velocity = normalize_adjacency(edge_index, num_nodes, kind=kind)
    source, target = edge_index
    value = velocity.entries.to(torch.get_default_dtype())
    coo = torch.sparse_coo_tensor(torch.stack([target, source]), value, (num_nodes, num_nodes), check_invariants=False)
    return coo.coalesce().to_sparse_csr()


def _head(layer: AdvDiffConv, z: Tensor, h: int) -> tuple[Tensor, Tensor]:
    """Z_Q and Z_K of one head."""
    d = layer.in_channels
    rows = slice(h * d, (h + 1) * d)
    assert layer.query is not None and layer.key is not None
    return normalize(z @ layer.query.weight[rows].T, dim=-1), normalize(z @ layer.key.weight[rows].T, dim=-1)


def series_by_heads(layer: AdvDiffConv, z: Tensor, adjacency: Tensor) -> Tensor:
    """Algorithm 2, line by line: O(N) reordering, one head after the other, ``torch.sparse.mm``."""
    out = torch.zeros_like(z)
    for h in range(layer.heads):
        query, key = _head(layer, z, h)
        row_sum = z.size(0) + query @ key.sum(0)
        state, states = z, [z]
        for _ in range(layer.order):
            attended = (state.sum(0) + query @ (key.T @ state)) / row_sum[:, None]
            state = attended + layer.beta * torch.sparse.mm(adjacency, state)
            states.append(state)
        out = out + torch.cat(states, dim=1) @ layer.output[:, h].flatten(0, 1)
    return out


def _dense_attention(layer: AdvDiffConv, z: Tensor, h: int, same_graph: Tensor | None) -> Tensor:
    query, key = _head(layer, z, h)
    scores = 1.0 + query @ key.T
    if same_graph is not None:
        scores = scores * same_graph
    return scores / scores.sum(1, keepdim=True)


def inverse_by_heads(layer: AdvDiffConv, z: Tensor, adjacency: Tensor, same_graph: Tensor | None = None) -> Tensor:
    """Algorithm 1, line by line: a dense N×N matrix and ``torch.linalg.solve`` for each head."""
    identity = torch.eye(z.size(0), dtype=z.dtype, device=z.device)
    out = torch.zeros_like(z)
    for h in range(layer.heads):
        attention = _dense_attention(layer, z, h, same_graph)
        system = (1.0 + layer.theta) * identity - attention - layer.beta * adjacency
        out = out + torch.linalg.solve(system, z) @ layer.output[0, h]
    return out


def series_dense(layer: AdvDiffConv, z: Tensor, adjacency: Tensor, same_graph: Tensor | None = None) -> Tensor:
    """The series with dense matrices P_h; for a batch of graphs they are block-diagonal."""
    out = torch.zeros_like(z)
    for h in range(layer.heads):
        propagator = _dense_attention(layer, z, h, same_graph) + layer.beta * adjacency
        state, states = z, [z]
        for _ in range(layer.order):
            state = propagator @ state
            states.append(state)
        out = out + torch.cat(states, dim=1) @ layer.output[:, h].flatten(0, 1)
    return out


def exponential_dense(layer: AdvDiffConv, z: Tensor, adjacency: Tensor, same_graph: Tensor | None = None) -> Tensor:
    """The closed form with ``torch.linalg.matrix_exp`` of a dense matrix for each head."""
    identity = torch.eye(z.size(0), dtype=z.dtype, device=z.device)
    out = torch.zeros_like(z)
    for h in range(layer.heads):
        generator = identity - _dense_attention(layer, z, h, same_graph) - layer.beta * adjacency
        out = out + torch.linalg.matrix_exp(-layer.time * generator) @ z @ layer.output[0, h]
    return out


def whole_model(model: AdvDIFFormer, x: Tensor, propagate: object) -> Tensor:
    """Encoder, the given propagation of the only layer, decoder (node task)."""
    assert callable(propagate) and len(model.layers) == 1
    out: Tensor = model.decoder(propagate(model.layers[0], model.encoder(x)))
    return out
