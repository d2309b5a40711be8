"""What a graph looks like: degrees, clustering, and the density of the spectrum of Ã, for graphs of any size.

Two environments of a data set rarely share their nodes, so ‖ΔÃ‖₂ between them is not defined. These can be compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from advdiff.checks import check_edge_index, expects
from advdiff.operators.graph import normalize_adjacency


@dataclass(frozen=True)
class Summary:
    """Numbers about an undirected graph.

    Attributes:
        nodes, edges: an edge counts once, self-loops not.
        mean_degree, max_degree: of all nodes.
        isolated: share of nodes without an edge.
        clustering: transitivity, 3 × triangles / paths of length two: the chance that two neighbours are joined.

    Example:
        >>> import torch
        >>> from advdiff.theory.graph_statistics import summary
        >>> summary(torch.tensor([[0, 1, 2], [1, 2, 0]]), 3).clustering  # a triangle
        1.0
    """

    nodes: int
    edges: int
    mean_degree: float
    max_degree: int
    isolated: float
    clustering: float


@expects
def summary(edge_index: Tensor, num_nodes: int) -> Summary:
    """Describe a graph, or all graphs of a batch together; each edge may be given in one direction or in both.

    Example:
        >>> import torch
        >>> summary(torch.tensor([[0, 1, 2, 2], [1, 2, 0, 3]]), 5)
        Summary(nodes=5, edges=4, mean_degree=1.6, max_degree=3, isolated=0.2, clustering=0.6)
    """
    check_edge_index(edge_index, num_nodes)
    source, target = edge_index.cpu().numpy()
    apart = source != target
    ends = np.sort(np.stack([source[apart], target[apart]]), axis=0)
    first, second = np.unique(ends, axis=1)
    degree = np.bincount(first, minlength=num_nodes) + np.bincount(second, minlength=num_nodes)
    # Edges from lower to higher degree: no node then has many out-edges, and counting triangles is cheap at hubs, too.
    swap = (degree[first] > degree[second]) | ((degree[first] == degree[second]) & (first > second))
    low, high = np.where(swap, second, first), np.where(swap, first, second)
    upward = sp.csr_array((np.ones(len(low)), (low, high)), shape=(num_nodes, num_nodes))
    triangles = float((upward @ upward).multiply(upward).sum()) if len(low) else 0.0
    paths = float((degree * (degree - 1) / 2).sum())
    return Summary(
        nodes=num_nodes,
        edges=len(low),
        mean_degree=float(degree.mean()) if num_nodes else 0.0,
        max_degree=int(degree.max(initial=0)),
        isolated=float((degree == 0).mean()) if num_nodes else 0.0,
        clustering=3 * triangles / paths if paths else 0.0,
    )


@expects
def degrees(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The in-degree of every node, [N].

    Example:
        >>> import torch
        >>> degrees(torch.tensor([[0, 1, 2], [1, 2, 1]]), 3)
        tensor([0, 2, 1])
    """
    check_edge_index(edge_index, num_nodes)
    return torch.bincount(edge_index[1], minlength=num_nodes)


@expects
def spectral_density(
    edge_index: Tensor, num_nodes: int, points: Tensor, *, moments: int = 64, probes: int = 8, seed: int = 0
) -> Tensor:
    r"""The density of the eigenvalues of Ã = D^{-½} A D^{-½} at points inside (−1, 1), by the kernel polynomial method.

    .. math::
        \rho(\lambda) = \frac{1}{\pi\sqrt{1-\lambda^2}}
        \Bigl(g_0 \mu_0 + 2 \sum_{k \geq 1} g_k \mu_k T_k(\lambda)\Bigr),
        \qquad \mu_k = \tfrac 1N \operatorname{tr} T_k(\tilde{\mathbf A}),

    with Jackson's factors g_k, and the traces estimated from ``probes`` random vectors of signs: ``moments`` sparse
    products in all, no matrix of N×N. Peaks are as wide as about π/moments; the density integrates to one.

    Example:
        >>> points = torch.linspace(-0.999, 0.999, 2001)
        >>> pairs = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])  # two edges: eigenvalues −1, −1, 1, 1
        >>> density = spectral_density(pairs, 4, points, moments=32)
        >>> bool(density[:50].mean() > 5) and bool(density[1000] < 0.2)
        True
    """
    if num_nodes == 0:
        raise ValueError("the graph has no nodes, so there is no spectrum.")
    V = normalize_adjacency(edge_index, num_nodes)
    draw = torch.Generator().manual_seed(seed)
    signs = (torch.randint(0, 2, (num_nodes, probes), generator=draw) * 2 - 1).to(V.dtype)
    before, now = signs, V @ signs
    traces = [signs.square().mean(), (signs * now).mean()]
    for _ in range(2, moments):
        before, now = now, 2 * (V @ now) - before
        traces.append((signs * now).mean())
    k = torch.arange(moments, dtype=points.dtype)
    angle = torch.pi / (moments + 1)
    jackson = ((moments - k + 1) * torch.cos(k * angle) + torch.sin(k * angle) / np.tan(angle)) / (moments + 1)
    weight = jackson * torch.stack(traces).to(points.dtype)
    chebyshev = torch.cos(k[:, None] * torch.arccos(points)[None, :])
    total = weight[0] + 2 * (weight[1:, None] * chebyshev[1:]).sum(0)
    return total / (torch.pi * torch.sqrt(1 - points.square()))
