r"""When advection helps: the weight β that carries a label over to another graph. Chapter 6a.

A signal x has the spectral measures μ and μ' under the velocities V and V' of a training and a test graph
(:mod:`advdiff.theory.spectral_measure`). The labels are y = f(V)x and y' = f(V')x; the model is a·g_β(V)x with a scale
a that is fitted on the training graph. Its errors, relative to ‖y‖² and ‖y'‖², are

.. math::
    \frac{\int (a\,g_\beta - f)^2 \, d\mu}{\int f^2 \, d\mu} , \qquad
    \frac{\int (a\,g_\beta - f)^2 \, d\mu'}{\int f^2 \, d\mu'} , \qquad
    a = \frac{\int g_\beta f \, d\mu}{\int g_\beta^2 \, d\mu} ,

and both are zero if and only if g_β is proportional to f on the supports of both measures. If each is one point, λ
and λ', with r = f(λ')/f(λ), this is one equation for β: :func:`exponential_law`, :func:`inverse_law`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from advdiff.theory.spectral_measure import SpectralMeasure

# f: what the labels do at an eigenvalue, and g_β: what the model does there; both take and give tensors.
Response = Callable[[Tensor], Tensor]
Gain = Callable[[Tensor, Tensor], Tensor]


class Errors(NamedTuple):
    """Relative squared errors on the two graphs, one for each model: ``train`` and ``test``.

    Example:
        >>> import torch
        >>> from advdiff.theory.advection_law import Errors
        >>> Errors(torch.tensor(0.0), torch.tensor(0.5)).test
        tensor(0.5000)
    """

    train: Tensor
    test: Tensor


def exponential_gain(places: Tensor, beta: float | Tensor, *, time: float = 1.0, coupling: float = 0.0) -> Tensor:
    """g_β(λ) = e^{(c + βλ − 1)T}, where the attention acts on the signal as the number c = ``coupling``.

    Example:
        >>> import torch
        >>> from advdiff.theory import advection_law
        >>> advection_law.exponential_gain(torch.tensor([0.0, 1.0]), 1.0)
        tensor([0.3679, 1.0000])
    """
    return ((coupling + beta * places - 1) * time).exp()


def inverse_gain(places: Tensor, beta: float | Tensor, *, theta: float = 1.0, coupling: float = 0.0) -> Tensor:
    """g_β(λ) = 1/(1 + θ − c − βλ).

    Example:
        >>> import torch
        >>> from advdiff.theory import advection_law
        >>> advection_law.inverse_gain(torch.tensor([0.0, 1.0]), 1.0)
        tensor([0.5000, 1.0000])
    """
    return 1 / (1 + theta - coupling - beta * places)


def exponential_law(before: float, after: float, ratio: float, *, time: float = 1.0) -> float:
    r"""β = ln r / ((λ' − λ)T): the slope of ln f between the two eigenvalues. One atom, closed form; c cancels.

    Args:
        before, after: λ and λ', different.
        ratio: r = f(λ')/f(λ) > 0.
        time: T > 0.

    Example:
        >>> from advdiff.theory import advection_law
        >>> round(advection_law.exponential_law(0.643, 0.137, 0.5685 / 0.8215), 2)  # f(λ) = (1 + λ)/2
        0.73
    """
    _check_atoms(before, after)
    if not ratio > 0:
        raise ValueError(f"ratio is {ratio:g}; no exponential changes the sign of a label, so it must be positive.")
    if not time > 0:
        raise ValueError(f"time is {time:g}; it must be positive.")
    return math.log(ratio) / ((after - before) * time)


def inverse_law(before: float, after: float, ratio: float, *, theta: float = 1.0, coupling: float = 0.0) -> float:
    r"""β = (1 + θ − c)(1 − r)/(λ − rλ'), by the straight line through 1/f. One atom, inverse; c matters.

    The inverse exists for all eigenvalues up to 1 if β < 1 + θ − c. So it can follow only labels with
    r > (1 − λ)/(1 − λ') (for λ' < λ), and a ratio beyond is refused.

    Example:
        >>> from advdiff.theory import advection_law
        >>> round(advection_law.inverse_law(0.643, 0.137, 0.5685 / 0.8215), 2)
        1.12
    """
    _check_atoms(before, after)
    if not ratio > 0:
        raise ValueError(f"ratio is {ratio:g}; a positive inverse does not change the sign of a label.")
    scale, denominator = 1 + theta - coupling, before - ratio * after
    beta = scale * (1 - ratio) / denominator if denominator else math.inf
    if not abs(beta) < scale:
        raise ValueError(
            f"ratio is {ratio:g}, for which the inverse would need |β| ≥ 1 + θ − c = {scale:g}, where it has a pole; "
            "take the exponential or the series."
        )
    return beta


def _check_atoms(before: float, after: float) -> None:
    if before == after:
        raise ValueError(f"both eigenvalues are {before:g}; where they agree, every β has the same error.")


def errors(f: Response, g: Response, train: SpectralMeasure, test: SpectralMeasure) -> Errors:
    """Errors of a·g(V)x with the scale a that is best on the training graph.

    ``g`` may give [..., m] for m places: many models at once.

    Example:
        >>> import torch
        >>> from advdiff.theory import advection_law
        >>> from advdiff.theory.spectral_measure import atom
        >>> advection_law.errors(lambda s: 1 + s, torch.ones_like, atom(1.0), atom(0.0)).test
        tensor(1., dtype=torch.float64)
    """
    model, label = g(train.places), f(train.places)
    scale = (train.weights * model * label).sum(-1) / (train.weights * model**2).sum(-1)

    def error(measure: SpectralMeasure) -> Tensor:
        label = f(measure.places)
        difference = scale[..., None] * g(measure.places) - label
        return (measure.weights * difference**2).sum(-1) / (measure.weights * label**2).sum()

    return Errors(error(train), error(test))


def error_curve(f: Response, gain: Gain, betas: Tensor, train: SpectralMeasure, test: SpectralMeasure) -> Errors:
    """:func:`errors` of the models g_β for each of ``betas`` [n].

    Example:
        >>> import torch
        >>> from advdiff.theory import advection_law
        >>> from advdiff.theory.spectral_measure import atom
        >>> betas = torch.tensor([0.0, 0.7275], dtype=torch.float64)
        >>> gain = advection_law.exponential_gain
        >>> advection_law.error_curve(lambda s: 1 + s, gain, betas, atom(0.643), atom(0.137)).test.round(decimals=3)
        tensor([0.1980, 0.0000], dtype=torch.float64)
    """
    return errors(f, lambda s: gain(s, betas[:, None]), train, test)


def best_beta(
    f: Response, gain: Gain, train: SpectralMeasure, test: SpectralMeasure, *, upper: float = 10.0, on: str = "test"
) -> float:
    """The β in [0, ``upper``] with the smallest error on the ``"test"`` or the ``"train"`` graph, to upper · 2e-8.

    The curve may have several minima: the best of 201 points, then the best of 201 between its neighbours, and so on.

    Example:
        >>> from advdiff.theory import advection_law
        >>> from advdiff.theory.spectral_measure import atom
        >>> law = advection_law.exponential_law(0.643, 0.137, 1.137 / 1.643)
        >>> found = advection_law.best_beta(
        ...     lambda s: 1 + s, advection_law.exponential_gain, atom(0.643), atom(0.137)
        ... )
        >>> abs(found - law) < 1e-5
        True
    """
    if on not in Errors._fields:
        raise ValueError(f"on is {on!r}; choose one of: {', '.join(Errors._fields)}.")
    if not upper > 0:
        raise ValueError(f"upper is {upper:g}; it must be positive.")
    low, high = 0.0, upper
    for _ in range(4):
        grid = torch.linspace(low, high, 201, dtype=torch.float64, device=train.places.device)
        found = getattr(error_curve(f, gain, grid, train, test), on)
        best = int(found.argmin())
        low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, 200)])
    return float(grid[best])


def series_errors(f: Response, order: int, train: SpectralMeasure, test: SpectralMeasure) -> Errors:
    r"""Errors of Σ_{k ≤ K} w_k V^k x with weights fitted on the training graph: f projected onto polynomials in L²(μ).

    No β: for every β > 0 the powers of βV span the same space. Zero if f is a polynomial of degree at most K. Where μ
    has fewer than K + 1 atoms the smallest weights are taken.

    Example:
        >>> from advdiff.theory import advection_law
        >>> from advdiff.theory.spectral_measure import spiked
        >>> train, test = spiked(0.643, 0.18), spiked(0.137, 0.12)
        >>> [round(float(advection_law.series_errors(lambda s: 1 + s**2, K, train, test).test), 4) for K in (1, 2)]
        [0.0108, 0.0]
    """
    if order < 0:
        raise ValueError(f"order is {order}; it must not be negative.")
    exponents = torch.arange(order + 1, device=train.places.device)
    powers = [measure.places[:, None] ** exponents for measure in (train, test)]
    root = train.weights.sqrt()
    weights = torch.linalg.lstsq(root[:, None] * powers[0], root * f(train.places), driver="gelsd").solution
    found = []
    for measure, basis in zip((train, test), powers, strict=True):
        label = measure.mean(lambda s: f(s) ** 2)
        found.append((measure.weights * (basis @ weights - f(measure.places)) ** 2).sum() / label)
    return Errors(*found)
