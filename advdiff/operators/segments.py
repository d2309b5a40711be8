"""Sums and products within each graph of a batch, without loops over graphs and without block matrices.

The rows of each graph are cut into tiles, padded with zeros; no tile crosses a graph. All tiles then go through
one batched matrix product. Graphs of similar size are one tile each; otherwise tiles are as long as the mean graph, so
that padding at most doubles the rows however skewed the sizes are. A single graph needs no tiles at all.

Where all pairs of a graph's nodes meet, each graph is padded to the largest one instead (:meth:`Segments.pad`).
"""

from __future__ import annotations

import torch
from torch import Tensor

from advdiff.checks import check_tensor, has_values, is_traced, must_look_at
from advdiff.operators.reductions import WHOLE, Reductions

#: Empty graphs that a batch may have however few its nodes are; each costs memory.
MANY = 1000


class Segments:
    """Which node belongs to which graph.

    Args:
        num_nodes: number N of nodes.
        batch: [N] graph number of each node (PyG's ``batch``, any order), or None for one graph.
        device: where the index tensors live when ``batch`` is None.
        num_graphs: how many graphs there are, if the last ones may be empty; by default the largest number + 1.
        reductions: how sums over the nodes of this process become sums over all nodes, where others hold the rest.

    Example:
        >>> import torch
        >>> segments = Segments(3, torch.tensor([0, 0, 1]), torch.device("cpu"))
        >>> segments.sum(torch.tensor([1.0, 2.0, 4.0]))
        tensor([3., 4.])
    """

    def __init__(
        self,
        num_nodes: int,
        batch: Tensor | None,
        device: torch.device,
        num_graphs: int | None = None,
        reductions: Reductions = WHOLE,
    ) -> None:
        self.num_nodes, self.batch, self.num_graphs, self.largest = num_nodes, batch, 1, num_nodes
        self.reductions = reductions
        if batch is not None and not reductions.is_whole:
            raise ValueError("a graph that is spread over processes is one graph; pass batch=None.")
        #: [N] where each node stands when every graph is padded to the largest one; None if there is one graph.
        self.slots: Tensor | None = None
        self._graph_of_tile: Tensor | None = None
        if batch is not None:
            self._check(batch, device)
            # On ``meta`` nothing can be counted: shapes are the same with one graph.
            if num_nodes and has_values(batch):
                lowest, highest = torch.stack(batch.aminmax()).tolist()
                if lowest < 0:
                    raise ValueError("batch holds negative graph numbers; number the graphs 0, 1, 2, ….")
                if highest >= 2 * num_nodes + MANY:
                    raise ValueError(
                        f"batch names graph {highest} among {num_nodes} nodes; number the graphs 0, 1, 2, …."
                    )
                self.num_graphs = highest + 1
        if num_graphs is not None:
            self._check_number(num_graphs)
            if batch is not None and batch.device.type != "meta":
                self.num_graphs = num_graphs
        elif batch is not None and torch.compiler.is_compiling():
            raise ValueError("recorded code cannot count the graphs of a batch; pass their number as batch_size.")
        if self.num_graphs == 1:
            self.counts = torch.full((1,), self.all_nodes, dtype=torch.int64, device=device)
        elif torch.compiler.is_compiling():  # sizes are unknown, so nothing can be cut or padded
            assert batch is not None
            self.counts = (
                torch.zeros_like(batch[:1]).expand(self.num_graphs).index_add(0, batch, torch.ones_like(batch))
            )
        else:
            self._cut_into_tiles()

    @property
    def all_nodes(self) -> int:
        """Number of nodes of the whole graph, be they here or in other processes."""
        return self.num_nodes if self.reductions.is_whole else self.reductions.count(self.num_nodes)

    def is_small(self, size: int) -> bool:
        """Is this one graph of at most ``size`` nodes, and all of it here?"""
        return self.num_graphs == 1 and self.num_nodes <= size and self.reductions.is_whole

    def _check(self, batch: Tensor, device: torch.device) -> None:
        check_tensor("batch", batch)
        if batch.shape != (self.num_nodes,) or batch.dtype not in (torch.int32, torch.int64):
            raise ValueError(
                f"batch has shape {tuple(batch.shape)} and dtype {batch.dtype}; it must hold one integer "
                f"graph number for each of the {self.num_nodes} nodes."
            )
        if batch.device != device:
            raise ValueError(f"batch lies on {batch.device} and the features on {device}; move both to one device.")

    def _check_number(self, num_graphs: int) -> None:
        if self.batch is None and num_graphs != 1:
            raise ValueError(
                f"{num_graphs} graphs were announced without a batch; pass batch [N], the graph number of each node."
            )
        if num_graphs < self.num_graphs and (self.num_nodes or num_graphs < 0):
            raise ValueError(
                f"{num_graphs} graphs were announced but batch numbers {self.num_graphs}; pass their number, which PyG "
                "calls num_graphs, or leave it out."
            )

    def to(self, device: torch.device) -> Segments:
        """The same on another device."""
        if device == self.counts.device:
            return self
        batch = None if self.batch is None else self.batch.to(device)
        return Segments(self.num_nodes, batch, device, self.num_graphs, self.reductions)

    def check_edges(self, edge_index: Tensor) -> None:
        """Graphs of a batch are propagated apart, so no edge may join two of them."""
        if self.batch is None or self.num_graphs == 1 or not must_look_at(edge_index):
            return
        source, target = self.batch[edge_index.long()]
        crossing = int((source != target).sum())
        if crossing:
            raise ValueError(
                f"{crossing} edges join nodes of different graphs of the batch; batch must give both ends of "
                "an edge the same graph number."
            )

    def _cut_into_tiles(self) -> None:
        assert self.batch is not None
        batch, device = self.batch, self.batch.device
        self.counts = torch.bincount(batch, minlength=self.num_graphs)
        self.largest, mean = int(self.counts.max()), max(1, -(-self.num_nodes // self.num_graphs))
        self._one_tile_each = self.largest <= 2 * mean
        self._tile_length = max(1, self.largest) if self._one_tile_each else mean
        tiles = torch.div(self.counts + self._tile_length - 1, self._tile_length, rounding_mode="floor").clamp_(min=1)
        self._graph_of_tile = torch.repeat_interleave(torch.arange(self.num_graphs, device=device), tiles)
        order = torch.argsort(batch, stable=True)
        first_node, first_tile = self.counts.cumsum(0) - self.counts, tiles.cumsum(0) - tiles
        self._position = torch.empty_like(order)  # of each node in its graph
        self._position[order] = torch.arange(self.num_nodes, device=device) - first_node[batch[order]]
        # Tiles of a graph follow each other, so a node's slot is its position from its graph's first tile on.
        slot = first_tile[batch] * self._tile_length + self._position
        self._tile_of_node = torch.div(slot, self._tile_length, rounding_mode="floor")
        self._row_of_node = slot - self._tile_of_node * self._tile_length
        self.slots = batch * self.largest + self._position

    def norms(self, *tensors: Tensor) -> list[float]:
        """Frobenius norms over all nodes, see ``Reductions.norms``."""
        return self.reductions.norms(*tensors)

    def per_node(self, per_graph: Tensor) -> Tensor:
        """[G, …] → [N, …]: each node reads its graph's row."""
        if self.batch is None or self.num_graphs == 1:
            return per_graph.expand(self.num_nodes, *per_graph.shape[1:])
        return per_graph[self.batch]

    def sum(self, X: Tensor) -> Tensor:
        """[N, …] → [G, …]: sum over the nodes of each graph."""
        if self.num_graphs == 1:
            return self._over_processes(X.sum(0, keepdim=True))
        assert self.batch is not None
        zeros = X.new_zeros(self.num_graphs, *X.shape[1:])
        return zeros.index_add(0, self.batch, X) if is_traced() else zeros.index_add_(0, self.batch, X)

    def _over_processes(self, partial: Tensor) -> Tensor:
        """A sum over the nodes at hand as one over all nodes."""
        return partial if self.reductions.is_whole else self.reductions.add(partial)

    def mean(self, X: Tensor) -> Tensor:
        """[N, …] → [G, …]: mean over the nodes of each graph, 0 where it has none."""
        if self.num_graphs == 1 and self.num_nodes and self.reductions.is_whole:
            return X.mean(0, keepdim=True)
        return self.sum(X) / self.counts.clamp(min=1).to(X.dtype).view(-1, *[1] * (X.dim() - 1))

    def centred(self, X: Tensor) -> Tensor:
        """X minus its mean over the nodes of each graph."""
        return X - self.per_node(self.mean(X))

    def pad(self, X: Tensor) -> Tensor:
        """[N, H, F] → [G, H, n, F]: the nodes of each graph, then zeros up to the size n of the largest one."""
        if self.slots is not None:
            zeros = X.new_zeros(self.num_graphs * self.largest, *X.shape[1:])
            X = zeros.index_copy(0, self.slots, X) if is_traced() else zeros.index_copy_(0, self.slots, X)
        return X.view(self.num_graphs, self.largest, *X.shape[1:]).transpose(1, 2)

    def unpad(self, X: Tensor) -> Tensor:
        """[G, H, n, F] → [N, H, F], the inverse of :meth:`pad`."""
        X = X.transpose(1, 2)
        return X.flatten(0, 1) if self.batch is None or self.slots is None else X[self.batch, self._position]

    @property
    def mask(self) -> Tensor | None:
        """[G, n], where :meth:`pad` puts a node; None if it does so everywhere."""
        if self.num_graphs * self.largest == self.num_nodes:
            return None
        return torch.arange(self.largest, device=self.counts.device) < self.counts[:, None]

    def _tiled(self, X: Tensor) -> Tensor:
        """[N, H, r] → [tiles, H, tile length, r]."""
        assert self._graph_of_tile is not None
        tiles = X.new_zeros(self._graph_of_tile.numel(), X.size(1), self._tile_length, X.size(2))
        if is_traced():  # vmap cannot write into a tensor that it does not know
            return tiles.transpose(1, 2).index_put((self._tile_of_node, self._row_of_node), X).transpose(1, 2)
        tiles[self._tile_of_node, :, self._row_of_node] = X
        return tiles

    def outer(self, A: Tensor, B: Tensor) -> Tensor:
        """Σ_{u in g} a_u b_uᵀ per graph and head: [N, H, r], [N, H or 1, F] → [G, H, r, F]."""
        heads, rank, width = A.size(1), A.size(2), B.size(2)
        if self.num_graphs > 1 and self._graph_of_tile is None:
            return self.sum(A.unsqueeze(3) * B.unsqueeze(2))
        if self.num_graphs > 1:
            products = self._tiled(A).transpose(2, 3) @ self._tiled(B)
            if self._one_tile_each:
                return products
            assert self._graph_of_tile is not None
            sums = products.new_zeros(self.num_graphs, heads, rank, width)
            return sums.index_add_(0, self._graph_of_tile, products)
        if B.size(1) == 1 and heads > 1:  # shared by the heads: one larger product
            return self._over_processes(A.reshape(-1, heads * rank).T @ B[:, 0]).view(1, heads, rank, width)
        return self._over_processes(torch.bmm(A.permute(1, 2, 0), B.permute(1, 0, 2))).unsqueeze(0)

    def add_apply_(self, out: Tensor, A: Tensor, S: Tensor, scale: float = 1.0, keep: float = 1.0) -> Tensor:
        """out_u ← keep · out_u + scale · a_uᵀ S_{g(u)} in place: [N, H, F] += [N, H, r] · [G, H, r, F]."""
        if self.num_graphs == 1:
            view = out.permute(1, 0, 2)
            torch.baddbmm(view, A.permute(1, 0, 2), S[0], beta=keep, alpha=scale, out=view)
            return out
        products = self._tiled(A) @ (S if self._one_tile_each else S.contiguous()[self._graph_of_tile])
        rows = products[self._tile_of_node, :, self._row_of_node]
        if keep == 0.0:  # ``out`` may be uninitialised, and 0 · NaN is NaN
            return torch.mul(rows, scale, out=out)
        return out.mul_(keep).add_(rows, alpha=scale)

    def product(self, A: Tensor, S: Tensor) -> Tensor:
        """:meth:`apply` in operations that torch can differentiate, record and transform."""
        if self.num_graphs == 1:
            return (A.transpose(0, 1) @ S[0]).transpose(0, 1)
        if self._graph_of_tile is None:
            return (A.unsqueeze(2) @ S[self.batch]).squeeze(2)
        products = self._tiled(A) @ (S if self._one_tile_each else S[self._graph_of_tile])
        return products[self._tile_of_node, :, self._row_of_node]

    @staticmethod
    def padded(width: int) -> int:
        """Rows of d + 1 numbers are padded to whole vector registers: products into them run twice as fast."""
        return -(-width // 8) * 8 if width > 8 else width

    def apply(self, A: Tensor, S: Tensor) -> Tensor:
        """a_uᵀ S_{g(u)} for every node and head."""
        width = S.size(3)
        out = A.new_empty(A.size(0), A.size(1), self.padded(width))[..., :width]
        return self.add_apply_(out, A, S, keep=0.0)
