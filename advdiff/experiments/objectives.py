"""What training minimises, where the training data come as several environments e with losses R_e.

- ``erm``, empirical risk: the mean of R_e.
- ``irm``, invariant risk (Arjovsky et al., 2019, version 1): R_e + λ (∂/∂w R_e(w · f))² at w = 1. The penalty is zero
  where no environment would like the outputs f to be rescaled.
- ``groupdro``, the worst group (Sagawa et al., 2020): Σ_e q_e R_e, where each look at an environment multiplies its
  weight, q_e ← q_e e^{η R_e} / Σ.

Steps take one environment at a time, so a batch must not mix them; all three are then sums over batches.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from advdiff.checks import check_choice
from advdiff.experiments.budget import OBJECTIVES

#: Output → loss of the batch.
Loss = Callable[[Tensor], Tensor]


@dataclass(eq=False)
class Objective:
    """The loss of a batch of one environment, from the model's output there.

    Args:
        name: ``"erm"``, ``"irm"`` or ``"groupdro"``.
        environments: how many there are.
        strength: λ of irm, η of groupdro.

    Example:
        >>> import torch
        >>> objective, target = Objective("irm", environments=2, strength=1.0), torch.tensor([2.0])
        >>> objective(lambda f: (f - target).square().mean(), torch.tensor([1.0]), environment=0).item()
        5.0
    """

    name: str
    environments: int
    strength: float
    #: q, the weights of groupdro.
    weights: Tensor | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        check_choice("objective", self.name, OBJECTIVES)

    def __call__(self, loss: Loss, output: Tensor, environment: int) -> Tensor:
        if self.name == "irm":
            scale = output.new_ones((), requires_grad=True)
            value = loss(scale * output)
            (slope,) = torch.autograd.grad(value, scale, create_graph=True)
            return value + self.strength * slope.square()
        value = loss(output)
        return value if self.name == "erm" else self._weigh(value.detach(), environment) * value

    def _weigh(self, value: Tensor, environment: int) -> Tensor:
        """E q_e, so that equal weights are those of ``erm``."""
        if self.weights is None:
            self.weights = value.new_full((self.environments,), 1.0 / self.environments)
        logits = self.weights.log()
        logits[environment] += self.strength * value
        self.weights = logits.softmax(0)  # the same as q e^{ηR} / Σ, without an overflow
        return self.environments * self.weights[environment]
