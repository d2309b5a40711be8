"""The numbers that a preset of the playground speaks of, by the library; the page computes them in ``numbers.js``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from advdiff.viz.playground_widget import Playground


def _scaled(widget: Playground, state: Tensor) -> Tensor:
    """Divided by the growth, if the page does."""
    rate = widget.beta - (widget.attention == "off")
    return state * math.exp(-rate * widget.time) if widget.divided else state


def _smallest(widget: Playground) -> float:
    return float(_scaled(widget, widget.state).min())


def _critical(widget: Playground) -> float:
    """θ*, the negative of the smallest real part of the eigenvalues of L."""
    return -float(torch.linalg.eigvals(widget.generator.to_dense()).real.min())


def _steps(widget: Playground) -> float:
    """How far n layers (I − τL)^n z(0), τ = T/n, are from the flow at T."""
    step = torch.eye(len(widget.start), dtype=torch.float64) - widget.generator.to_dense() * widget.time / widget.layers
    state = torch.linalg.matrix_power(step, widget.layers) @ torch.tensor(widget.start, dtype=torch.float64)
    return float(_scaled(widget, (state - widget.state).abs()).max())


def _norm(widget: Playground, matrix: Tensor) -> float:
    """That of chapter 5: spectral for the symmetric V, infinity for the row-normalised one."""
    kind: Any = 2 if widget.normalization == "symmetric" else math.inf
    return float(torch.linalg.matrix_norm(matrix, kind))


def _both(widget: Playground) -> tuple[Any, Any]:
    second = widget.second_generator
    if second is None:
        raise ValueError("there is no second graph to compare with; set second to its edges.")
    return widget.generator, second


def _shift(widget: Playground) -> float:
    """x = ‖V′ − V‖."""
    before, after = (generator.velocity.to_dense() for generator in _both(widget))
    return _norm(widget, after - before)


def _variation(widget: Playground) -> float:
    """‖e^{−L′T} − e^{−LT}‖."""
    before, after = (torch.matrix_exp(-widget.time * generator.to_dense()) for generator in _both(widget))
    return _norm(widget, after - before)


def _movement(widget: Playground) -> float:
    """‖z′(T) − z(T)‖ / √N."""
    start = torch.tensor(widget.start, dtype=torch.float64)
    before, after = (torch.matrix_exp(-widget.time * generator.to_dense()) @ start for generator in _both(widget))
    return float(_scaled(widget, after - before).norm()) / math.sqrt(len(start))


NUMBERS: dict[str, Callable[[Playground], float]] = {
    "smallest": _smallest,
    "leftmost": lambda widget: -_critical(widget),
    "critical": _critical,
    "steps": _steps,
    "shift": _shift,
    "variation": _variation,
    "movement": _movement,
}
