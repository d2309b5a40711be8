"""Every method of the library on one generator, called alike with the whole graph and with a part of it.

The tolerances are the usual ones: both sides take the same steps, and differ by rounding alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

import advdiff
from tests.distributed.cases import NODES


def factors() -> tuple[Tensor, Tensor, Tensor]:
    """Query and key [N, H, d] and a state [N, F]."""
    drawn = torch.Generator().manual_seed(5)
    query, key = (torch.randn(NODES, 2, 3, generator=drawn, dtype=torch.float64) for _ in range(2))
    return query, key, torch.randn(NODES, 4, generator=drawn, dtype=torch.float64)


def _powers(L: advdiff.Generator, Z: Tensor) -> Tensor:
    return torch.stack(advdiff.powers(L.propagator, Z, 3)[1:]).sum(0)


def _product(L: advdiff.Generator, Z: Tensor) -> Tensor:
    return L @ (L.T @ (L @ Z))


def _phi(L: advdiff.Generator, Z: Tensor) -> Tensor:
    return advdiff.phi(1, L, Z, 0.5)


def _times(L: advdiff.Generator, Z: Tensor) -> Tensor:
    return advdiff.exponential(L, Z, torch.tensor([0.5, 0.2], dtype=Z.dtype), "krylov").sum(0)


SOLVERS: dict[str, Callable[[advdiff.Generator, Tensor], Tensor]] = {
    "product": _product,
    "powers": _powers,
    "phi": _phi,
    "times": _times,
    "lowrank": partial(advdiff.resolvent, method="lowrank", theta=1.5),
    "gmres": partial(advdiff.resolvent, method="krylov", theta=1.5),
    **{
        method: partial(advdiff.exponential, method=method, time=0.5)
        for method in ("taylor", "chebyshev", "krylov", "rational", "ode")
    },
}
