"""``resolvent``: (θI + L)⁻¹Z, dense or by the fast low-rank inverse, with its singular points named."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any, Literal, overload

import torch
from torch import Tensor

from advdiff.checks import check_choice, check_tolerance, expects, has_values, number_of
from advdiff.operators import Generator, Operator, Propagator, as_operator
from advdiff.operators.precision import full_precision
from advdiff.propagation.accuracy import ALLOWED
from advdiff.propagation.errors import (
    AccuracyWarning,
    NearSingularWarning,
    SingularGeneratorError,
    SingularVelocityError,
)
from advdiff.propagation.inverse import Diagnosis, InverseAction
from advdiff.propagation.methods.dense import dense_inverse
from advdiff.propagation.methods.gmres import krylov_inverse
from advdiff.propagation.methods.lowrank import lowrank_inverse
from advdiff.propagation.solution import Solution, Statistics

METHODS = {"dense": dense_inverse, "lowrank": lowrank_inverse, "krylov": krylov_inverse}
#: Up to this many nodes a dense solve is the fastest.
SMALL = 128
#: Condition numbers from which the user is warned.
WARN_CONDITION = 1e3


def _choose(operator: Propagator) -> tuple[str, str]:
    if operator.segments.is_small(SMALL):
        return "dense", f"at most {SMALL} nodes: a dense solve is fastest"
    if operator.field is not None:
        return "krylov", "a linear operator of which only products are known: GMRES"
    if operator.has_small_graphs and operator.segments.largest <= SMALL:
        return "dense", f"graphs of at most {SMALL} nodes and no more than d + 1: a dense solve in each is fastest"
    return (
        "lowrank",
        "sparse solves with (1+θ)I − βV and a capacitance matrix of size d + 1 per graph and head",
    )


@overload
def resolvent(
    L: Generator | Operator | Tensor, Z: Tensor, theta: float | Tensor = ..., method: str = ..., tol: float = ..., *,
    indefinite: bool = ..., return_solution: Literal[False] = ...,
) -> Tensor: ...  # fmt: skip
@overload
def resolvent(
    L: Generator | Operator | Tensor, Z: Tensor, theta: float | Tensor = ..., method: str = ..., tol: float = ..., *,
    indefinite: bool = ..., return_solution: Literal[True],
) -> Solution: ...  # fmt: skip


@full_precision
@expects
def resolvent(
    L: Any,
    Z: Tensor,
    theta: float | Tensor = 1.0,
    method: str = "auto",
    tol: float = 1e-6,
    *,
    indefinite: bool = False,
    return_solution: bool = False,
) -> Tensor | Solution:
    r"""The paper's ``linsolver``.

    .. math::
        (\theta \mathbf I + \mathbf L)^{-1} \mathbf Z
        = ((1+\theta)\mathbf I - \mathbf C - \beta\mathbf V)^{-1} \mathbf Z

    θ must exceed the singular value θ* = ρ(C + βV) − 1 (with row normalisation and no isolated node θ* = β exactly).
    Above it, θ·(θI + L)⁻¹ is an implicit-Euler step of length 1/θ and the mean of e^{-Lτ} over τ ~ Exp(θ); below it
    the system may be solvable but is neither.

    Args:
        L: the generator I − C − βV, or any linear operator: see :class:`~advdiff.Operator`.
        Z: right-hand side, [N], [N, F] or [N, H, F].
        theta: θ, a number or a tensor with one element, to which gradients flow.
        method: ``"dense"``, ``"lowrank"`` (a Generator), ``"krylov"`` (any linear operator) or ``"auto"``.
        tol: relative error in the Frobenius norm.
        indefinite: solve below θ* all the same, with a warning instead of an error.
        return_solution: return a :class:`Solution`, the value with the :class:`Statistics` of what was done, among
            them the condition number.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> L = advdiff.Generator(advdiff.Attention(torch.ones(2, 1), torch.ones(2, 1)), V, beta=0.5)
        >>> advdiff.resolvent(L, torch.ones(2), theta=1.0).round(decimals=4)  # 1/(θ − β)
        tensor([2., 2.])

    Raises:
        SingularVelocityError: θ ≤ β − 1, where (1+θ)I − βV is not positive definite.
        SingularGeneratorError: θ is at the singular value θ*, or below it and ``indefinite`` is False.
    """
    check_choice("method", method, ["auto", *METHODS])
    check_tolerance(tol)
    learned = theta if isinstance(theta, Tensor) else None
    theta = number_of("theta", theta)
    if not math.isfinite(theta):
        raise ValueError(f"theta is {theta}; it must be a finite number.")
    operator = as_operator(L).propagator
    is_general = operator.field is not None
    if is_general and method == "lowrank":
        raise ValueError("method='lowrank' knows the spectrum of a Generator only; use method='auto'.")
    spread, constant = operator.spread(Z), operator.detach()
    beta = 0.0 if is_general else constant.beta_value
    if method in ("auto", "lowrank") and not is_general and 1.0 + theta <= beta * (1.0 + 1e-12):
        raise SingularVelocityError(
            f"θ = {theta:g} is not above β − 1 = {beta - 1:g}, so (1+θ)I − βV is not positive definite; "
            "choose a larger θ or a smaller β."
        )
    method, reason = _choose(operator) if method == "auto" else (method, "asked for")
    eps = torch.finfo(spread.dtype).eps
    tol = max(tol, 4 * eps)
    solve = partial(METHODS[method], theta=theta, tol=tol)
    with torch.no_grad():
        inverse = solve(constant, spread.detach())
    if has_values(Z) and operator.num_nodes:
        judge = _judge_any if is_general else partial(_judge, beta, indefinite=indefinite)
        judge(theta=theta, diagnosis=inverse.diagnosis, eps=eps)
        if inverse.estimated_error > ALLOWED * tol and inverse.diagnosis.condition <= WARN_CONDITION:
            warnings.warn(
                f"(θI + L)⁻¹Z at θ = {theta:g} in {spread.dtype} may have a relative error of "
                f"{inverse.estimated_error:.1e}, not tol = {tol:.1e}: compute in float64, choose a larger θ, or raise "
                "tol.",
                AccuracyWarning,
                stacklevel=4,
            )
    value = operator.restore(InverseAction.apply(*operator.tensors, spread, learned, inverse, constant, solve), Z)
    if not return_solution:
        return value
    condition = inverse.diagnosis.condition
    return Solution(value, Statistics(method, reason, inverse.products, inverse.estimated_error, condition))


def _judge(beta: float, theta: float, diagnosis: Diagnosis, indefinite: bool, eps: float) -> None:
    """Errors and warnings from what x = (θI + L)⁻¹1 tells (see ``Diagnosis``)."""
    if math.isnan(diagnosis.condition):  # NaN in, NaN out: a matter of the input
        return
    where = f"θ = {theta:g}, β = {beta:g}"
    if not diagnosis.condition < 0.02 / eps:
        raise SingularGeneratorError(
            f"θI + L is singular to rounding at {where} (condition number {diagnosis.condition:.1e}): the Perron "
            "eigenvalue of C + βV equals 1 + θ, with row normalisation exactly at θ = β; choose a larger θ."
        )
    if not diagnosis.is_m_matrix:
        message = (
            f"{where} lies below the singular value: the Perron eigenvalue of C + βV exceeds 1 + θ, so (θI + L)⁻¹ is "
            "neither a Neumann series nor a mean of the flow"
        )
        if not indefinite:
            raise SingularGeneratorError(f"{message}; choose a larger θ, or pass indefinite=True to solve it anyway.")
        warnings.warn(f"{message}.", NearSingularWarning, stacklevel=3)
    if diagnosis.condition > WARN_CONDITION:
        warnings.warn(
            f"θI + L is nearly singular at {where}: condition number {diagnosis.condition:.1e}, singular value "
            f"at about θ* = {diagnosis.singular_theta:.4g}; expect outputs of size 1/(θ − θ*).",
            NearSingularWarning,
            stacklevel=3,
        )


def _judge_any(theta: float, diagnosis: Diagnosis, eps: float) -> None:
    """The same for an operator of which nothing but its condition number is known."""
    if not diagnosis.condition < 0.02 / eps:
        raise SingularGeneratorError(
            f"θI + L is singular to rounding at θ = {theta:g} (condition number {diagnosis.condition:.1e}); choose "
            "another θ."
        )
    if diagnosis.condition > WARN_CONDITION:
        warnings.warn(
            f"θI + L is nearly singular at θ = {theta:g}: condition number {diagnosis.condition:.1e}.",
            NearSingularWarning,
            stacklevel=4,
        )
