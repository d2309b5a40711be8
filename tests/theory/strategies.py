"""Random changes of a graph, all matrices dense and in plain numpy; nothing here uses the library."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
from hypothesis import strategies as st

from tests.cases import KINDS
from tests.reference import attention, normalized

ORDER = {"symmetric": 2, "row": np.inf}  # numpy's names for the norm in which each normalisation is bounded


def mu2(M: np.ndarray) -> float:
    """The logarithmic norm λ_max((M + Mᵀ)/2)."""
    return float(np.linalg.eigvalsh((M + M.T) / 2)[-1])


@dataclass(frozen=True)
class Change:
    """Two graphs A[target, source] on the same nodes and a row-stochastic C that sees neither."""

    A: np.ndarray
    A2: np.ndarray
    C: np.ndarray
    kind: str
    beta: float
    query: np.ndarray | None = None
    key: np.ndarray | None = None

    @property
    def V(self) -> tuple[np.ndarray, np.ndarray]:
        return normalized(self.A, self.kind), normalized(self.A2, self.kind)

    @property
    def P(self) -> tuple[np.ndarray, np.ndarray]:
        V, V2 = self.V
        return self.C + self.beta * V, self.C + self.beta * V2

    @property
    def L(self) -> tuple[np.ndarray, np.ndarray]:
        eye = np.eye(len(self.C))
        return eye - self.P[0], eye - self.P[1]

    @property
    def x(self) -> float:
        V, V2 = self.V
        return self.norm(V2 - V)

    @property
    def growth(self) -> float:
        """g of the table in ``bounds``, from its definition."""
        return self.beta if self.kind == "row" else mu2(self.C) + self.beta - 1.0

    def norm(self, M: np.ndarray) -> float:
        return float(np.linalg.norm(M, ORDER[self.kind]))

    def flows(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        L, L2 = self.L
        return scipy.linalg.expm(-time * L), scipy.linalg.expm(-time * L2)


@st.composite
def adjacencies(draw: st.DrawFn, n: int, undirected: bool, rng: np.random.Generator) -> np.ndarray:
    """Sparse or dense, with self-loops, isolated nodes and weights over four decades, or a star, or no edge at all."""
    shape = draw(st.sampled_from(["sparse", "sparse", "dense", "star", "empty"]))
    keep = {"sparse": 1.5 / n, "dense": 0.7, "star": 0.0, "empty": 0.0}[shape]
    A = (rng.random((n, n)) < keep).astype(float)
    if shape == "star":
        A[0, 1:] = A[1:, 0] = 1.0
    if draw(st.booleans()):
        A *= 10 ** rng.uniform(-2, 2, (n, n))
    return np.triu(A) + np.triu(A, 1).T if undirected else A


@st.composite
def changes(
    draw: st.DrawFn, kind: str | None = None, undirected: bool | None = None, coupling: str | None = None
) -> Change:
    """``coupling``: "attention" (which has query and key), "hub" (likewise), "identity", "stochastic" or any."""
    n = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    undirected = draw(st.booleans()) if undirected is None else undirected
    A = draw(adjacencies(n, undirected, rng))
    if draw(st.booleans()):
        A2 = draw(adjacencies(n, undirected, rng))
    else:  # a small change of the weights
        A2 = A * (1 + 0.05 * rng.random((n, n)))
        A2 = np.triu(A2) + np.triu(A2, 1).T if undirected else A2
    chosen = coupling or draw(st.sampled_from(["attention", "hub", "identity", "stochastic"]))
    query = key = None
    if chosen == "identity":
        C = np.eye(n)
    elif chosen == "stochastic":
        C = rng.random((n, n)) ** 4 + 1e-9
        C /= C.sum(1, keepdims=True)
    else:
        query, key = rng.normal(size=(2, n, 3))
        if chosen == "hub":
            query, key = np.zeros((2, n, 3))
            query[:, 0], key[:, 0] = 1.0, -1.0
            key[rng.integers(n), 0] = 1.0
        C = attention(query, key)
    beta = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0, 2.0]))
    return Change(A, A2, C, kind or draw(st.sampled_from(KINDS)), beta, query, key)


def lazy_pair(epsilon: float, kind: str = "symmetric", beta: float = 1.0) -> Change:
    """Two nodes that keep to themselves, and then exchange a share ε: all bounds are attained as ε → 0.

    V = I, V' = [[1 − ε, ε], [ε, 1 − ε]] in either normalisation and C = I. On (1, −1), V' has the eigenvalue
    1 − 2ε, and x = 2ε in both norms.
    """
    apart, mixed = np.eye(2), np.array([[1 - epsilon, epsilon], [epsilon, 1 - epsilon]])
    return Change(apart, mixed, np.eye(2), kind, beta)
