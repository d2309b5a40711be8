"""Logistic regression, the baseline that every network should be compared with."""

from __future__ import annotations

import torch
from torch import Tensor


def logistic(X: Tensor, y: Tensor, penalty: float | Tensor = 1.0, *, steps: int = 25) -> Tensor:
    """w that minimises Σ_i log(1 + e^{-(2y_i - 1) x_i·w}) + ½ Σ_j λ_j w_j², by Newton's method.

    There is no intercept: append a column of ones, with a small penalty of its own.

    Args:
        X: [n, f].
        y: [n], 0 or 1.
        penalty: λ > 0, one number or one for each column.
        steps: of Newton's method, which ends earlier once nothing changes.

    Returns:
        [f]; X @ w is the score, positive for the answer 1.

    Example:
        >>> import torch
        >>> from advdiff.nn.baselines.logistic import logistic
        >>> X = torch.tensor([[1.0, 1.0], [2.0, 1.0], [3.0, 1.0], [4.0, 1.0]], dtype=torch.float64)
        >>> w = logistic(X, torch.tensor([0, 0, 1, 1]), penalty=0.1)
        >>> (X @ w > 0).tolist()
        [False, False, True, True]
    """
    if X.dim() != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"X has shape {tuple(X.shape)} and y {tuple(y.shape)}; [n, f] and [n] are needed.")
    target = y.to(X.dtype)
    ridge = torch.as_tensor(penalty, dtype=X.dtype, device=X.device).expand(X.size(1))
    if not bool((ridge > 0).all()):
        raise ValueError("the penalty must be positive, or the weights may have no end.")
    w = X.new_zeros(X.size(1))
    for _ in range(steps):
        p = torch.sigmoid(X @ w)
        curvature = (X * (p * (1 - p))[:, None]).T @ X + torch.diag(ridge)
        step = torch.linalg.solve(curvature, X.T @ (p - target) + ridge * w)
        w = w - step
        if bool(step.abs().max() <= torch.finfo(X.dtype).eps * (1 + w.abs().max())):
            break
    return w
