"""The dense oracles: torch's matrix exponential and linear solver on the N×N matrix of each small graph."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from advdiff.blocks import Blocks
from advdiff.operators import Generator
from advdiff.propagation.errors import SingularGeneratorError

#: Largest N for which a dense N×N matrix is formed (about 0.5 GB per matrix in float64).
MAX_DENSE_NODES = 8192


def check_size(num_nodes: int) -> None:
    """Refuse a graph whose dense matrix would not fit into memory."""
    if num_nodes > MAX_DENSE_NODES:
        raise ValueError(
            f"method='dense' would form a {num_nodes}×{num_nodes} matrix; it is limited to {MAX_DENSE_NODES} nodes: "
            "use method='auto'."
        )


def _blocks(L: Generator, dtype: torch.dtype) -> Blocks:
    """P = C + βV, one matrix for each graph and head."""
    segments = L.propagator.segments
    check_size(math.isqrt(segments.num_graphs * segments.largest**2))
    return L.propagator.blocks(dtype)


def dense_exponential(L: Generator, Z: Tensor, time: float) -> Tensor:
    """e^{-LT}Z through ``torch.linalg.matrix_exp`` of the nonnegative matrix PT."""
    P = _blocks(L, Z.dtype)
    flow = Blocks(P.segments, torch.linalg.matrix_exp(time * P.matrix) * math.exp(-time))
    return flow.scatter(flow @ flow.gather(Z))


def dense_resolvent(L: Generator, Z: Tensor, theta: float) -> tuple[Tensor, Tensor]:
    """(θI + L)⁻¹Z and (θI + L)⁻¹1 through ``torch.linalg.solve``."""
    P = _blocks(L, Z.dtype)
    identity = torch.eye(P.segments.largest, dtype=Z.dtype, device=Z.device)
    columns = P.gather(torch.cat([Z, torch.ones_like(Z[..., :1])], dim=-1))
    columns = columns.expand(-1, P.matrix.size(1), -1, -1)
    try:
        solved = P.scatter(torch.linalg.solve((1.0 + theta) * identity - P.matrix, columns))
    except torch.linalg.LinAlgError:
        raise SingularGeneratorError(
            f"θI + L is exactly singular at θ = {theta:g}: the Perron eigenvalue of C + βV equals 1 + θ; "
            "choose a larger θ."
        ) from None
    return solved[..., :-1], solved[..., -1:].detach()
