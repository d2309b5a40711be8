"""What a user of PyG hands to a model: a ``Data``, an ``edge_index``, an ``EdgeIndex`` or a sparse ``adj_t``."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch_geometric import EdgeIndex
from torch_geometric.data import Data, HeteroData

from advdiff.checks import check_csr, check_edge_index, check_tensor, is_traced, must_look_at
from advdiff.nn.cache import new_memory, recall

#: What is understood as edges: see :func:`plain_edges`.
Edges = Tensor
SPARSE = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc)
_edges = new_memory()  # of sparse adjacency matrices


class GraphInput(NamedTuple):
    """A graph or a batch of graphs as plain tensors: the arguments of a model."""

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None = None
    edge_attr: Tensor | None = None
    batch: Tensor | None = None
    edge_label_index: Tensor | None = None
    batch_size: int | None = None
    #: What the edges were read from, if from a remembered ``adj_t``.
    adj_t: Tensor | None = None

    @property
    def compared(self) -> tuple[Tensor | None, ...]:
        """What a model compares with its memory at the door (:func:`advdiff.checks.values_checked`)."""
        return self.x, self.edge_index, self.edge_weight, self.batch

    @classmethod
    def of(
        cls,
        x: Any,
        edge_index: Any,
        edge_weight: Tensor | None,
        edge_attr: Tensor | None,
        batch: Tensor | None,
        edge_label_index: Tensor | None,
        batch_size: int | None,
    ) -> GraphInput:
        """The arguments themselves, or those that a ``Data`` in place of ``x`` holds.

        Example:
            >>> import torch
            >>> from torch_geometric.data import Batch, Data
            >>> pair = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))
            >>> empty = Data(x=torch.ones(0, 1), edge_index=torch.empty(2, 0, dtype=torch.int64))
            >>> GraphInput.of(Batch.from_data_list([pair, empty]), None, None, None, None, None, None).batch_size
            2
        """
        refuse_several_kinds_of_nodes(x)
        if isinstance(x, Data):
            named = (edge_index, edge_weight, edge_attr, batch, edge_label_index, batch_size)
            if any(value is not None for value in named):
                raise ValueError("a Data was given and tensors beside it; store the tensors in the Data.")
            return cls._of_data(x)
        if edge_index is None:
            raise ValueError("edge_index was not given; pass it after x, or a Data that holds both.")
        check_tensor("x", x, sparse=True)
        num_nodes = x.size(0) if x.dim() else None
        edge_index, edge_weight, adj_t = plain_edges(edge_index, edge_weight, edge_attr, num_nodes)
        return cls(x, edge_index, edge_weight, edge_attr, batch, edge_label_index, batch_size, adj_t)

    @classmethod
    def _of_data(cls, data: Data) -> GraphInput:
        edges = data.edge_index if data.edge_index is not None else data.get("adj_t")
        if data.x is None or edges is None:
            missing = "x" if data.x is None else "edge_index (or adj_t)"
            raise ValueError(f"the Data has no {missing}; its attributes are: {', '.join(data.keys())}.")
        check_tensor("x", data.x, sparse=True)
        num_nodes = data.x.size(0) if data.x.dim() else None
        edge_index, edge_weight, adj_t = plain_edges(edges, data.get("edge_weight"), data.edge_attr, num_nodes)
        batch = data.get("batch")
        return cls(
            data.x,
            edge_index,
            edge_weight,
            data.edge_attr,
            batch,
            data.get("edge_label_index"),
            None if batch is None else getattr(data, "_num_graphs", None),
            adj_t,
        )


def refuse_several_kinds_of_nodes(x: Any) -> None:
    """Attention over all nodes compares each with each, so all must have features of one kind."""
    if isinstance(x, HeteroData | dict | tuple | list):
        kind = "a bipartite graph" if isinstance(x, tuple | list) else "a heterogeneous graph"
        raise ValueError(
            f"x is that of {kind}; attention over all nodes compares every node with every other, so all of them need "
            "the same features: give them a common width and call data.to_homogeneous()."
        )


def plain_edges(
    edges: Any, edge_weight: Tensor | None = None, edge_attr: Tensor | None = None, num_nodes: int | None = None
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """``edge_index`` [2, E] and ``edge_weight`` [E] from what PyG has for edges.

    ``adj_t`` holds at [u, v] the weight of the edge v → u, like V. Its entries may require gradients; if they do not,
    they are remembered, and it comes third where the caller must still compare it with what they were read from
    (``made_from`` of :func:`advdiff.nn.cache.check_graph`).

    Example:
        >>> import torch
        >>> adj_t = torch.tensor([[0.0, 0.0], [3.0, 0.0]]).to_sparse_csr()
        >>> edge_index, edge_weight, _ = plain_edges(adj_t)
        >>> edge_index.tolist(), edge_weight
        ([[0], [1]], tensor([3.]))
    """
    if isinstance(edges, dict | tuple | list):
        refuse_several_kinds_of_nodes({} if isinstance(edges, dict) else edges)
    if isinstance(edges, EdgeIndex):
        return edges.as_tensor(), edge_weight, None
    if not isinstance(edges, Tensor):
        raise ValueError(
            f"the edges are of type {type(edges).__name__}; pass edge_index [2, E], an EdgeIndex, or adj_t as a sparse "
            "torch tensor (a SparseTensor has .to_torch_sparse_csr_tensor())."
        )
    if edges.layout not in SPARSE:
        return edges, edge_weight, None
    if edge_weight is not None or edge_attr is not None:
        raise ValueError(
            "adj_t was given with edge_weight or edge_attr, whose order it does not keep; put the weights into adj_t, "
            "or pass edge_index."
        )
    if edges.dim() != 2 or edges.size(0) != edges.size(1):
        raise ValueError(
            f"adj_t has shape {tuple(edges.shape)}; it must be square, N × N: attention over all nodes needs one kind "
            "of node, so make a bipartite graph homogeneous first (data.to_homogeneous())."
        )
    if num_nodes is not None and edges.size(0) != num_nodes:
        raise ValueError(f"adj_t has {edges.size(0)} rows but x has {num_nodes}; pass one row per node.")
    if edges.requires_grad or is_traced():
        return *_entries(edges), None
    at_the_door = must_look_at(edges)
    index, weight = recall(_edges, [edges], (), _entries, trusted=at_the_door)
    return index, weight, edges if at_the_door else None


def _entries(adj_t: Tensor) -> tuple[Tensor, Tensor]:
    if adj_t.layout == torch.sparse_coo:  # torch takes indices on trust
        check_edge_index(adj_t._indices(), adj_t.size(0), "adj_t")
    else:
        check_csr("adj_t", adj_t if adj_t.layout == torch.sparse_csr else adj_t.t())
    coo = adj_t.to_sparse_coo().coalesce()
    weight = coo.values()
    return coo.indices().flip(0), weight if weight.is_floating_point() else weight.to(torch.get_default_dtype())
