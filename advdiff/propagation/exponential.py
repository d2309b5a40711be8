"""``exponential``: e^{-LT}Z, by the method asked for or the one that suits the graph."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, overload

import torch
from torch import Tensor

from advdiff.checks import check_choice, check_nonnegative, check_tolerance, expects, has_values
from advdiff.operators import Generator, Operator, Propagator, as_operator
from advdiff.operators.precision import full_precision
from advdiff.propagation.accuracy import judged
from advdiff.propagation.adjoint import ExponentialAction
from advdiff.propagation.methods.chebyshev import chebyshev
from advdiff.propagation.methods.dense import dense
from advdiff.propagation.methods.krylov import krylov
from advdiff.propagation.methods.ode import ode
from advdiff.propagation.methods.rational import rational
from advdiff.propagation.methods.taylor import taylor
from advdiff.propagation.solution import Outcome, Solution, Statistics

METHODS = {"dense": dense, "taylor": taylor, "krylov": krylov, "chebyshev": chebyshev, "rational": rational, "ode": ode}
#: Up to this many nodes a dense matrix exponential is the fastest.
SMALL = 64


def _choose(operator: Propagator) -> tuple[str, str]:
    if operator.segments.is_small(SMALL):
        return "dense", f"at most {SMALL} nodes: a dense matrix exponential is fastest"
    if operator.has_real_spectrum:
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
    L: Generator | Operator | Tensor, Z: Tensor, time: float | Tensor = ..., method: str = ..., tol: float = ..., *,
    order: int | None = ..., steps: int | None = ..., shift: float | None = ..., return_solution: Literal[False] = ...,
) -> Tensor: ...  # fmt: skip
@overload
def exponential(
    L: Generator | Operator | Tensor, Z: Tensor, time: float | Tensor = ..., method: str = ..., tol: float = ..., *,
    order: int | None = ..., steps: int | None = ..., shift: float | None = ..., return_solution: Literal[True],
) -> Solution: ...  # fmt: skip


@full_precision
@expects
def exponential(
    L: Any,
    Z: Tensor,
    time: float | Tensor = 1.0,
    method: str = "auto",
    tol: float = 1e-6,
    *,
    order: int | None = None,
    steps: int | None = None,
    shift: float | None = None,
    return_solution: bool = False,
) -> Tensor | Solution:
    r"""The closed form of advective diffusion, :math:`\mathbf Z(T) = e^{-\mathbf L T}\, \mathbf Z`.

    Differentiable in query, key, β, edge weights, T and Z; the memory of the backward pass does not depend on how many
    iterations the forward pass took. The relative error is at most ten times ``tol``, or a warning or error says what
    to do. Half precision is computed in float32.

    Args:
        L: the generator I − C − βV, or any linear operator: see :class:`~advdiff.Operator`.
        Z: the initial state, [N], [N, F], or [N, H, F] for H heads (an [N, F] state is spread over the heads).
        time: T ≥ 0, a number or a tensor. A tensor [K] of times gives the K states, stacked [K, …], for the price of
            the largest (``"rational"``: for that of all).
        method: ``"dense"``, ``"taylor"``, ``"krylov"``, ``"chebyshev"``, ``"rational"``, ``"ode"``, or ``"auto"``.
        tol: relative error in the Frobenius norm (bounded below by the rounding of Z's precision).
        order: fix the degree (taylor, chebyshev), basis size (krylov) or number of poles (rational) instead of
            letting ``tol`` choose it.
        steps: fix the number of time steps (taylor).
        shift: σ of the rational method; 0 shows what leaving it out costs.
        return_solution: return a :class:`Solution`, the value with the :class:`Statistics` of what was done.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> L = advdiff.Generator(advdiff.Attention(torch.ones(2, 1), torch.ones(2, 1)), V, beta=0.5)
        >>> advdiff.exponential(L, torch.ones(2), time=2.0)  # e^{βT} = e
        tensor([2.7183, 2.7183])

    Raises:
        FlowOverflowError: the result is larger than the largest number of its precision.
    """
    check_choice("method", method, ["auto", *METHODS])
    times, learned = _times(time)
    check_tolerance(tol)
    options = _options(method, order, steps, shift)
    operator = as_operator(L).propagator
    if operator.field is not None and method == "rational":
        raise ValueError("method='rational' knows the spectrum of a Generator only; use method='auto'.")
    spread = operator.spread(Z)
    reason = "asked for"
    if method == "auto":
        method, reason = _choose(operator)
    eps = torch.finfo(spread.dtype).eps
    tol = max(tol, 4 * eps)
    heads, constant = spread.expand(-1, operator.heads, -1), operator.detach()
    # ∂Y/∂T = −LY multiplies the error of Y by up to ‖L‖.
    inner = tol if learned is None else max(tol / (1.0 + constant.radius), 4 * eps)
    solve: Callable[..., Outcome] = partial(METHODS[method], tol=inner, **options)
    with torch.no_grad():
        outcome = judged(constant, heads.detach().contiguous(), times, tol, solve)
    exactness = 4 * eps if method == "dense" else tol
    value = ExponentialAction.apply(*operator.tensors, heads, learned, outcome, constant, times, None, exactness, solve)
    is_one = not isinstance(time, Tensor) or time.dim() == 0
    value = operator.restore(value[0], Z) if is_one else torch.stack([operator.restore(Y, Z) for Y in value])
    statistics = Statistics(method, reason, outcome.products, outcome.estimated_error)
    return Solution(value, statistics) if return_solution else value


def _times(time: float | Tensor) -> tuple[list[float], Tensor | None]:
    """The times as numbers, and as the tensor to which their gradients flow."""
    check_nonnegative("time", time)
    if not isinstance(time, Tensor):
        return [float(time)], None
    if time.dim() > 1 or time.numel() == 0:
        raise ValueError(f"time has shape {tuple(time.shape)}; it must be a number or hold one or more times [K].")
    times = time.detach().flatten().tolist() if has_values(time) else [1.0] * time.numel()
    return times, time if time.requires_grad else None


def _options(method: str, order: int | None, steps: int | None, shift: float | None) -> dict[str, Any]:
    """Those that were given, if the method knows them."""
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
    return options
