"""β, θ and T as parameters, kept in their range by how they are written."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

#: What a layer can learn, and the solver that has it, or None where every solver has.
LEARNABLE: dict[str, str | None] = {"beta": None, "theta": "inverse", "time": "exponential"}


class Positive(nn.Module):
    r"""Learnable positive numbers, :math:`\log(1 + e^{r})` of a parameter r that may take any value.

    Args:
        name: what they are, for the error message.
        initial: the value that all of them start from.
        shape: of the parameter.

    Example:
        >>> Positive("beta", 0.5, (2,))()
        tensor([0.5000, 0.5000], grad_fn=<SoftplusBackward0>)
    """

    def __init__(self, name: str, initial: float, shape: tuple[int, ...] = ()) -> None:
        super().__init__()
        if not initial > 0.0:
            raise ValueError(f"a learned {name} starts from {initial:g}; it must start above 0.")
        self.initial = initial
        self.raw = nn.Parameter(torch.empty(shape))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.constant_(self.raw, self.initial + math.log(-math.expm1(-self.initial)))

    def forward(self) -> Tensor:
        return softplus(self.raw)


def learned_values(
    learn: tuple[str, ...], solver: str, heads: int, beta: float, theta: float, time: float
) -> nn.ModuleDict:
    """One :class:`Positive` for each name in ``learn``: β per head, T, and of θ what it has above the largest β."""
    for name in learn:
        if name not in LEARNABLE:
            raise ValueError(f"cannot learn {name!r}; choose among: {', '.join(LEARNABLE)}.")
        if LEARNABLE[name] not in (None, solver):
            raise ValueError(f"solver={solver!r} has no {name}; it belongs to solver={LEARNABLE[name]!r}.")
    if "theta" in learn and not theta > beta:
        raise ValueError(f"a learned theta stays above beta; it starts from {theta:g}, which is not above {beta:g}.")
    starts = {"beta": (beta, (heads,)), "theta": (theta - beta, ()), "time": (time, ())}
    return nn.ModuleDict({name: Positive(name, *starts[name]) for name in LEARNABLE if name in learn})
