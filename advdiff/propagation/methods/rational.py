r"""The rational method: a sum of resolvents at the Carathéodory–Fejér poles.

.. math::
    e^{-\mathbf L T} \approx e^{\sigma T} \Bigl[\alpha_0 \mathbf I
    - \sum_i \alpha_i \bigl((\mathbf L + \sigma \mathbf I)T + \theta_i \mathbf I\bigr)^{-1}\Bigr]

The approximation holds on [0, ∞) while L has an eigenvalue at about −β, so the spectrum is shifted by σ = β first
(for the symmetric normalisation by a bound on the Perron eigenvalue, which can be larger). All poles, heads and
columns share one sequence of real sparse products.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from advdiff.checks import has_values
from advdiff.operators.propagator import Propagator
from advdiff.propagation.methods.caratheodory_fejer import MAX_ORDER, partial_fractions
from advdiff.propagation.methods.dense import grown
from advdiff.propagation.methods.shifted import sparse_resolvents
from advdiff.propagation.methods.woodbury import corrected
from advdiff.propagation.solution import Outcome

#: One more pole divides the error by this (Halphen's constant, by Gonchar and Rakhmanov).
ERROR_RATIO = 9.28903


def perron_bound(operator: Propagator, iterations: int = 20) -> float:
    """An upper bound on the spectral radius of P ≥ 0: max_u (Px)_u / x_u for positive x (Collatz–Wielandt)."""
    bound = operator.radius
    if operator.left is None or operator.velocity is None or operator.velocity.kind == "row":
        return bound
    if not has_values(operator.left) or operator.num_nodes == 0:
        return bound
    best, x = math.inf, operator.left.new_ones(operator.num_nodes, operator.heads, 1)
    for _ in range(iterations):
        y = operator.add_product_(torch.empty_like(x), x, keep=0.0)
        highest = operator.segments.reductions.highest
        best = min(best, float(highest((y / x).max())))
        x = y / highest(y.amax(0, keepdim=True))
        x.clamp_(min=1e-6)  # stays positive, so that every quotient is a bound
    return max(best, 1.0) if math.isfinite(best) else bound


def rational(
    operator: Propagator,
    Z: Tensor,
    times: Sequence[float],
    tol: float,
    order: int | None = None,
    shift: float | None = None,
) -> Outcome:
    """``order`` poles (default: as many as ``tol`` needs, at most 14), spectrum shifted by ``shift``.

    The poles depend on the time, so several times cost as much as one after the other.
    """
    outcomes = [_at_one_time(operator, Z, time, tol, order, shift) for time in times]
    errors = [math.inf if o.estimated_error is None else o.estimated_error for o in outcomes]
    value, products = torch.stack([o.value for o in outcomes]), sum(o.products for o in outcomes)
    if order is not None or not has_values(Z):
        return Outcome(value, products)
    return Outcome(value, products, math.nan if any(math.isnan(e) for e in errors) else max(errors))


def _at_one_time(
    operator: Propagator, Z: Tensor, time: float, tol: float, order: int | None, shift: float | None
) -> Outcome:
    if time == 0.0:
        return Outcome(Z.clone(), 0, 0.0)
    if Z.dtype == torch.float32 and Z.device.type != "mps":
        # Residues of size 100 with opposite signs cost float32 two digits: work in float64.
        wide = replace(operator, left=_double(operator.left), right=_double(operator.right))
        outcome = _at_one_time(wide, Z.double(), time, tol, order, shift)
        value, error = outcome.value.float(), outcome.estimated_error
        if error is not None and not math.isfinite(operator.segments.norms(value)[0]):
            error = math.nan
        return outcome._replace(value=value, estimated_error=error)
    if shift is None:
        shift = perron_bound(operator) - 1.0
    poles = order or min(MAX_ORDER, max(1, math.ceil(-math.log(0.05 * tol) / math.log(ERROR_RATIO))))
    truncation, products = max(1e-3 * tol, torch.finfo(Z.dtype).eps), 0
    while True:
        scaled, more, size_of_terms = _apply(operator, Z, time, truncation, poles, shift)
        result = grown(scaled, shift * time)
        products += more
        if order is not None or not has_values(Z):
            return Outcome(result, products)
        size, start, final = operator.segments.norms(scaled, Z, result)
        of_poles = start * _spectral_error(operator, time, poles, shift)
        of_solves = max(truncation, torch.finfo(Z.dtype).eps) * size_of_terms
        error = (of_poles + of_solves) / size if size else float(start > 0.0)
        if not math.isfinite(error + final):  # NaN in, NaN out
            return Outcome(result, products, math.nan)
        if error <= tol or (poles == MAX_ORDER and truncation <= torch.finfo(Z.dtype).eps) or not size:
            break
        # The result is much smaller than Z, or the spectrum is complex: more poles, and more accurate solves.
        if of_poles > 0.5 * tol * size:
            factor = max(of_poles / (0.5 * tol * size), ERROR_RATIO)
            poles = min(MAX_ORDER, poles + math.ceil(math.log(factor) / math.log(ERROR_RATIO)))
        truncation = max(min(0.1 * truncation, 0.25 * tol * size / size_of_terms), torch.finfo(Z.dtype).eps)
    return Outcome(result, products, error)


def _double(factor: Tensor | None) -> Tensor | None:
    return None if factor is None else factor.double()


def _spectral_error(operator: Propagator, time: float, poles: int, shift: float) -> float:
    """max |r(x) − e^{-x}| over the spectrum of (L + σI)T: the half-line, and for a directed graph a disc besides."""
    error = ERROR_RATIO**-poles * (1.0 if operator.velocity is None else operator.velocity.skew**0.5)
    if operator.velocity is None or operator.velocity.undirected:
        return error
    # A directed V is not normal: allow the matrix ten times the error of its spectrum.
    return 10.0 * max(error, partial_fractions(poles).error_on_disc((1.0 + shift) * time, (1.0 + shift) * time))


def _apply(
    operator: Propagator, Z: Tensor, time: float, tol: float, order: int, shift: float
) -> tuple[Tensor, int, float]:
    """The approximation without its e^{σT}, the number of products and Σ‖term‖, which multiplies solve errors."""
    fractions = partial_fractions(order)
    shifts = [1.0 + shift + complex(theta) / time for theta in fractions.poles]
    parts = [Z] if operator.left is None else [Z, operator.left]
    columns = [part.flatten(1) for part in parts]
    betas: float | list[float] = operator.beta_value
    if len(operator.beta_values) > 1:
        betas = [b for part in parts for b in operator.beta_values for _ in range(part.size(2))]
    solved, products = sparse_resolvents(operator.velocity, betas, torch.cat(columns, 1), shifts, tol)
    result, size_of_terms = Z * fractions.constant, 0.0
    for pole, residue, values in zip(fractions.poles, fractions.residues, solved, strict=True):
        X = values[:, : columns[0].size(1)].reshape(Z.shape)
        if operator.left is not None:
            solved_left = values[:, columns[0].size(1) :].reshape(operator.left.shape)
            X = corrected(operator, X, solved_left)
        # A pole and its conjugate together give twice the real part.
        weight = complex(residue) * (2.0 if pole.imag else 1.0) / time
        result -= (X * weight).real if X.is_complex() else X * weight.real
        if has_values(Z):
            size_of_terms += abs(weight) * operator.segments.norms(X)[0]
    return result, products, max(size_of_terms, 1e-300)
