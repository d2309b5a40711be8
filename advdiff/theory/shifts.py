r"""Topological shifts: how far apart two environments, and two graphs drawn from them, are. Chapter 4.

The environments themselves and the sampling of graphs (:mod:`advdiff.datasets.causal.block_model`) can be had
from here too.
"""

from __future__ import annotations

import math

import scipy.sparse
import torch
from torch import Tensor

from advdiff.checks import check_choice, check_edge_index, expects, has_values
from advdiff.datasets.causal.block_model import (
    NUM_GRAPHS,
    SHIFTS,
    Environment,
    Randomness,
    environments,
    expected_edges,
    sample_graph,
)
from advdiff.operators.velocity import Velocity
from advdiff.theory.norms import NORMS, spectral_norm

__all__ = [
    "NUM_GRAPHS",
    "SHIFTS",
    "Environment",
    "Randomness",
    "adjacency_shift",
    "environments",
    "expected_edges",
    "population_shift",
    "predicted_shift",
    "sample_graph",
    "sampling_noise",
    "shift_size",
]


@expects
def shift_size(V: Velocity, other: Velocity, norm: str = "spectral", *, tol: float = 1e-8) -> float:
    r"""The size of a shift: ‖V' − V‖₂, for the symmetric normalisation the paper's x = ‖ΔÃ‖₂; at most 2 there.

    The spectral norm is the square root of the largest eigenvalue of ΔVᵀΔV, found by Lanczos iteration (ARPACK, fixed
    start) with sparse products on the CPU in float64: O(edges) memory. ``"infinity"`` is the largest row sum of \|ΔV\|.

    Args:
        V, other: of the same number of nodes and kind of normalisation.
        norm: ``"spectral"`` or ``"infinity"``.
        tol: relative accuracy of the eigenvalue.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.theory import shifts
        >>> pairs = [[[0, 1, 2, 3], [1, 0, 3, 2]], [[0, 2, 1, 3], [2, 0, 3, 1]]]  # two couples, who then swap partners
        >>> before, after = (advdiff.normalize_adjacency(torch.tensor(edges), 4) for edges in pairs)
        >>> round(shifts.shift_size(before, after), 6)  # the largest there is
        2.0
    """
    check_choice("norm", norm, NORMS)
    if V.num_nodes != other.num_nodes:
        raise ValueError(f"the graphs have {V.num_nodes} and {other.num_nodes} nodes; a shift needs the same nodes.")
    if V.kind != other.kind:
        raise ValueError(f"one velocity is {V.kind!r} and the other {other.kind!r}; normalise both alike.")
    difference = _sparse(other.edge_index, other.entries, V.num_nodes) - _sparse(V.edge_index, V.entries, V.num_nodes)
    if norm == "infinity":
        return float(abs(difference).sum(axis=1).max()) if V.num_nodes else 0.0
    return _spectral_norm(difference, tol)


@expects
def adjacency_shift(edge_index: Tensor, other: Tensor, num_nodes: int, *, tol: float = 1e-8) -> float:
    """‖A' − A‖₂ of the adjacency matrices themselves, computed like :func:`shift_size`.

    Example:
        >>> import torch
        >>> from advdiff.theory import shifts
        >>> round(shifts.adjacency_shift(torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 2], [2, 0]]), 3), 4)
        1.4142
    """
    matrices = []
    for edges in (other, edge_index):
        check_edge_index(edges, num_nodes)
        matrices.append(_sparse(edges, torch.ones(edges.size(1), dtype=torch.float64), num_nodes))
    return _spectral_norm(matrices[0] - matrices[1], tol)


def _sparse(edge_index: Tensor, value: Tensor, num_nodes: int) -> scipy.sparse.csr_matrix:
    if not has_values(value):
        raise ValueError("the graph lies on the meta device and has no values; move it to a real one.")
    source, target = edge_index.cpu().numpy()
    entries = value.detach().cpu().double().numpy()
    return scipy.sparse.csr_matrix((entries, (target, source)), shape=(num_nodes, num_nodes))


def _spectral_norm(matrix: scipy.sparse.csr_matrix, tol: float) -> float:
    transposed = matrix.T.tocsr()
    return spectral_norm(lambda y: matrix @ y, lambda y: transposed @ y, matrix.shape[0], tol=tol)


def _kernels(first: Environment, second: Environment) -> tuple[Tensor, Tensor]:
    """Both graphons on the common refinement of their blocks, where they are constant."""
    cells = math.lcm(first.blocks, second.blocks)
    middle = (torch.arange(cells, dtype=torch.float64) + 0.5) / cells
    return first.graphon(middle[:, None], middle), second.graphon(middle[:, None], middle)


def _check_edges(*chosen: Environment) -> None:
    for environment in chosen:
        if environment.edge_probability == 0.0:
            raise ValueError(f"{environment} has no edges; give it a positive edge probability.")


@expects
def population_shift(first: Environment, second: Environment) -> float:
    r"""The shift of the environments themselves, to which x tends for N → ∞, whatever the dice.

    .. math::
        x_\infty = \Bigl\lVert \frac{W'}{q'} - \frac{W}{q} \Bigr\rVert_2

    as integral operators on [0, 1], with the edge probabilities q, q'. Graphons that differ by a factor have none.

    Example:
        >>> from advdiff.theory import shifts
        >>> first, *_, last = shifts.environments("homophily")
        >>> round(shifts.population_shift(first, last), 3)
        0.506
    """
    _check_edges(first, second)
    W, W2 = _kernels(first, second)
    kernel = W2 / second.edge_probability - W / first.edge_probability
    return float(torch.linalg.eigvalsh(kernel).abs().max()) / len(kernel)


@expects
def sampling_noise(first: Environment, second: Environment, num_nodes: int, *, common: bool) -> float:
    r"""σ, the standard deviation that the dice give to a row of ΔÃ; 2σ is the shift where the environments are equal.

    .. math::
        \sigma^2 = \frac1N \int\!\!\int
        \frac{W - J}{q^2} + \frac{W' - J}{q'^2} + J\Bigl(\frac1{q'} - \frac1q\Bigr)^2
        - \Bigl(\frac{W'}{q'} - \frac Wq\Bigr)^2 ,

    the mean variance of a'_uv/q' − a_uv/q, where J is the probability that both graphs have the edge: min(W, W') with
    common random numbers, W W' with independent ones.

    Example:
        >>> from advdiff.theory import shifts
        >>> first, *_ = shifts.environments("none")
        >>> [round(shifts.sampling_noise(first, first, 1000, common=common), 3) for common in (False, True)]
        [0.257, 0.0]
    """
    _check_edges(first, second)
    W, W2 = _kernels(first, second)
    q, q2 = first.edge_probability, second.edge_probability
    both = torch.minimum(W, W2) if common else W * W2
    square = (W - both) / q**2 + (W2 - both) / q2**2 + both * (1 / q2 - 1 / q) ** 2
    variance = square - (W2 / q2 - W / q) ** 2
    return math.sqrt(max(float(variance.mean()), 0.0) / num_nodes)


@expects
def predicted_shift(first: Environment, second: Environment, num_nodes: int, *, common: bool) -> float:
    r"""What x = ‖ΔÃ‖₂ will be, from signal x_∞ and noise σ by the law of spiked random matrices.

    .. math::
        x \approx x_\infty + \sigma^2 / x_\infty \text{ if } x_\infty > \sigma, \quad\text{else } 2\sigma .

    Asymptotic, and σ is averaged over the rows; within a few per cent at the paper's settings (chapter 4).

    Example:
        >>> from advdiff.theory import shifts
        >>> first, *_, last = shifts.environments("homophily")
        >>> round(shifts.predicted_shift(first, last, 1000, common=False), 2)
        0.6
    """
    signal = population_shift(first, second)
    noise = sampling_noise(first, second, num_nodes, common=common)
    return signal + noise**2 / signal if signal > noise else 2 * noise
