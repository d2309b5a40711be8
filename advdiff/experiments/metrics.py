"""Losses and metrics over the rows that count: masks, and NaN where a label is unknown; what training makes of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from advdiff.checks import check_choice, check_floating, expects, has_values
from advdiff.experiments.recipe import OBJECTIVES


@expects
def mse(output: Tensor, target: Tensor, mask: Tensor | None = None) -> float:
    """Mean squared error over all known entries.

    Example:
        >>> mse(torch.tensor([[1.0], [3.0]]), torch.tensor([[1.0], [float("nan")]]))
        0.0
    """
    output, target = _rows(output, target, mask)
    output, target = _known(output, target)
    return float((output - target).double().square().mean()) if target.numel() else math.nan


@expects
def rmse(output: Tensor, target: Tensor, mask: Tensor | None = None) -> float:
    """Root of the mean squared error."""
    return math.sqrt(mse(output, target, mask))


@expects
def accuracy(output: Tensor, target: Tensor, mask: Tensor | None = None) -> float:
    """Share of right answers: the largest logit of several, or a positive one where there is one logit per label."""
    output, target = _rows(output, target, mask)
    if not bool(output.isfinite().all()):  # a comparison with NaN is False, which is the right answer to many questions
        return math.nan
    if _several_classes(output, target):
        right = output.argmax(dim=-1) == target
    else:
        output, target = _known(output, target)
        right = (output > 0) == (target > 0.5)
    return float(right.double().mean()) if right.numel() else math.nan


@expects
def roc_auc(output: Tensor, target: Tensor, mask: Tensor | None = None) -> float:
    """Area under the ROC curve: the probability that a positive scores above a negative, a tie counting one half.

    With several yes-or-no labels, the mean over those that have both a positive and a negative (as OGB does); NaN where
    none has.
    """
    output, target = _rows(output, target, mask)
    if _several_classes(output, target):
        if output.size(-1) != 2:
            raise ValueError(f"roc_auc is for yes-or-no labels; the output has {output.size(-1)} classes.")
        output = output[:, 1:] - output[:, :1]
    scores = _as_columns(output)
    labels = _as_columns(target).to(torch.float64)
    if scores.shape != labels.shape:
        raise ValueError(f"the output has shape {tuple(scores.shape)} and the labels {tuple(labels.shape)}.")
    areas = [_area(scores[:, task], labels[:, task]) for task in range(labels.size(1))]
    defined = [area for area in areas if not math.isnan(area)]
    return sum(defined) / len(defined) if defined else math.nan


def _area(scores: Tensor, labels: Tensor) -> float:
    """Mann and Whitney's statistic, from ranks in which ties share their mean."""
    known = ~labels.isnan()
    scores, positive = scores[known].double(), labels[known] > 0.5
    positives = int(positive.sum())
    negatives = positive.numel() - positives
    if not positives or not negatives or not bool(scores.isfinite().all()):
        return math.nan
    _, group, sizes = scores.unique(return_inverse=True, return_counts=True)
    last = sizes.cumsum(0).double()
    ranks = (last - (sizes - 1).double() / 2)[group]
    return (float(ranks[positive].sum()) - positives * (positives + 1) / 2) / (positives * negatives)


Metric = Callable[..., float]
METRICS: dict[str, Metric] = {"mse": mse, "rmse": rmse, "roc_auc": roc_auc, "accuracy": accuracy}
HIGHER_IS_BETTER = frozenset({"roc_auc", "accuracy"})
#: The paper prints shares as percentages; records hold them as shares.
PERCENT = frozenset({"roc_auc", "accuracy"})


def metric(name: str) -> Metric:
    """The metric of that name."""
    check_choice("metric", name, METRICS)
    return METRICS[name]


def better(name: str, value: float, than: float) -> bool:
    """Whether ``value`` is the better one; NaN never is, and anything is better than NaN."""
    if math.isnan(value) or math.isnan(than):
        return not math.isnan(value)
    return value > than if name in HIGHER_IS_BETTER else value < than


def loss(name: str, output: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
    """What training minimises for a metric: squared error, or cross entropy for roc_auc and accuracy."""
    output, target = _rows(output, target, mask)
    if name in PERCENT and _several_classes(output, target):
        return functional.cross_entropy(output, target) if target.numel() else output.sum()
    output, target = _known(output, target)
    if not target.numel():  # no label in this batch: nothing to learn, and no NaN
        return output.sum()
    if name in PERCENT:
        return functional.binary_cross_entropy_with_logits(output, target)
    return functional.mse_loss(output, target)


def _several_classes(output: Tensor, target: Tensor) -> bool:
    """Class numbers against one logit per class, rather than one number per label."""
    return not target.is_floating_point() and output.dim() == 2 and output.size(1) > 1 and target.dim() == 1


def _as_columns(values: Tensor) -> Tensor:
    return values.unsqueeze(-1) if values.dim() == 1 else values


def _rows(output: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    check_floating("output", output)
    if not has_values(output) or not has_values(target):
        raise ValueError("the output or the labels lie on the meta device and have no values; move them to a real one.")
    if not output.dim() or not target.dim() or target.is_complex():
        raise ValueError("the output or the labels are a single or a complex number; both need one row per answer.")
    if mask is not None and (mask.dtype != torch.bool or mask.shape != target.shape[:1]):
        raise ValueError(
            f"mask is {mask.dtype} of shape {tuple(mask.shape)}; it must be torch.bool of shape ({target.size(0)},)."
        )
    if output.size(0) != target.size(0):
        raise ValueError(
            f"the output has {output.size(0)} rows and the labels {target.size(0)}; they must be the same."
        )
    return (output, target) if mask is None else (output[mask], target[mask])


def _known(output: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Entries with a label, as two vectors."""
    output, target = _as_columns(output), _as_columns(target)
    if output.shape != target.shape:
        raise ValueError(f"the output has shape {tuple(output.shape)} and the labels {tuple(target.shape)}.")
    target = target.to(output.dtype)
    known = ~target.isnan()
    return output[known], target[known]


#: Output → loss of the batch.
Loss = Callable[[Tensor], Tensor]


@dataclass(eq=False)
class Objective:
    """What training minimises where its data come as several environments e with losses R_e.

    - ``erm``, empirical risk: the mean of R_e.
    - ``irm``, invariant risk (Arjovsky et al., 2019, version 1): R_e + λ (∂/∂w R_e(w · f))² at w = 1. The penalty is
      zero where no environment would like the outputs f to be rescaled.
    - ``groupdro``, the worst group (Sagawa et al., 2020): Σ_e q_e R_e, where each look at an environment multiplies its
      weight, q_e ← q_e e^{η R_e} / Σ.

    Steps take one environment at a time, so a batch must not mix them; all three are then sums over batches.

    Called with a batch of one environment and the model's output there, it gives the loss.

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
