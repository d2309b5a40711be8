r"""How far a representation can move when the graph changes: the paper's bounds and the ones that hold. Chapter 5.

All bounds speak of V' − V = ΔV with the same attention C, which does not see the graph, and come in two families:

===========================  ========  ==========================================  =========================
V                            norm      x                                           g
===========================  ========  ==========================================  =========================
:math:`D^{-1/2} A D^{-1/2}`  spectral  :math:`\lVert\Delta\tilde A\rVert_2 \le 2`  μ₂(C) + β − 1, at least β
:math:`D^{-1} A`             infinity  :math:`\lVert\Delta V\rVert_\infty \le 2`   β
===========================  ========  ==========================================  =========================

where x is the size of the shift (:func:`~advdiff.theory.shifts.shift_size`) and g, from :func:`growth`, a rate with
‖e^{-Lt}‖ ≤ e^{gt} for both graphs. Every function takes plain numbers and gives one: what ‖f(L') − f(L)‖ cannot exceed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from advdiff.checks import check_choice, check_nonnegative, expects
from advdiff.operators.attention import Attention
from advdiff.operators.graph import NORMALIZATIONS
from advdiff.theory.norms import log_norm


def _check(**numbers: float) -> None:
    for name, value in numbers.items():
        check_nonnegative(name, value)


def _check_number(**numbers: float) -> None:
    """Rates may be negative, but not NaN, which every comparison would let pass."""
    for name, value in numbers.items():
        if math.isnan(value):
            raise ValueError(f"{name} is {value}; it must be a number.")


def _exp(exponent: float) -> float:
    """e^exponent, infinite instead of an overflow error: a bound may be useless, not a crash."""
    return math.exp(exponent) if exponent < 709.0 else math.inf


@expects
def growth(coupling: Attention | None, beta: float, kind: str = "symmetric") -> float:
    r"""A rate g with :math:`\lVert e^{-\mathbf L t}\rVert \le e^{g t}` for all t ≥ 0, where L = I − C − βV.

    ``symmetric``: μ₂(C) + β − 1 in the spectral norm, since ‖V‖₂ ≤ 1. ``row``: β in the infinity norm for every
    row-stochastic C, since ‖C‖_∞ = 1 and ‖V‖_∞ ≤ 1. Without a coupling (local diffusion, C = 0) it is β − 1.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.theory import bounds
        >>> C = advdiff.Attention(torch.ones(4, 1), torch.ones(4, 1))  # uniform: μ₂(C) = 1
        >>> round(bounds.growth(C, beta=0.5), 6), bounds.growth(None, beta=1.0, kind="row")
        (0.5, 0.0)
    """
    check_choice("kind", kind, NORMALIZATIONS)
    _check(beta=beta)
    if coupling is None:
        return beta - 1.0
    if kind == "symmetric":
        return log_norm(coupling) + beta - 1.0
    if coupling.sums_to_one != "rows":
        raise ValueError("the rows of the coupling need not sum to one; kind='row' needs an attention, not transposed.")
    return beta


# -- the paper ---------------------------------------------------------------------------------------------------------


@expects
def paper_lemma(norm_X: float, norm_E: float) -> float:
    r"""The paper's lemma with M = ω = 1, which every induced norm allows: a bound on ‖e^{X+E} − e^X‖.

    .. math:: \lVert E\rVert\, e^{\lVert X\rVert + \lVert E\rVert}

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.paper_lemma(1.0, 0.5), 4)
        2.2408
    """
    _check(norm_X=norm_X, norm_E=norm_E)
    return norm_E * _exp(norm_X + norm_E) if norm_E else 0.0


@expects
def paper_local(x: float, time: float) -> float:
    r"""The paper's Proposition for local diffusion, with its constant: :math:`T x\, e^{xT}`, x = ‖ΔÃ‖₂.

    True for the symmetric normalisation. Its intermediate inequality fails for D⁻¹A on weighted graphs.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.paper_local(x=0.5, time=2.0), 4)
        2.7183
    """
    _check(x=x, time=time)
    return time * x * _exp(x * time) if x else 0.0


@expects
def paper_advective(x: float, beta: float, time: float, norm_L: float) -> float:
    r"""The paper's bound for advective diffusion before its last step.

    .. math:: \beta T x\; e^{T\lVert\mathbf L\rVert_2}\; e^{\beta T x}

    With ‖L' − L‖ = βx, which is what a fixed C gives. The last step, which turns the final factor into x^m, fails.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.paper_advective(x=0.5, beta=0.5, time=1.0, norm_L=1.5), 4)
        1.4387
    """
    _check(x=x, beta=beta, time=time, norm_L=norm_L)
    return beta * time * x * _exp(time * (norm_L + beta * x)) if beta * x else 0.0


# -- any matrix --------------------------------------------------------------------------------------------------------


@expects
def lemma_series(norm_X: float, norm_E: float) -> float:
    r"""Sharper than the lemma in any submultiplicative norm: :math:`e^{\lVert X\rVert}(e^{\lVert E\rVert}-1)`.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.lemma_series(1.0, 0.5), 4)
        1.7634
    """
    _check(norm_X=norm_X, norm_E=norm_E)
    return _exp(norm_X) * (math.expm1(norm_E) if norm_E < 709.0 else math.inf) if norm_E else 0.0


@expects
def lemma_log_norm(norm_E: float, mu_X: float, mu_X_plus_E: float) -> float:
    r"""The logarithmic-norm bound: :math:`\lVert E\rVert e^{\max(\mu(X),\,\mu(X+E))}`.

    Unlike ‖X‖, the logarithmic norm may be negative: decay counts.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.lemma_log_norm(0.5, mu_X=-1.0, mu_X_plus_E=-0.5), 4)
        0.3033
    """
    _check(norm_E=norm_E)
    _check_number(mu_X=mu_X, mu_X_plus_E=mu_X_plus_E)
    return norm_E * _exp(max(mu_X, mu_X_plus_E)) if norm_E else 0.0


# -- local diffusion ---------------------------------------------------------------------------------------------------


@expects
def local(x: float, time: float, kind: str = "symmetric") -> float:
    r"""Local diffusion :math:`e^{-(\mathbf I-\mathbf V)T}` on undirected graphs; linear in x.

    ``symmetric``: :math:`\min(T x,\; 1 - e^{-2T})` in the spectral norm, attained by rewiring 2K₂.
    ``row``: :math:`\min(T x,\; 2)` in the infinity norm, for directed graphs too.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.local(x=0.5, time=2.0), 4)
        0.9817
    """
    check_choice("kind", kind, NORMALIZATIONS)
    _check(x=x, time=time)
    return min(time * x, 2.0 if kind == "row" else -math.expm1(-2.0 * time))


@expects
def local_sharp(x: float, time: float, kind: str = "symmetric") -> float:
    r"""Local diffusion :math:`e^{-(\mathbf I-\mathbf V)T}`, the best bound in x and T; never above :func:`local`.

    ``symmetric``: :math:`1 - e^{-xT}` in the spectral norm, for undirected graphs; attained for every x ≤ 2.
    ``row``: :math:`2(1 - e^{-xT/2})` in the infinity norm, for graphs in which every node has an edge that arrives,
    directed ones too; attained for every x ≤ 2. With βT in place of T it bounds :math:`e^{-\beta T}e^{-\mathbf L T}`.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.local_sharp(x=0.5, time=2.0), 4)
        0.6321
    """
    check_choice("kind", kind, NORMALIZATIONS)
    _check(x=x, time=time)
    return -2.0 * math.expm1(-x * time / 2) if kind == "row" else -math.expm1(-x * time)


# -- advective diffusion: the replacement for the paper's theorem ------------------------------------------------------


@expects
def exponential(x: float, beta: float, time: float, growth: float) -> float:
    r"""Statements (i) and (ii): :math:`\lVert e^{-L'T}-e^{-LT}\rVert\le\beta T x\, e^{gT}`.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.exponential(x=0.5, beta=0.5, time=1.0, growth=0.5), 4)
        0.4122
    """
    _check(x=x, beta=beta, time=time)
    _check_number(growth=growth)
    return beta * time * x * _exp(growth * time) if beta * time * x else 0.0


@expects
def normalized_exponential(x: float, beta: float, time: float) -> float:
    r"""Statement (ii), normalised, for V = D⁻¹A in the infinity norm: :math:`\min(\beta T x, 2)`.

    For :math:`e^{-\beta T}e^{-\mathbf L T}`, whose rows sum to one when no node is isolated, with any row-stochastic C.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.normalized_exponential(x=0.5, beta=0.5, time=1.0), 4)
        0.25
    """
    _check(x=x, beta=beta, time=time)
    return min(beta * time * x, 2.0)


@expects
def resolvent(x: float, beta: float, theta: float, growth: float) -> float:
    r"""Statement (iii): :math:`\lVert L_h'^{-1}-L_h^{-1}\rVert\le\beta x/(\theta-g)^2` for θ > g, L_h = θI + L.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.resolvent(x=0.5, beta=0.5, theta=1.0, growth=0.5), 4)
        1.0
    """
    _check(x=x, beta=beta)
    if not theta > growth:
        raise ValueError(f"theta is {theta:g} and the growth {growth:g}; the bound needs theta > growth.")
    gap = theta - growth
    return beta * x / gap / gap  # not gap², which can underflow to 0


@expects
def powers(x: float, beta: float, order: int, norm_P: float) -> float:
    r"""Statement (iv): :math:`\lVert P'^k-P^k\rVert\le k\,\beta x\,\max(\lVert P\rVert,\lVert P'\rVert)^{k-1}`.

    Args:
        norm_P: max(‖P‖, ‖P'‖); with V = D⁻¹A in the infinity norm at most 1 + β.

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.powers(x=0.5, beta=0.5, order=2, norm_P=1.5), 4)
        0.75
    """
    _check(x=x, beta=beta, order=order, norm_P=norm_P)
    if not order * beta * x:
        return 0.0
    try:
        return order * beta * x * float(norm_P) ** (order - 1)
    except OverflowError:
        return math.inf


@expects
def first_order_error(x: float, beta: float, time: float, growth: float) -> float:
    r"""Statement (v): the first-order term :math:`\mathcal L_{\exp}(-LT)[\beta T\Delta V]` is wrong by at most

    .. math:: \tfrac12 (\beta T x)^2 e^{gT} .

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.first_order_error(x=0.5, beta=0.5, time=1.0, growth=0.5), 4)
        0.0515
    """
    _check(x=x, beta=beta, time=time)
    _check_number(growth=growth)
    size = beta * time * x
    return 0.5 * size * size * _exp(growth * time) if size else 0.0


@expects
def multilayer(x: float, times: Sequence[float], inputs: Sequence[float], lipschitz: Sequence[float]) -> float:
    r"""K layers of local diffusion (symmetric) with transformations φ_k between: linear in x, exponential in depth.

    .. math::
        \lVert\delta_K\rVert_F \le x \sum_k \tau_k \lVert\phi_k(Z_{k-1})\rVert_F \prod_{j>k}\mathrm{Lip}(\phi_j)

    Args:
        times: τ_k, how long layer k diffuses.
        inputs: ‖φ_k(Z_{k−1})‖_F on the first graph, what layer k diffuses.
        lipschitz: Lip(φ_k).

    Example:
        >>> from advdiff.theory import bounds
        >>> round(bounds.multilayer(x=0.5, times=[1.0, 1.0], inputs=[1.0, 1.0], lipschitz=[1.0, 2.0]), 4)
        1.5
    """
    _check(x=x)
    if not len(times) == len(inputs) == len(lipschitz):
        raise ValueError(
            f"there are {len(times)} times, {len(inputs)} inputs and {len(lipschitz)} Lipschitz constants; "
            "give one of each per layer."
        )
    total = 0.0
    for tau, size, slope in zip(times, inputs, lipschitz, strict=True):
        _check(times=tau, inputs=size, lipschitz=slope)
        total = slope * total + x * tau * size
    return total
