"""The exponential beside ``scipy.sparse.linalg.expm_multiply`` on the same operator, in double precision."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import LinearOperator, expm_multiply
from torch import Tensor

import advdiff
from advdiff.bench import measure
from advdiff.bench.problems import random_graph
from advdiff.bench.rows import Row

#: Rank of C and columns of Z.
RANK, COLUMNS = 16, 64
TIME, BETA = 1.0, 0.5


def generator(nodes: int) -> tuple[advdiff.Generator, Tensor]:
    """L = I − C − βV of a random graph with a random attention, and Z [N, 64]."""
    graph = random_graph(nodes)
    random = torch.Generator().manual_seed(1)
    query, key = (torch.randn(nodes, RANK - 1, generator=random, dtype=torch.float64) for _ in range(2))
    V = advdiff.normalize_adjacency(graph.edge_index, nodes, dtype=torch.float64)
    Z = torch.randn(nodes, COLUMNS, generator=random, dtype=torch.float64)
    return advdiff.Generator(advdiff.Attention(query, key), V, BETA), Z


def in_scipy(L: advdiff.Generator) -> tuple[LinearOperator, float]:
    """−L·T as a linear operator of NumPy and scipy alone, and its trace, which ``expm_multiply`` wants to know."""
    assert L.coupling is not None and L.velocity is not None
    nodes = L.num_nodes
    left, right = L.coupling.left[:, 0].numpy(), L.coupling.right[:, 0].numpy()
    source, target = L.velocity.edge_index.numpy()
    V = csr_matrix((L.velocity.entries.numpy(), (target, source)), shape=(nodes, nodes))
    V.sum_duplicates()
    VT = V.T.tocsr()

    def product(matrix: csr_matrix, a: np.ndarray, b: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        return lambda Z: TIME * (a @ (b.T @ Z) + BETA * (matrix @ Z) - Z)

    forward, back = product(V, left, right), product(VT, right, left)
    operator = LinearOperator((nodes, nodes), matvec=forward, rmatvec=back, matmat=forward, rmatmat=back, dtype=V.dtype)
    return operator, TIME * (float((left * right).sum()) + BETA * float(V.diagonal().sum()) - nodes)


def against_expm_multiply(nodes: int, tol: float, budget: float, bar: float | None) -> Row:
    """Forward only: scipy has no gradient."""
    L, Z = generator(nodes)
    operator, trace = in_scipy(L)
    start = Z.numpy()
    with torch.no_grad():
        ours = advdiff.exponential(L, Z, TIME, tol=tol).numpy()
        theirs = expm_multiply(operator, start, traceA=trace)
        best = measure.side_by_side(
            {
                "ours": lambda: advdiff.exponential(L, Z, TIME, tol=tol),
                "theirs": lambda: expm_multiply(operator, start, traceA=trace),
            },
            budget,
            least=1,
        )
    return Row(
        f"exponential, tol {tol:.0e}", "scipy expm_multiply", nodes, 1, 1e3 * best["ours"], 1e3 * best["theirs"],
        best["theirs"] / best["ours"], "×", bar,
        float(np.linalg.norm(ours - theirs) / np.linalg.norm(theirs)), "results",
    )  # fmt: skip
