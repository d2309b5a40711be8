r"""The causal model of the paper's Section 3.1: latents, environments and the graphs that they make.

Node u has a latent U_u, uniform on [0, 1). Given the environment E, an edge joins u and v with the probability
W(U_u, U_v; E), where the graphon W is a stochastic block model: p₁ within each of b equal intervals, p₂ between them.
What nature throws (:class:`Randomness`) is kept apart from the environment, so that two graphs can share it: **common
random numbers**. Chapter 4 looks at what comes out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from advdiff.checks import check_choice

SHIFTS = ("homophily", "density", "block")
CONTROL = "none"  # twelve environments without any shift
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

    @property
    def eigenvalue(self) -> float:
        """λ = (p₁ − p₂)/(b q), the eigenvalue of W/q on block signals of mean zero (NaN if there are no edges).

        W/q takes a function H of the latents to H̄ + λ(H̄_b − H̄), with its mean H̄ and its mean H̄_b over the own block.
        """
        q = self.edge_probability
        return (self.p_within - self.p_between) / (self.blocks * q) if q else math.nan


def environments(shift: str) -> tuple[Environment, ...]:
    """The paper's twelve environments of a shift, graph #1 (training) first (Appendix E.1.1).

    With s = (i − 1)/12 for graph #i: ``homophily`` p₂ = 0.01 + 0.05 s; ``density`` p₁ = 0.1 + 0.1 s and
    p₂ = 0.01 + 0.1 s; ``block`` b = 5 + (i − 1). All start from p₁ = 0.1, p₂ = 0.01, b = 5, and ``none``, the
    control that the paper lacks, stays there.

    Example:
        >>> environments("homophily")[0]
        Environment(p_within=0.1, p_between=0.01, blocks=5)
        >>> [round(e.homophily, 2) for e in environments("homophily")][::11]
        [0.71, 0.31]
    """
    check_choice("shift", shift, (*SHIFTS, CONTROL))
    if shift == "block":
        return tuple(Environment(0.1, 0.01, 5 + k) for k in range(NUM_GRAPHS))
    within, between = {"homophily": (0.0, 0.05), "density": (0.1, 0.1), "none": (0.0, 0.0)}[shift]
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
            num_nodes: number N of nodes.
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
        >>> from advdiff.datasets.causal.block_model import Randomness, environments, sample_graph
        >>> dice = Randomness.draw(1000, torch.Generator().manual_seed(0))
        >>> train, *_, last = (sample_graph(e, dice) for e in environments("homophily"))
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
    """N(N − 1)/2 · (p₁/b + p₂(1 − 1/b)), the expected number of undirected edges.

    Example:
        >>> round(expected_edges(environments("none")[0], 1000))
        13986
    """
    return num_nodes * (num_nodes - 1) / 2 * environment.edge_probability
