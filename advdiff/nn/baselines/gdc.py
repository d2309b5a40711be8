"""GDC: a graph convolution on the diffused graph."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from advdiff.checks import check_choice, check_nonnegative, check_tolerance, has_values
from advdiff.nn.baselines.columns import Columns
from advdiff.nn.baselines.diffusion import diffuse
from advdiff.nn.cache import new_memory, recall, velocity_of
from advdiff.operators import Generator
from advdiff.operators.graph import normalize_adjacency
from advdiff.operators.velocity import Velocity
from advdiff.propagation import resolvent

KERNELS = ("heat", "ppr")
#: Rows of the kernel that are made at once where small entries are dropped on the way.
ROWS = 4096
_remembered = new_memory()


class GDC(nn.Linear):
    r"""Graph diffusion convolution (Gasteiger et al., 2019): a GCN whose graph is a diffused and sparsified one.

    .. math::
        \mathbf Z' = \tilde{\mathbf S} \mathbf Z \mathbf W + \mathbf b, \qquad
        \mathbf S = \sum_{k=0}^\infty \theta_k \hat{\mathbf A}^k, \qquad
        \theta_k = e^{-t} \frac{t^k}{k!}\ (\text{heat}) \quad\text{or}\quad \alpha (1 - \alpha)^k\ (\text{PPR})

    with Â of :class:`~advdiff.nn.baselines.gcn.GCN`. S̃ keeps the ``neighbours`` largest entries of each row of S and
    divides them by their sum, as the ``GDC`` transform of PyTorch Geometric does. It is made once per graph; the
    last ones are remembered. Edge weights enter A.

    S̃ is exact. Its cost is as many sparse products as there are terms with a block of N × 64 numbers, for every 64
    nodes of the largest graph: 15 seconds at 9,500 nodes and 300,000 edges. At 169,343 nodes that is infeasible and
    refused. There, ``prune`` makes S̃ from powers of Â, of which entries below ``prune`` are dropped on the
    way; with 1e-3 minutes suffice. Walks that spread out are cut short by this: on Arxiv with t = 5 some 80 % of the
    neighbours are those of ``prune=1e-4``. ``sparsify=False`` is the other way: all of S, exactly, as a matrix
    exponential or a resolvent, on graphs of any size.

    Args:
        channels: width d.
        kernel: ``"heat"`` or ``"ppr"`` (personalised PageRank).
        t: time of the heat kernel.
        teleport: α of PPR, in (0, 1).
        neighbours: entries that are kept in a row.
        sparsify: keep only these.
        prune: drop entries of powers of Â below this; 0 drops none.
        tol: Σ θ_k of the terms that are left out, or the relative error of the whole S.
    """

    def __init__(
        self,
        channels: int,
        kernel: str = "heat",
        t: float = 5.0,
        teleport: float = 0.15,
        neighbours: int = 64,
        sparsify: bool = True,
        prune: float = 0.0,
        tol: float = 1e-6,
    ) -> None:
        super().__init__(channels, channels)
        check_choice("kernel", kernel, KERNELS)
        check_nonnegative("t", t)
        check_nonnegative("prune", prune)
        check_tolerance(tol)
        if not 0.0 < teleport < 1.0:
            raise ValueError(f"teleport is {teleport:g}; it must lie strictly between 0 and 1.")
        if neighbours < 1:
            raise ValueError(f"neighbours is {neighbours}; it must be at least 1.")
        self.kernel, self.t, self.teleport, self.tol = kernel, t, teleport, tol
        self.neighbours, self.sparsify, self.prune = neighbours, sparsify, prune

    def forward(  # type: ignore[override]
        self,
        z: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        adjacency = velocity_of(edge_index, z.size(0), edge_weight, "symmetric", self_loops="all")
        z = F.linear(z, self.weight)
        if self.sparsify:
            weights = self.weights()
            diffused = recall(
                _remembered,
                [edge_index, edge_weight, batch],
                (z.size(0), z.dtype, self.neighbours, self.prune, *weights),
                lambda *graph: sparsified(adjacency, weights, self.neighbours, self.prune, graph[2], z.dtype),
            )
            return diffused @ z + self.bias
        if self.kernel == "heat":
            return diffuse(adjacency, z, self.t, self.tol) + self.bias
        theta = self.teleport / (1.0 - self.teleport)  # α(I − (1 − α)Â)⁻¹ = θ(θI + I − Â)⁻¹
        return theta * resolvent(Generator(None, adjacency, beta=1.0), z, theta, tol=self.tol) + self.bias

    def weights(self) -> list[float]:
        """θ_0, θ_1, … until the rest adds up to ``tol``."""
        found = [math.exp(-self.t) if self.kernel == "heat" else self.teleport]
        left = 1.0 - found[0]
        while left > self.tol and found[-1] > 0.0:
            ratio = self.t / len(found) if self.kernel == "heat" else 1.0 - self.teleport
            found.append(found[-1] * ratio)
            left -= found[-1]
        return found

    def extra_repr(self) -> str:
        number = f"t={self.t:g}" if self.kernel == "heat" else f"teleport={self.teleport:g}"
        kept = f"neighbours={self.neighbours}" if self.sparsify else "sparsify=False"
        return f"{super().extra_repr()}, kernel={self.kernel!r}, {number}, {kept}"


def sparsified(
    adjacency: Velocity,
    weights: list[float],
    neighbours: int,
    prune: float = 0.0,
    batch: Tensor | None = None,
    dtype: torch.dtype | None = None,
) -> Velocity:
    """S̃: the largest entries of the rows of Σ_k θ_k Â^k, with row sums of 1. See :class:`GDC`."""
    if not has_values(adjacency.entries):
        return adjacency
    if prune > 0.0:
        row, column, value = _pruned(adjacency, weights, neighbours, prune)
    else:
        row, column, value = _exact(adjacency, weights, neighbours, batch, dtype or adjacency.dtype)
    kept = value > 0.0
    edge_index = torch.stack([column[kept], row[kept]])
    return normalize_adjacency(edge_index, adjacency.num_nodes, value[kept], "row")


def _exact(
    adjacency: Velocity, weights: list[float], neighbours: int, batch: Tensor | None, dtype: torch.dtype
) -> tuple[Tensor, Tensor, Tensor]:
    """The largest so far and the next block of columns, sorted together, block after block."""
    nodes, device = adjacency.num_nodes, adjacency.device
    columns = Columns(nodes, batch, device)
    columns.check_work(
        adjacency, len(weights), "the exact diffusion weights", "set prune=1e-3 to drop small ones, or sparsify=False"
    )
    value = torch.zeros(nodes, 0, dtype=dtype, device=device)
    place = torch.zeros(nodes, 0, dtype=torch.int64, device=device)
    for numbers, power in columns.blocks(dtype):
        total = weights[0] * power
        for weight in weights[1:]:
            power = adjacency.add_product_(torch.zeros_like(power), power)
            total.add_(power, alpha=weight)
        value, place = torch.cat([value, total], 1), torch.cat([place, numbers.expand(nodes, -1)], 1)
        value, best = value.topk(min(neighbours, value.size(1)), dim=1)
        place = place.gather(1, best)
    # A node beyond the end of a smaller graph has the weight 0 and is dropped by the caller.
    row = torch.arange(nodes, device=device)[:, None].expand_as(place).flatten()
    return row, columns.nodes(row, place.flatten()), value.flatten()


def _pruned(adjacency: Velocity, weights: list[float], neighbours: int, prune: float) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the powers as sparse matrices on the CPU, some thousands at a time."""
    nodes = adjacency.num_nodes
    source, target = adjacency.edge_index.cpu().numpy()
    A = scipy.sparse.csr_matrix((adjacency.entries.cpu().numpy().astype(np.float32), (target, source)), (nodes, nodes))
    identity = scipy.sparse.identity(nodes, dtype=np.float32, format="csr")
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    for first in range(0, nodes, ROWS):
        power = identity[first : first + ROWS]
        total = weights[0] * power
        for weight in weights[1:]:
            power = power @ A
            power.data[power.data < prune] = 0.0
            power.eliminate_zeros()
            total = total + weight * power
        found = total.tocoo()
        order = np.lexsort((found.col, -found.data, found.row))
        rank = np.arange(order.size) - np.repeat(total.indptr[:-1], np.diff(total.indptr))
        order = order[rank < neighbours]
        parts.append((found.row[order] + first, found.col[order], found.data[order]))
    row, column, value = (
        torch.from_numpy(np.concatenate(part) if parts else np.zeros(0)).to(adjacency.device)
        for part in zip(*parts, strict=True)
    )
    return row.long(), column.long(), value
