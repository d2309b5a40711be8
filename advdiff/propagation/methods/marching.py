r"""Long times in steps: what Chebyshev and Taylor share.

One step gives e^{-Ls}Z at all the times s that fall into it and at its end, from where the next one starts. A step
leaves out the rest of its series, and loses digits where terms of size a‖Z‖ add up to a result of size ‖Y‖: a‖Z‖/‖Y‖
roundings. One that would lose too many is halved. What earlier steps have lost grows by e^{(ω-1)h}‖z‖/‖z'‖ in a step of
length h from z to z'.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.solution import Outcome

#: The time is never cut into more pieces than 2 to this because of rounding.
MAX_HALVINGS = 12
#: More steps are refused, since they would take hours.
MAX_STEPS = 20_000


class Step(NamedTuple):
    """States [offsets, N, H, F] of one step, the products it took and, if it was looked at, its errors.

    ``truncation`` is relative; ``cancellation`` is the size of the terms, and ``start`` that of the state at the
    beginning, relative to that of the result.
    """

    states: Tensor
    products: int
    truncation: float | None = None
    cancellation: float = 1.0
    start: float = 1.0


def march(
    operator: Propagator,
    Z: Tensor,
    times: Sequence[float],
    tol: float,
    step: Callable[[Tensor, list[float], float], Step],
    longest: float,
    weights: Sequence[float] | None = None,
    halve: bool = True,
) -> Outcome:
    """States at ``times``, by steps of at most ``longest``; with ``weights`` their weighted sum [1, N, H, F].

    ``step(state, offsets, tol)`` advances a state by the last of the offsets.
    """
    end = max(times)
    out = Z.new_zeros(1 if weights is not None else len(times), *Z.shape)
    arrivals = sorted(range(len(times)), key=lambda i: times[i])

    def record(state: Tensor, index: int) -> None:
        if weights is None:
            out[index] = state
        else:
            out[0].add_(state, alpha=weights[index])

    while arrivals and times[arrivals[0]] == 0.0:
        record(Z, arrivals.pop(0))
    if end:
        check_steps(end / longest, end)
    eps, state, done, products, error, worst = torch.finfo(Z.dtype).eps, Z, 0.0, 0, 0.0, 0.0
    looked, halvings, length = True, 0, end / max(1, math.ceil(end / longest - 1e-9)) if end else 0.0
    while done < end:
        length = end - done if end - done <= length * (1.0 + 1e-9) else length
        inside = [i for i in arrivals if times[i] <= done + length * (1.0 + 1e-9)]
        offsets = [min(times[i] - done, length) for i in inside]
        taken = step(state, offsets if offsets and offsets[-1] == length else [*offsets, length], tol * length / end)
        products += taken.products
        if taken.truncation is None:
            looked = False
        else:
            loss = eps * taken.cancellation
            is_finite = math.isfinite(taken.truncation + loss)
            is_too_much = loss > max(0.5 * tol, 50 * eps) * length / end and taken.cancellation > 4.0
            if halve and halvings < MAX_HALVINGS and (is_too_much if is_finite else _is_finite(operator, state)):
                length, halvings = length / 2, halvings + 1
                continue
            if not is_finite:  # NaN or ∞ in or out: no step would ever be short enough
                return Outcome(torch.full_like(out, math.nan), products, math.nan)
            grown = min((operator.growth - operator.shift) * length, 700.0) if done else 0.0
            error = error * math.exp(grown) * taken.start + taken.truncation + loss
            worst = max(worst, error)
        for index, found in zip(inside, taken.states, strict=False):
            record(found, index)
        arrivals = arrivals[len(inside) :]
        # Its own memory, not that of the whole stack.
        state = taken.states[-1].clone() if len(taken.states) > 1 else taken.states[-1]
        done = end if length == end - done else done + length
    return Outcome(out, products, worst if looked and has_values(Z) else None)


def check_steps(steps: float, time: float) -> None:
    """Refuse a time that nobody would wait for."""
    if not steps <= MAX_STEPS:
        raise ValueError(
            f"T = {time:g} is {steps:.0f} steps long, and the limit is {MAX_STEPS}: choose a shorter time, or "
            "method='dense' for a small graph."
        )


def ratio(part: float, whole: float) -> float:
    """part/whole; ∞ if nothing is left of the whole, 0 if nothing was there."""
    return float(part) / whole if whole else math.inf if part else 0.0


def _is_finite(operator: Propagator, state: Tensor) -> bool:
    """Are P and the state finite? Then a shorter step will do; otherwise none will."""
    product = operator.add_product_(torch.empty_like(state), state, keep=0.0)
    return math.isfinite(sum(operator.segments.norms(product, state)))
