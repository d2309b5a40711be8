"""From edges to matrices: the normalised adjacency, and the graph's gradient and divergence.

Edges follow PyG's convention: ``edge_index`` [2, E] with rows source and target.
"""

from __future__ import annotations

import torch
from torch import Tensor

from advdiff.checks import (
    check_choice,
    check_edge_index,
    check_edge_weight,
    check_finite,
    check_floating,
    expects,
    has_values,
)
from advdiff.operators.velocity import Velocity

NORMALIZATIONS = ("symmetric", "row")
SELF_LOOPS = ("none", "isolated", "all")


def _degree(node: Tensor, weight: Tensor, num_nodes: int) -> Tensor:
    return weight.new_zeros(num_nodes).index_add_(0, node, weight)


def _power_or_zero(degree: Tensor, exponent: float) -> Tensor:
    """d^exponent, and 0 where d = 0: an isolated node keeps a zero row and column."""
    positive = degree > 0
    return torch.where(positive, torch.where(positive, degree, 1.0).pow(exponent), 0.0)


def _over(weight: Tensor, degree: Tensor, node: Tensor) -> Tensor:
    """weight / degree, which a tiny degree has, too, while its reciprocal overflows; 0 where d = 0."""
    return weight / torch.where(degree > 0, degree, 1.0)[node]


@expects
def normalize_adjacency(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None = None,
    kind: str = "symmetric",
    *,
    self_loops: str = "none",
    dtype: torch.dtype | None = None,
) -> Velocity:
    r"""The velocity V of a graph: its normalised adjacency matrix.

    .. math::
        \mathbf V = \mathbf D_{in}^{-1/2} \mathbf A \mathbf D_{out}^{-1/2} \quad\text{(symmetric)}, \qquad
        \mathbf V = \mathbf D_{in}^{-1} \mathbf A \quad\text{(row)}

    with A[target, source] the weight of the edge source → target. Duplicate edges add up. For an undirected
    graph (both directions listed) the symmetric kind is the paper's D^{-1/2} A D^{-1/2}; for a directed one the
    two-sided degrees keep ‖V‖₂ ≤ 1. V, and whatever is computed with it, is differentiable in the weights, through the
    degrees, too; the gradient of a weight of 0 whose row or column of A is zero is 0.

    Args:
        edge_index: [2, E], source and target of each edge.
        num_nodes: number N of nodes.
        edge_weight: [E], not negative; default: ones.
        kind: ``"symmetric"`` or ``"row"``.
        self_loops: ``"none"`` (the paper: an isolated node has a zero row and column), ``"isolated"`` (give v_uu = 1
            to nodes without any edge, so that they keep their value), or ``"all"`` (A + I, as in GCN).
        dtype: of V; default: that of ``edge_weight``, else torch's default.

    Example:
        >>> import torch, advdiff
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> advdiff.normalize_adjacency(path, 3, kind="row").to_dense()
        tensor([[0.0000, 1.0000, 0.0000],
                [0.5000, 0.0000, 0.5000],
                [0.0000, 1.0000, 0.0000]])
    """
    check_choice("kind of normalisation", kind, NORMALIZATIONS)
    check_choice("self_loops", self_loops, SELF_LOOPS)
    num_nodes = num_nodes if torch.compiler.is_compiling() else int(num_nodes)  # recorded code may leave it open
    check_edge_index(edge_index, num_nodes)
    # Entries are computed in float64 whatever the precision of the products (mps has none).
    exact = torch.float32 if edge_index.device.type == "mps" else torch.float64
    if edge_weight is None:
        dtype = dtype or torch.get_default_dtype()
        weight = torch.ones(edge_index.size(1), dtype=exact, device=edge_index.device)
    else:
        check_edge_weight(edge_weight, edge_index.size(1))
        if edge_weight.device != edge_index.device:
            raise ValueError(
                f"edge_weight lies on {edge_weight.device} and edge_index on {edge_index.device}; "
                "move both to one device."
            )
        dtype = dtype or edge_weight.dtype
        weight = edge_weight.to(exact)
    if self_loops != "none":
        edge_index, weight = _with_self_loops(edge_index, weight, num_nodes, self_loops)
    source, target = edge_index
    in_degree = _degree(target, weight, num_nodes)
    out_degree = in_degree if kind == "row" else _degree(source, weight, num_nodes)
    value = normalized(edge_index, weight, in_degree, out_degree, kind)
    skew = _degree_skew(in_degree) if kind == "row" else 1.0
    # V keeps the edges: its own ones, which do not change with the caller's.
    return Velocity.build(edge_index.clone(), value, weight, num_nodes, kind, dtype, skew)


def normalized(edge_index: Tensor, weight: Tensor, in_degree: Tensor, out_degree: Tensor, kind: str) -> Tensor:
    """The entry of V that each edge makes, from the degrees of targets and of sources (which "row" does not read)."""
    source, target = edge_index
    if kind == "row":
        return _over(weight, in_degree, target)
    # One factor after the other: the product of both overflows where the weights are tiny.
    return weight * _power_or_zero(in_degree, -0.5)[target] * _power_or_zero(out_degree, -0.5)[source]


def _with_self_loops(edge_index: Tensor, weight: Tensor, num_nodes: int, which: str) -> tuple[Tensor, Tensor]:
    nodes = torch.arange(num_nodes, dtype=edge_index.dtype, device=edge_index.device)
    loop_weight = weight.new_ones(num_nodes)
    if which == "isolated":
        # A loop of weight 0 elsewhere keeps the number of edges independent of the values.
        busy = (_degree(edge_index[0], weight, num_nodes) > 0) | (_degree(edge_index[1], weight, num_nodes) > 0)
        loop_weight = loop_weight.masked_fill(busy, 0.0)
        if has_values(weight):
            nodes, loop_weight = nodes[~busy], loop_weight[~busy]
    return torch.cat([edge_index, nodes.expand(2, -1)], dim=1), torch.cat([weight, loop_weight])


def _degree_skew(degree: Tensor) -> float:
    """√(d_max/d_min) over the nodes with an edge: D^{1/2} makes D^{-1}A symmetric at that cost."""
    if not has_values(degree) or not bool((degree > 0).any()):
        return 1.0
    degree = degree.detach()
    busy = degree[degree > 0]
    return float(busy.max().sqrt() / busy.min().sqrt())


@expects
def gradient(Z: Tensor, edge_index: Tensor) -> Tensor:
    r"""The graph gradient on edges, :math:`(\nabla \mathbf Z)_{uv} = \mathbf z_v - \mathbf z_u`.

    The edge v → u (source v, target u) carries what u sees when it looks at v.

    Example:
        >>> import torch, advdiff
        >>> advdiff.gradient(torch.tensor([1.0, 4.0]), torch.tensor([[0, 1], [1, 0]]))
        tensor([-3.,  3.])
    """
    check_floating("Z", Z)
    check_finite("Z", Z)
    check_edge_index(edge_index, len(Z) if Z.dim() else 0)
    source, target = edge_index
    return Z[source] - Z[target]


@expects
def divergence(E: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
    r"""The paper's graph divergence of edge features, :math:`(\nabla^* \mathbf E)_u = \sum_v \mathbf e_{uv}`.

    Sums over the edges v → u that arrive at u. Over ordered pairs the adjoint of :func:`gradient` would be
    Σ_v (e_vu − e_uv); for antisymmetric E that is −2 times this sum.

    Example:
        >>> import torch, advdiff
        >>> advdiff.divergence(torch.tensor([-3.0, 3.0]), torch.tensor([[0, 1], [1, 0]]), num_nodes=2)
        tensor([ 3., -3.])
    """
    check_floating("E", E)
    check_finite("E", E)
    check_edge_index(edge_index, num_nodes)
    if E.dim() == 0 or E.size(0) != edge_index.size(1):
        rows = E.size(0) if E.dim() else 0
        raise ValueError(f"E has {rows} rows but there are {edge_index.size(1)} edges; pass one row per edge.")
    return E.new_zeros(num_nodes, *E.shape[1:]).index_add_(0, edge_index[1], E)
