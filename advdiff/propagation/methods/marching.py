r"""Long times in steps: what Chebyshev and Taylor share.

One step gives e^{-Ls}Z at all the times s that fall into it and at its end, from where the next one starts. The
estimated error adds up, step by step, what the series leaves out and what rounding costs: terms of size a‖Z‖ that add
up to a result of size ‖Y‖ lose a‖Z‖/‖Y‖ of the digits. A step that would lose too many is halved.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.operators.reductions import norms
from advdiff.propagation.solution import Outcome

#: The time is never cut into more pieces than this because of rounding.
MAX_HALVINGS = 12


class Step(NamedTuple):
    """States [offsets, N, H, F] of one step, the products it took and, if it was looked at, its errors.

    ``truncation`` is relative; ``cancellation`` is the size of the terms relative to that of the result.
    """

    states: Tensor
    products: int
    truncation: float | None
    cancellation: float | None


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
    eps, state, done, products, error, amplified = torch.finfo(Z.dtype).eps, Z, 0.0, 0, 0.0, 1.0
    looked, halvings, length = True, 0, end / max(1, math.ceil(end / longest - 1e-9)) if end else 0.0
    while done < end:
        length = end - done if end - done <= length * (1.0 + 1e-9) else length
        inside = [i for i in arrivals if times[i] <= done + length * (1.0 + 1e-9)]
        offsets = [min(times[i] - done, length) for i in inside]
        taken = step(state, offsets if offsets and offsets[-1] == length else [*offsets, length], tol * length / end)
        products += taken.products
        if taken.truncation is None or taken.cancellation is None:
            looked = False
        else:
            loss = eps * taken.cancellation
            allowed = max(0.5 * tol, 50 * eps) * length / end
            is_finite = math.isfinite(taken.truncation + loss)
            if halve and halvings < MAX_HALVINGS and not is_finite and _can_be_helped(operator, state):
                length, halvings = length / 2, halvings + 1
                continue
            if halve and halvings < MAX_HALVINGS and loss > allowed and taken.cancellation > 4.0:
                length, halvings = length / 2, halvings + 1
                continue
            if not is_finite:  # NaN or ∞ in or out: no step would ever be short enough
                return Outcome(torch.full_like(out, math.nan), products, math.nan)
            error += taken.truncation + 0.25 * loss  # of terms of either sign
            amplified = min(amplified * max(taken.cancellation, 1.0), 1e300)
        for index, found in zip(inside, taken.states, strict=False):
            record(found, index)
        arrivals = arrivals[len(inside) :]
        # Its own memory, not that of the whole stack.
        state = taken.states[-1].clone() if len(taken.states) > 1 else taken.states[-1]
        done = end if length == end - done else done + length
    if halve and not operator.has_real_spectrum:
        # Errors may grow where the state does not: P is far from normal, and terms have either sign.
        error += eps * amplified
    return Outcome(out, products, error if looked and has_values(Z) else None)


def unresolved(Z: Tensor, size: float) -> float:
    """The relative error of a state of this size where its entries are next to the least number; 1 where all are 0."""
    least = torch.finfo(Z.dtype).tiny * torch.finfo(Z.dtype).eps
    return min(1.0, least * math.sqrt(Z.numel()) / size) if size else 1.0


def _can_be_helped(operator: Propagator, state: Tensor) -> bool:
    """Are P and the state finite? Then a shorter step will do; otherwise none will."""
    product = operator.add_product_(torch.empty_like(state), state, keep=0.0)
    return math.isfinite(sum(norms(product, state)))
