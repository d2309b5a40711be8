"""Independent references in plain numpy, written from the definitions, and problems that carry theirs.

Nothing here uses the library's own dense matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

import advdiff
from tests.cases import GraphCase, star

STATES = ("vector", "matrix", "heads")  # Z of shape [N], [N, F], [N, H, F]
EPS = {torch.float64: 1e-12, torch.float32: 2e-6}  # what rounding may cost one product


def randn(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers, the same in both precisions; ``conftest`` seeds torch before each test."""
    return torch.randn(*shape, dtype=torch.float64).to(dtype)


def leaf(*shape: int) -> Tensor:
    return randn(*shape).requires_grad_()


def normalized(A: np.ndarray, kind: str) -> np.ndarray:
    """D_in^{-1/2} A D_out^{-1/2} or D_in^{-1} A, with zero rows and columns for isolated nodes."""
    V = np.zeros_like(A)
    in_degree, out_degree = A.sum(1), A.sum(0)
    for target, source in np.argwhere(A > 0):
        scale = in_degree[target] if kind == "row" else np.sqrt(in_degree[target] * out_degree[source])
        V[target, source] = A[target, source] / scale
    return V


def unit(x: np.ndarray) -> np.ndarray:
    length = np.sqrt((x**2).sum())
    return x / length if length > 0 else x


def attention(query: np.ndarray, key: np.ndarray, batch: list[int] | None = None) -> np.ndarray:
    """c_uv = (1 + q̂_u·k̂_v) / Σ_w (1 + q̂_u·k̂_w) for one head, over the nodes w of u's graph."""
    n = len(query)
    graph = [0] * n if batch is None else batch
    C = np.zeros((n, n))
    for u in range(n):
        for v in range(n):
            if graph[u] == graph[v]:
                C[u, v] = 1.0 + unit(query[u]) @ unit(key[v])
        C[u] /= C[u].sum()
    return C


def act(matrices: np.ndarray, Z: np.ndarray, heads: int | None) -> np.ndarray:
    """M_h Z for [H, N, N] matrices: heads share Z of shape [N] or [N, F] and have their own in [N, H, F]."""
    if heads is None:
        return np.einsum("uv,v...->u...", matrices[0], Z)
    return np.einsum("huv,vhf->uhf" if Z.ndim == 3 else "huv,v...->uh...", matrices, Z)


def relative_error(actual: Tensor, expected: np.ndarray) -> float:
    """‖actual − expected‖_F / ‖expected‖_F; shapes must agree."""
    assert tuple(actual.shape) == expected.shape, f"{tuple(actual.shape)} instead of {expected.shape}"
    size = np.linalg.norm(expected)
    return float(np.linalg.norm(actual.detach().double().numpy() - expected) / (size if size > 0 else 1.0))


@dataclass(frozen=True)
class Problem:
    """A generator made by the library, a state Z, and the dense P = C + βV made here, [H, N, N]."""

    L: advdiff.Generator
    Z: Tensor
    P: np.ndarray
    heads: int | None = None

    @property
    def eye(self) -> np.ndarray:
        return np.eye(self.P.shape[-1])

    @property
    def singular_theta(self) -> float:
        """θ* = ρ(P) − 1, the largest over the heads."""
        return float(np.abs(np.linalg.eigvals(self.P)).max()) - 1.0

    def distance_from_singular(self, theta: float) -> float:
        """Smallest |λ| over the eigenvalues λ of θI + L."""
        return float(np.abs(1.0 + theta - np.linalg.eigvals(self.P)).min())

    def product(self) -> np.ndarray:
        return self.act(self.eye - self.P)

    def transposed_product(self) -> np.ndarray:
        return self.act(self.eye - self.P.swapaxes(1, 2))

    def exponential(self, time: float) -> np.ndarray:
        return self.act(np.stack([scipy.linalg.expm(time * (P - self.eye)) for P in self.P]))

    def resolvent(self, theta: float) -> np.ndarray:
        return self.act(np.linalg.solve((1.0 + theta) * self.eye - self.P, np.broadcast_to(self.eye, self.P.shape)))

    def act(self, matrices: np.ndarray) -> np.ndarray:
        return act(matrices, self.Z.double().numpy(), self.heads)


@cache
def make_problem(
    case: GraphCase,
    kind: str = "symmetric",
    beta: float = 0.5,
    heads: int | None = None,
    dtype: torch.dtype = torch.float64,
    state: str = "matrix",
    terms: str = "CV",
) -> Problem:
    """Random query, key and Z on a graph of the table; ``terms`` "C" or "V" leaves the other one out."""
    rng = np.random.default_rng(7)
    n, width = case.num_nodes, 3
    # Rounded to ``dtype`` first, so that the reference sees the very numbers the library gets.
    query, key = (torch.tensor(rng.normal(size=(n, heads or 1, width))).to(dtype) for _ in range(2))
    shape = {"vector": (n,), "matrix": (n, 2), "heads": (n, heads or 1, 2)}[state]
    Z = torch.tensor(rng.normal(size=shape)).to(dtype)
    P = np.zeros((heads or 1, n, n))
    coupling = velocity = None
    if "C" in terms:
        for h in range(heads or 1):
            P[h] += attention(query[:, h].double().numpy(), key[:, h].double().numpy(), case.batch)
        if heads is None:
            query, key = query[:, 0], key[:, 0]
        coupling = advdiff.Attention(query, key, case.batch_vector)
    if "V" in terms:
        P += beta * normalized(case.adjacency, kind)
        velocity = case.velocity(kind, dtype)
    return Problem(advdiff.Generator(coupling, velocity, beta), Z, P, heads)


def hub_attention(leaves: int, kind: str = "symmetric", beta: float = 1.0) -> Problem:
    """Theory §4: on a star every query is e, the hub's key is e and all others are −e, so C = 1 e_hubᵀ."""
    case = star(leaves)
    query = torch.zeros(leaves + 1, 2, dtype=torch.float64)
    query[:, 0] = 1.0
    key = -query
    key[0, 0] = 1.0
    C = np.zeros((1, leaves + 1, leaves + 1))
    C[0, :, 0] = 1.0
    L = advdiff.Generator(advdiff.Attention(query, key), case.velocity(kind), beta)
    Z = torch.tensor(np.random.default_rng(7).normal(size=(leaves + 1, 2)))
    return Problem(L, Z, C + beta * normalized(case.adjacency, kind))
