"""Logistic regression by Newton's method."""

import pytest
import torch

from advdiff.nn.baselines.logistic import logistic


@pytest.mark.parametrize("penalty", [0.5, torch.tensor([1.0, 10.0, 1e-3])])
def test_the_gradient_vanishes_at_the_solution(penalty):
    draw = torch.Generator().manual_seed(0)
    X = torch.randn(200, 3, generator=draw, dtype=torch.float64)
    y = (X[:, 0] + 0.5 * torch.randn(200, generator=draw, dtype=torch.float64) > 0.2).long()
    w = logistic(X, y, penalty).requires_grad_()
    loss = torch.nn.functional.softplus(-(2 * y - 1) * (X @ w)).sum() + 0.5 * (penalty * w**2).sum()
    (gradient,) = torch.autograd.grad(loss, w)
    assert gradient.abs().max() < 1e-9 * 200
    assert float(w.detach()[0]) > 0.3


def test_separable_data_have_finite_weights_and_bad_input_is_refused():
    X = torch.tensor([[-1.0], [1.0]])
    assert 0 < float(logistic(X, torch.tensor([0, 1]), 1e-2)) < 50
    with pytest.raises(ValueError, match=r"\[n, f\]"):
        logistic(X, torch.zeros(3))
    with pytest.raises(ValueError, match="positive"):
        logistic(X, torch.tensor([0, 1]), 0.0)
