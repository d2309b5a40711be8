r"""Topological shifts: the causal model of the paper's Section 3.1, and the size x = ‖ΔÃ‖₂ of a shift.

Node u has a latent U_u, uniform on [0, 1). Given the environment E, an edge joins u and v with the probability
W(U_u, U_v; E), where the graphon W is a stochastic block model: p₁ within each of b equal intervals, p₂ between them.
What nature throws (:class:`Randomness`) is kept apart from the environment, so that two graphs can share it: **common
random numbers**. Chapter 4 derives the formulas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy.sparse
import torch
from torch import Tensor

from advdiff.checks import check_choice, check_edge_index, has_values
from advdiff.theory.norms import NORMS, spectral_norm
from advdiff.velocity import Velocity

SHIFTS = ("homophily", "density", "block")
NUM_GRAPHS = 12


@dataclass(frozen=True)
class Environment:
    r"""A stochastic block model :math:`W(s, t) = p_1` if ⌊bs⌋ = ⌊bt⌋, else :math:`p_2`.

    Attributes:
        p_within: p₁, probability of an edge within a block.
        p_between: p₂, probability of an edge between two blocks.
        blocks: b, the number of blocks: block k holds the latents in [k/b, (k+1)/b).
    """

    p_within: float
    p_between: float
    blocks: int

    def __post_init__(self) -> None:
        for name in ("p_within", "p_between"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise ValueError(f"{name} is {getattr(self, name):g}; a probability lies between 0 and 1.")
        if not isinstance(self.blocks, int) or self.blocks < 1:
            raise ValueError(f"blocks is {self.blocks!r}; it must be a whole number of at least 1.")

    def block(self, latent: Tensor) -> Tensor:
        """The block ⌊b U_u⌋ of each latent."""
        return (latent * self.blocks).long().clamp(max=self.blocks - 1)

    def graphon(self, s: Tensor, t: Tensor) -> Tensor:
        """W(s, t), the probability of an edge between nodes with latents s and t (shapes broadcast)."""
        same = self.block(s) == self.block(t)
        return torch.where(same, s.new_tensor(self.p_within), s.new_tensor(self.p_between))

    @property
    def edge_probability(self) -> float:
        """q = p₁/b + p₂(1 − 1/b), the probability that two nodes are joined; (N − 1)q is the mean degree d̄."""
        return self.p_within / self.blocks + self.p_between * (1 - 1 / self.blocks)

    @property
    def homophily(self) -> float:
        """(p₁/b)/q, the expected share of edges that stay within a block (NaN if there are no edges)."""
        q = self.edge_probability
        return self.p_within / self.blocks / q if q else math.nan


def environments(shift: str) -> tuple[Environment, ...]:
    """The paper's twelve environments of a shift, graph #1 (training) first (Appendix E.1.1).

    With s = (i − 1)/12 for graph #i: ``homophily`` p₂ = 0.01 + 0.05 s; ``density`` p₁ = 0.1 + 0.1 s and
    p₂ = 0.01 + 0.1 s; ``block`` b = 5 + (i − 1). All start from p₁ = 0.1, p₂ = 0.01, b = 5.
    """
    check_choice("shift", shift, SHIFTS)
    if shift == "block":
        return tuple(Environment(0.1, 0.01, 5 + k) for k in range(NUM_GRAPHS))
    within, between = {"homophily": (0.0, 0.05), "density": (0.1, 0.1)}[shift]
    steps = [k / NUM_GRAPHS for k in range(NUM_GRAPHS)]
    return tuple(Environment(0.1 + within * s, 0.01 + between * s, 5) for s in steps)


@dataclass(frozen=True, eq=False)
class Randomness:
    """All that is random in a graph: a latent per node and a uniform number per pair of nodes.

    A pair u < v is an edge if its uniform lies below W(U_u, U_v). Graphs made from one ``Randomness`` in two
    environments differ only where the environments differ; independent graphs come from two of them.

    Attributes:
        latent: [N], uniform on [0, 1), float64.
        pairs: [2, M] the pairs u < v whose uniform lies below ``ceiling``; the others can never become an edge.
        uniform: [M], the uniform number of each of these pairs.
        ceiling: the largest edge probability that can be asked for.
    """

    latent: Tensor
    pairs: Tensor
    uniform: Tensor
    ceiling: float

    @classmethod
    def draw(
        cls,
        num_nodes: int,
        generator: torch.Generator | None = None,
        *,
        latent: Tensor | None = None,
        ceiling: float = 1.0,
    ) -> Randomness:
        """Throw the dice for N nodes. Memory and time grow like ``ceiling`` · N²/2.

        Args:
            num_nodes: N.
            generator: torch's, on the CPU; default: the global one.
            latent: [N], to keep the nodes of another draw and throw only the edges anew.
            ceiling: pairs with a uniform above it are skipped without being drawn; for many nodes, set it to the
                largest probability that is needed.
        """
        if num_nodes < 0:
            raise ValueError(f"num_nodes is {num_nodes}; it must not be negative.")
        if not 0.0 < ceiling <= 1.0:
            raise ValueError(f"ceiling is {ceiling:g}; it must lie in (0, 1]: the largest edge probability needed.")
        if latent is None:
            latent = torch.rand(num_nodes, dtype=torch.float64, generator=generator)
        elif latent.shape != (num_nodes,) or (num_nodes and not 0.0 <= float(latent.min()) <= float(latent.max()) < 1):
            raise ValueError(f"latent must hold one number in [0, 1) for each of the {num_nodes} nodes.")
        number = _successes(num_nodes * (num_nodes - 1) // 2, ceiling, generator)
        uniform = ceiling * torch.rand(number.numel(), dtype=torch.float64, generator=generator)
        return cls(latent.double(), _pair(number), uniform, ceiling)

    @property
    def num_nodes(self) -> int:
        return self.latent.numel()


def _successes(trials: int, probability: float, generator: torch.Generator | None) -> Tensor:
    """Numbers of the successful ones among independent trials; the gaps between them are geometric."""
    if probability == 1.0:
        return torch.arange(trials)
    mean = trials * probability
    parts, reached = [], -1
    while reached < trials - 1:
        u = torch.rand(int(mean + 6 * math.sqrt(mean)) + 16, dtype=torch.float64, generator=generator)
        # A gap beyond the end stops at the end: tiny probabilities must not overflow the sum.
        gap = (torch.log1p(-u) / math.log1p(-probability)).clamp(max=trials).long() + 1
        parts.append(reached + gap.cumsum(0))
        reached = int(parts[-1][-1])
    number = torch.cat(parts) if parts else torch.empty(0, dtype=torch.int64)
    return number[number < trials]


def _pair(number: Tensor) -> Tensor:
    """The pair u < v with the number v(v − 1)/2 + u, as [2, M]."""
    v = ((1 + (1 + 8 * number.double()).sqrt()) / 2).long()
    v = v - (v * (v - 1) // 2 > number).long()  # the root may be rounded to the neighbour
    v = v + (v * (v + 1) // 2 <= number).long()
    return torch.stack([number - v * (v - 1) // 2, v])


def sample_graph(environment: Environment, randomness: Randomness) -> Tensor:
    """The graph of an environment: ``edge_index`` [2, 2E], both directions of every edge, no self-loops.

    a_uv = 1 if the uniform of the pair lies below W(U_u, U_v; E), and 0 otherwise. A larger probability keeps all edges
    of a smaller one.

    Example:
        >>> import torch
        >>> from advdiff.theory import shifts
        >>> dice = shifts.Randomness.draw(1000, torch.Generator().manual_seed(0))
        >>> train, *_, last = (shifts.sample_graph(e, dice) for e in shifts.environments("homophily"))
        >>> train.shape[1] // 2, last.shape[1] // 2
        (14156, 32416)
    """
    highest = max(environment.p_within, environment.p_between)
    if highest > randomness.ceiling:
        raise ValueError(
            f"the environment has an edge probability of {highest:g}, but the randomness was drawn with "
            f"ceiling={randomness.ceiling:g}; draw it with ceiling >= {highest:g}."
        )
    u, v = randomness.pairs
    latent = randomness.latent
    edges = randomness.pairs[:, randomness.uniform < environment.graphon(latent[u], latent[v])]
    return torch.cat([edges, edges.flip(0)], dim=1)


def expected_edges(environment: Environment, num_nodes: int) -> float:
    """N(N − 1)/2 · (p₁/b + p₂(1 − 1/b)), the expected number of undirected edges."""
    return num_nodes * (num_nodes - 1) / 2 * environment.edge_probability


def shift_size(V: Velocity, other: Velocity, norm: str = "spectral", *, tol: float = 1e-8) -> float:
    r"""The size of a shift: ‖V' − V‖₂, for the symmetric normalisation the paper's x = ‖ΔÃ‖₂; at most 2 there.

    The spectral norm is the square root of the largest eigenvalue of ΔVᵀΔV, found by Lanczos iteration (ARPACK, fixed
    start) with sparse products on the CPU in float64: O(edges) memory. ``"infinity"`` is the largest row sum of \|ΔV\|.

    Args:
        V, other: of the same number of nodes and kind of normalisation.
        norm: ``"spectral"`` or ``"infinity"``.
        tol: relative accuracy of the eigenvalue.
    """
    check_choice("norm", norm, NORMS)
    if V.num_nodes != other.num_nodes:
        raise ValueError(f"the graphs have {V.num_nodes} and {other.num_nodes} nodes; a shift needs the same nodes.")
    if V.kind != other.kind:
        raise ValueError(f"one velocity is {V.kind!r} and the other {other.kind!r}; normalise both alike.")
    difference = _sparse(other.edge_index, other.exact, V.num_nodes) - _sparse(V.edge_index, V.exact, V.num_nodes)
    if norm == "infinity":
        return float(abs(difference).sum(axis=1).max()) if V.num_nodes else 0.0
    return _spectral_norm(difference, tol)


def adjacency_shift(edge_index: Tensor, other: Tensor, num_nodes: int, *, tol: float = 1e-8) -> float:
    """‖A' − A‖₂ of the adjacency matrices themselves, computed like :func:`shift_size`."""
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


def population_shift(first: Environment, second: Environment) -> float:
    r"""The shift of the environments themselves, to which x tends for N → ∞, whatever the dice.

    .. math::
        x_\infty = \Bigl\lVert \frac{W'}{q'} - \frac{W}{q} \Bigr\rVert_2

    as integral operators on [0, 1], with the edge probabilities q, q'. Graphons that differ by a factor have none.
    """
    _check_edges(first, second)
    W, W2 = _kernels(first, second)
    kernel = W2 / second.edge_probability - W / first.edge_probability
    return float(torch.linalg.eigvalsh(kernel).abs().max()) / len(kernel)


def sampling_noise(first: Environment, second: Environment, num_nodes: int, *, common: bool) -> float:
    r"""σ, the standard deviation that the dice give to a row of ΔÃ; 2σ is the shift where the environments are equal.

    .. math::
        \sigma^2 = \frac1N \int\!\!\int
        \frac{W - J}{q^2} + \frac{W' - J}{q'^2} + J\Bigl(\frac1{q'} - \frac1q\Bigr)^2
        - \Bigl(\frac{W'}{q'} - \frac Wq\Bigr)^2 ,

    the mean variance of a'_uv/q' − a_uv/q, where J is the probability that both graphs have the edge: min(W, W') with
    common random numbers, W W' with independent ones.
    """
    _check_edges(first, second)
    W, W2 = _kernels(first, second)
    q, q2 = first.edge_probability, second.edge_probability
    both = torch.minimum(W, W2) if common else W * W2
    square = (W - both) / q**2 + (W2 - both) / q2**2 + both * (1 / q2 - 1 / q) ** 2
    variance = square - (W2 / q2 - W / q) ** 2
    return math.sqrt(max(float(variance.mean()), 0.0) / num_nodes)


def predicted_shift(first: Environment, second: Environment, num_nodes: int, *, common: bool) -> float:
    r"""What x = ‖ΔÃ‖₂ will be, from signal x_∞ and noise σ by the law of spiked random matrices.

    .. math::
        x \approx x_\infty + \sigma^2 / x_\infty \text{ if } x_\infty > \sigma, \quad\text{else } 2\sigma .

    Asymptotic, and σ is averaged over the rows; within a few per cent at the paper's settings (chapter 4).
    """
    signal = population_shift(first, second)
    noise = sampling_noise(first, second, num_nodes, common=common)
    return signal + noise**2 / signal if signal > noise else 2 * noise
