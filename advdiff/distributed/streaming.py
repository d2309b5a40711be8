"""``partition_stream``: divide a graph whose edges do not fit into memory.

The graph is a folder of NumPy files under PyG's names: ``edge_index.npy`` [2, E], and ``x.npy``, ``y.npy``,
``train_mask.npy``, ``val_mask.npy``, ``test_mask.npy``, ``edge_weight.npy`` and ``edge_attr.npy`` where there are such.
They are mapped, not read. Each rank gets a run of node numbers. The edges are read once, in pieces, and put into one
pile for each rank; then one pile is looked at after the other, so that memory holds the edges of one rank at a time.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from advdiff.checks import check_edge_index
from advdiff.distributed import files
from advdiff.distributed.partitioning import boundaries, check_parts, local_edges

#: Edges that are in memory at once on the way to their piles.
PIECE = 1 << 22


def partition_stream(
    folder: str | os.PathLike[str],
    parts: int,
    directory: str | os.PathLike[str],
    num_nodes: int | None = None,
    piece: int = PIECE,
) -> files.Summary:
    """``partition`` with ``method="range"``, without ever holding the graph.

    Args:
        folder: with ``edge_index.npy`` and what else there is, see above.
        parts: number P of ranks.
        directory: where the files go, one per rank.
        num_nodes: N; by default the number of rows of ``x.npy`` or ``y.npy``.
        piece: how many edges are in memory at once while they are sorted into piles.
    """
    folder, directory = Path(folder), Path(directory)
    given = {name: _mapped(folder / f"{name}.npy") for name in ("edge_index", *files.OF_NODES, *files.OF_EDGES)}
    edges = given.pop("edge_index")
    if edges is None or edges.ndim != 2 or edges.shape[0] != 2:
        raise ValueError(f"{folder} holds no edge_index.npy of shape [2, number of edges]; write one with numpy.save.")
    rows = [array.shape[0] for name, array in given.items() if array is not None and name in files.OF_NODES]
    num_nodes = num_nodes if num_nodes is not None else (rows[0] if rows else 0)
    if any(count != num_nodes for count in rows):
        raise ValueError(f"the arrays in {folder} have {sorted(set(rows))} rows for {num_nodes} nodes; pass one each.")
    for name in files.OF_EDGES:
        array = given[name]
        if array is not None and array.shape[0] != edges.shape[1]:
            raise ValueError(f"{name}.npy has {array.shape[0]} rows for {edges.shape[1]} edges; pass one per edge.")
    check_parts(parts, num_nodes)
    starts = boundaries(num_nodes, parts)
    name = files.new_name()
    files.begin(directory)
    classes = 0
    with tempfile.TemporaryDirectory(dir=directory, prefix=".piles-") as piles:
        _fill(Path(piles), edges, num_nodes, starts, piece)
        for rank in range(parts):
            tensors = _part(Path(piles), rank, edges, given, starts, num_nodes)
            y = tensors.get("y")
            if y is not None and not y.is_floating_point() and y.numel():
                classes = max(classes, int(y.max()) + 1)
            files.write_part(directory, rank, name, tensors)
    x = given["x"]
    channels = 0 if x is None else int(x.shape[-1])
    summary = files.Summary(parts, "range", num_nodes, int(edges.shape[1]), channels, classes, name)
    files.write_summary(directory, summary)
    return summary


def _mapped(path: Path) -> np.ndarray | None:
    try:
        return np.load(path, mmap_mode="r")
    except FileNotFoundError:
        return None
    except (ValueError, EOFError):
        raise ValueError(f"{path} is not a NumPy file; write it with numpy.save.") from None


def _fill(piles: Path, edges: np.ndarray, num_nodes: int, starts: Tensor, piece: int) -> None:
    """The numbers of the edges that arrive at each rank, in their order, one pile of int64 a rank."""
    parts = starts.numel() - 1
    opened = [(piles / str(rank)).open("wb") for rank in range(parts)]
    try:
        for begin in range(0, edges.shape[1], piece):
            chunk = torch.from_numpy(np.array(edges[:, begin : begin + piece], dtype=np.int64))
            check_edge_index(chunk, num_nodes)
            owner = torch.searchsorted(starts, chunk[1], right=True) - 1
            order = torch.argsort(owner, stable=True)
            counts = torch.bincount(owner, minlength=parts).tolist()
            for file, numbers in zip(opened, order.split(counts), strict=True):
                (numbers + begin).numpy().tofile(file)
    finally:
        for file in opened:
            file.close()


def _part(
    piles: Path, rank: int, edges: np.ndarray, given: dict[str, np.ndarray | None], starts: Tensor, num_nodes: int
) -> dict[str, Tensor]:
    numbers = np.fromfile(piles / str(rank), dtype=np.int64)
    source, target = torch.from_numpy(np.array(edges[:, numbers], dtype=np.int64))
    first, last = int(starts[rank]), int(starts[rank + 1])
    owner = torch.searchsorted(starts, source, right=True) - 1
    tensors = {}
    for name, array in given.items():
        if array is not None:
            tensors[name] = torch.from_numpy(np.array(array[first:last] if name in files.OF_NODES else array[numbers]))
    wiring = local_edges(
        source,
        owner,
        target - first,
        source - starts[owner],
        torch.arange(first, last),
        num_nodes,
        rank,
        starts.numel() - 1,
    )
    return tensors | wiring
