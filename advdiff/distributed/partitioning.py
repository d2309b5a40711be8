"""``partition``: divide a graph among P ranks, and write what each of them needs into a file of its own."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from advdiff.checks import check_choice, check_edge_index, check_edge_weight
from advdiff.distributed import files

METHODS = ("metis", "range")


def partition(
    data: Data, parts: int, directory: str | os.PathLike[str], method: str | Tensor = "metis"
) -> files.Summary:
    """Write one file per rank: its nodes, the edges that arrive at them, and which rows it needs from whom.

    Args:
        data: PyG's ``Data`` with ``edge_index``, and ``x``, ``y``, ``train_mask``, ``val_mask``, ``test_mask``,
            ``edge_weight`` and ``edge_attr`` where it has them.
        parts: number P of ranks, at most the number of nodes.
        directory: where the files go.
        method: ``"metis"`` cuts few edges (needs ``pymetis``); ``"range"`` gives each rank a run of node numbers; or a
            tensor [N] that says for each node to which rank it goes.

    Example:
        >>> import tempfile, torch
        >>> from torch_geometric.data import Data
        >>> path = torch.tensor([[0, 1, 2, 1, 2, 3], [1, 2, 3, 0, 1, 2]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     summary = partition(Data(x=torch.eye(4), edge_index=path), 2, folder, method="range")
        >>> summary.parts, summary.num_nodes, summary.num_edges, summary.channels
        (2, 4, 6, 4)
    """
    num_nodes = data.num_nodes
    if data.edge_index is None or num_nodes is None:
        raise ValueError("data has no edge_index or no nodes; pass a PyG Data with x and edge_index.")
    check_edge_index(data.edge_index, num_nodes)
    edge_weight = data.get("edge_weight")
    if edge_weight is not None:
        check_edge_weight(edge_weight, data.edge_index.size(1))
    check_parts(parts, num_nodes)
    owner = assign(data.edge_index, num_nodes, parts, method)
    return _write(data, owner, parts, Path(directory), method if isinstance(method, str) else "given")


def check_parts(parts: int, num_nodes: int) -> None:
    """A rank without nodes would have nothing to do."""
    if not 1 <= parts <= num_nodes:
        raise ValueError(f"parts is {parts}; it must lie between 1 and the number of nodes, {num_nodes}.")


def boundaries(num_nodes: int, parts: int) -> Tensor:
    """[P + 1], where the run of node numbers of each rank begins; the runs differ by at most one node.

    Example:
        >>> boundaries(10, 4).tolist()
        [0, 2, 5, 7, 10]
    """
    return torch.arange(parts + 1) * num_nodes // parts


def assign(edge_index: Tensor, num_nodes: int, parts: int, method: str | Tensor) -> Tensor:
    """[N], the rank of each node, by the ``method`` of ``partition``."""
    if isinstance(method, Tensor):
        owner = method.long()
        if owner.shape != (num_nodes,) or not torch.equal(owner.unique(), torch.arange(parts)):
            raise ValueError(
                f"the given partition must name one of the ranks 0 to {parts - 1} for each of the {num_nodes} nodes, "
                "and every rank for some node."
            )
        return owner
    check_choice("method of partitioning", method, METHODS)
    if method == "range":
        return torch.repeat_interleave(torch.arange(parts), boundaries(num_nodes, parts).diff())
    return _metis(edge_index, num_nodes, parts)


def _metis(edge_index: Tensor, num_nodes: int, parts: int) -> Tensor:
    """Few edges between the parts, by multilevel recursive bisection or k-way refinement (METIS)."""
    try:
        import pymetis
    except ImportError:
        raise ValueError("method='metis' needs pymetis: pip install 'advdiff[metis]', or use method='range'.") from None
    if parts == 1:
        return torch.zeros(num_nodes, dtype=torch.int64)
    # METIS wants each undirected edge in both directions, once and without self-loops.
    source, target = edge_index.long()
    both = torch.cat([source * num_nodes + target, target * num_nodes + source])
    key = both[torch.div(both, num_nodes, rounding_mode="floor") != both % num_nodes].unique().numpy()
    starts = np.searchsorted(key, np.arange(num_nodes + 1, dtype=np.int64) * num_nodes)
    _, membership = pymetis.part_graph(parts, pymetis.CSRAdjacency(starts, key % num_nodes))
    return _without_empty_parts(torch.as_tensor(membership, dtype=torch.int64), parts)


def _without_empty_parts(owner: Tensor, parts: int) -> Tensor:
    """A part that METIS left empty (it may, on a tiny graph) gets a node of the largest one."""
    counts = torch.bincount(owner, minlength=parts)
    for empty in (counts == 0).nonzero().flatten().tolist():
        largest = int(counts.argmax())
        owner[int((owner == largest).nonzero()[0])] = empty
        counts[largest] -= 1
        counts[empty] = 1
    return owner


def _write(data: Data, owner: Tensor, parts: int, directory: Path, method: str) -> files.Summary:
    num_nodes = owner.numel()
    source, target = data.edge_index.long()
    order = torch.argsort(owner[target], stable=True)  # each part's edges keep the caller's order
    edges_of = order.split(torch.bincount(owner[target], minlength=parts).tolist())
    nodes_of = torch.argsort(owner, stable=True).split(torch.bincount(owner, minlength=parts).tolist())
    position = torch.empty(num_nodes, dtype=torch.int64)  # of each node within its part
    for nodes in nodes_of:
        position[nodes] = torch.arange(nodes.numel())
    name = files.new_name()
    files.begin(directory)
    for rank, (nodes, edges) in enumerate(zip(nodes_of, edges_of, strict=True)):
        tensors = {key: data[key][nodes] for key in files.OF_NODES if data.get(key) is not None}
        tensors |= {key: data[key][edges] for key in files.OF_EDGES if data.get(key) is not None}
        sources = source[edges]
        wiring = local_edges(
            sources, owner[sources], position[target[edges]], position[sources], nodes, num_nodes, rank, parts
        )
        files.write_part(directory, rank, name, tensors | wiring)
    summary = files.Summary(
        parts, method, num_nodes, source.numel(), _channels(data.get("x")), count_classes(data.get("y")), name
    )
    files.write_summary(directory, summary)
    return summary


def local_edges(
    source: Tensor,
    owner: Tensor,
    target: Tensor,
    source_position: Tensor,
    nodes: Tensor,
    num_nodes: int,
    rank: int,
    parts: int,
) -> dict[str, Tensor]:
    """The edges of a rank in its own numbers: its nodes are 0 … n − 1, and the halo follows, rank after rank.

    Args:
        source, owner, source_position: global number of each edge's source, its rank and its number there.
        target: the target's number on this rank.
        nodes: [n] global numbers of this rank's nodes.
    """
    remote = owner != rank
    # By rank first, and in each by number: what arrives from a rank then lies in one piece.
    key, halo_of_edge = (owner[remote] * num_nodes + source[remote]).unique(return_inverse=True)
    local = source_position.clone()
    local[remote] = nodes.numel() + halo_of_edge
    index = torch.int32 if nodes.numel() + key.numel() < 2**31 else torch.int64
    return {
        "nodes": nodes,
        "edge_index": torch.stack([local, target]).to(index),
        "halo": key % num_nodes,
        "need": torch.bincount(torch.div(key, num_nodes, rounding_mode="floor"), minlength=parts),
    }


def _channels(x: Tensor | None) -> int:
    return 0 if x is None else x.size(-1)


def count_classes(y: Tensor | None) -> int:
    """1 + the largest class number; 0 where y holds no class numbers."""
    return int(y.max()) + 1 if y is not None and y.numel() and not y.is_floating_point() else 0
