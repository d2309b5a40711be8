"""``clusters``: the parts of a graph as graphs of their own, which is what mini-batching by clusters trains on."""

from __future__ import annotations

import torch
from torch import Tensor
from torch_geometric.data import Data

from advdiff.checks import check_edge_index
from advdiff.distributed.partitioning import assign, check_parts


def clusters(data: Data, parts: int, method: str | Tensor = "metis") -> list[Data]:
    """Cut the edges between the parts and number each part's nodes anew; ``node`` tells their old numbers.

    Nothing is exchanged between the parts: a node then advects from the neighbours in its own cluster only, with
    degrees counted there, and attends to its own cluster only. Compare ``Shard``, which
    computes on the whole graph.

    Args:
        data: PyG's ``Data`` with ``edge_index``; what has one row per node or edge follows it, all else is shared.
        parts: how many clusters, at most the number of nodes.
        method: as in ``partition``.

    Example:
        >>> import torch
        >>> from torch_geometric.data import Data
        >>> path = torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]])
        >>> [part.edge_index.tolist() for part in clusters(Data(x=torch.eye(4), edge_index=path), 2, "range")]
        [[[0, 1], [1, 0]], [[0, 1], [1, 0]]]
    """
    num_nodes = data.num_nodes
    if data.edge_index is None or num_nodes is None:
        raise ValueError("data has no edge_index or no nodes; pass a PyG Data with x and edge_index.")
    check_edge_index(data.edge_index, num_nodes)
    check_parts(parts, num_nodes)
    owner = assign(data.edge_index, num_nodes, parts, method)
    source, target = data.edge_index.long()
    inside = (owner[source] == owner[target]).nonzero().flatten()
    sizes = torch.bincount(owner, minlength=parts)
    order = torch.argsort(owner, stable=True)
    position = torch.empty_like(order)  # of each node within its part
    position[order] = torch.arange(num_nodes) - (sizes.cumsum(0) - sizes).repeat_interleave(sizes)
    nodes_of = order.split(sizes.tolist())
    by_part = inside[torch.argsort(owner[target[inside]], stable=True)]
    edges_of = by_part.split(torch.bincount(owner[target[inside]], minlength=parts).tolist())
    return [_part(data, nodes, edges, position) for nodes, edges in zip(nodes_of, edges_of, strict=True)]


def _part(data: Data, nodes: Tensor, edges: Tensor, position: Tensor) -> Data:
    part = Data(node=nodes, num_nodes=nodes.numel())
    for key, value in data.items():
        if key == "edge_index":
            part[key] = position[value[:, edges].long()]
        elif key not in ("node", "num_nodes"):
            part[key] = value[nodes] if data.is_node_attr(key) else value[edges] if data.is_edge_attr(key) else value
    return part
