"""``exponential``: e^{-LT}Z, by the method asked for or the one that suits the graph."""

from __future__ import annotations

from typing import Literal, overload

import torch
from torch import Tensor

from advdiff.checks import check_choice, check_nonnegative, check_tolerance
from advdiff.operators import Generator
from advdiff.propagation.adjoint import ExponentialAction
from advdiff.propagation.chebyshev import chebyshev
from advdiff.propagation.dense import dense_exponential
from advdiff.propagation.krylov import krylov
from advdiff.propagation.ode import ode
from advdiff.propagation.rational import rational
from advdiff.propagation.record import Record, Solution
from advdiff.propagation.taylor import taylor
from advdiff.propagator import Propagator

METHODS = {"taylor": taylor, "krylov": krylov, "chebyshev": chebyshev, "rational": rational, "ode": ode}
#: Up to this many nodes a dense matrix exponential is the fastest.
SMALL = 64


def _choose(L: Generator) -> tuple[str, str]:
    if L.num_nodes <= SMALL and L.propagator.segments.num_graphs == 1:
        return "dense", f"at most {SMALL} nodes: a dense matrix exponential is fastest"
    if L.velocity is None or L.velocity.undirected:
        return (
            "chebyshev",
            "undirected graph: the spectrum of V is real, where Chebyshev needs the fewest products",
        )
    return (
        "taylor",
        "directed graph: the spectrum may be complex, where Taylor converges as fast as any polynomial",
    )


@overload
def exponential(
    L: Generator, Z: Tensor, time: float = ..., method: str = ..., tol: float = ..., *,
    order: int | None = ..., steps: int | None = ..., shift: float | None = ..., return_record: Literal[False] = ...,
) -> Tensor: ...  # fmt: skip
@overload
def exponential(
    L: Generator, Z: Tensor, time: float = ..., method: str = ..., tol: float = ..., *,
    order: int | None = ..., steps: int | None = ..., shift: float | None = ..., return_record: Literal[True],
) -> tuple[Tensor, Record]: ...  # fmt: skip


def exponential(
    L: Generator,
    Z: Tensor,
    time: float = 1.0,
    method: str = "auto",
    tol: float = 1e-6,
    *,
    order: int | None = None,
    steps: int | None = None,
    shift: float | None = None,
    return_record: bool = False,
) -> Tensor | tuple[Tensor, Record]:
    r"""The closed form of advective diffusion, :math:`\mathbf Z(T) = e^{-\mathbf L T}\, \mathbf Z`.

    Differentiable in query, key, β and Z; the memory of the backward pass does not depend on how many iterations
    the forward pass took.

    Args:
        L: the generator I − C − βV.
        Z: the initial state, [N], [N, F], or [N, H, F] for H heads (an [N, F] state is spread over the heads).
        time: T ≥ 0.
        method: ``"dense"``, ``"taylor"``, ``"krylov"``, ``"chebyshev"``, ``"rational"``, ``"ode"``, or ``"auto"``.
        tol: relative error in the Frobenius norm (bounded below by the rounding of Z's precision).
        order: fix the degree (taylor, chebyshev), basis size (krylov) or number of poles (rational) instead of
            letting ``tol`` choose it.
        steps: fix the number of time steps (taylor).
        shift: σ of the rational method; 0 shows what leaving it out costs.
        return_record: also return a :class:`Record` of what was done.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> L = advdiff.Generator(advdiff.Attention(torch.ones(2, 1), torch.ones(2, 1)), V, beta=0.5)
        >>> advdiff.exponential(L, torch.ones(2), time=2.0)  # e^{βT} = e
        tensor([2.7183, 2.7183])
    """
    check_choice("method", method, ["auto", "dense", *METHODS])
    check_nonnegative("time", time)
    check_tolerance(tol)
    options = {
        name: value for name, value in (("order", order), ("steps", steps), ("shift", shift)) if value is not None
    }
    accepted = {
        "taylor": {"order", "steps"},
        "krylov": {"order"},
        "chebyshev": {"order"},
        "rational": {"order", "shift"},
    }
    for name in options:
        if name not in accepted.get(method, set()):
            users = ", ".join(m for m, names in accepted.items() if name in names)
            raise ValueError(f"{name} has no meaning for method={method!r}; it belongs to: {users}.")
    if (order is not None and order < 1) or (steps is not None and steps < 1):
        raise ValueError("order and steps must be at least 1.")
    operator = L.propagator
    spread = operator.spread(Z)
    reason = "asked for"
    if method == "auto":
        method, reason = _choose(L)
    if method == "dense":
        value = dense_exponential(L, spread, float(time))
        record = Record(method, reason, 0, torch.finfo(Z.dtype).eps)
        return (operator.restore(value, Z), record) if return_record else operator.restore(value, Z)
    tol = max(tol, 4 * torch.finfo(Z.dtype).eps)
    done: list[Solution] = []

    def solve(constant: Propagator, state: Tensor) -> Solution:
        done.append(METHODS[method](constant, state, float(time), tol, **options))
        return done[0]

    heads = spread.expand(-1, operator.heads, -1)
    value = operator.restore(ExponentialAction.apply(*operator.tensors, heads, operator, float(time), tol, solve), Z)
    record = Record(method, reason, done[0].products, done[0].estimated_error)
    return (value, record) if return_record else value
