"""Metrics against definitions written out, with masks and unknown labels."""

import math

import pytest
import torch

from advdiff.experiments import metrics

NAN = float("nan")


def pairs_auc(scores, labels):
    """The definition: the share of pairs (positive, negative) in the right order, ties one half."""
    positive, negative = scores[labels > 0.5], scores[labels < 0.5]
    difference = positive[:, None] - negative[None, :]
    return float(((difference > 0).double() + 0.5 * (difference == 0)).mean())


@pytest.mark.parametrize("levels", [2, 5, 1000])
def test_roc_auc_is_the_share_of_ordered_pairs(levels):
    scores = torch.randint(levels, (200,)).float()
    labels = torch.randint(2, (200,)).float()
    assert metrics.roc_auc(scores[:, None], labels[:, None]) == pytest.approx(pairs_auc(scores, labels), abs=1e-12)


def test_roc_auc_of_two_logits_is_that_of_their_difference():
    logits, labels = torch.randn(50, 2), torch.randint(2, (50,))
    expected = pairs_auc(logits[:, 1] - logits[:, 0], labels.float())
    assert metrics.roc_auc(logits, labels) == pytest.approx(expected)
    assert metrics.roc_auc(logits[:, :1], labels) == pytest.approx(pairs_auc(logits[:, 0], labels.float()))


def test_roc_auc_averages_tasks_with_both_classes_over_known_labels():
    scores = torch.randn(40, 3)
    labels = torch.randint(2, (40, 3)).float()
    labels[:, 1] = 1.0  # one class only
    labels[:10, 2] = NAN
    expected = (pairs_auc(scores[:, 0], labels[:, 0]) + pairs_auc(scores[10:, 2], labels[10:, 2])) / 2
    assert metrics.roc_auc(scores, labels) == pytest.approx(expected)
    assert math.isnan(metrics.roc_auc(scores[:, 1:2], labels[:, 1:2]))


def test_roc_auc_refuses_many_classes():
    with pytest.raises(ValueError, match="3 classes"):
        metrics.roc_auc(torch.randn(4, 3), torch.tensor([0, 1, 2, 1]))


def test_mse_and_rmse_leave_out_unknown_labels_and_masked_rows():
    output = torch.tensor([[1.0, 2.0], [3.0, 4.0], [100.0, 100.0]])
    target = torch.tensor([[0.0, NAN], [3.0, 2.0], [0.0, 0.0]])
    mask = torch.tensor([True, True, False])
    assert metrics.mse(output, target, mask) == pytest.approx((1 + 0 + 4) / 3)
    assert metrics.rmse(output, target, mask) == pytest.approx(math.sqrt(5 / 3))
    assert math.isnan(metrics.mse(output, target, torch.zeros(3, dtype=torch.bool)))


def test_accuracy_of_classes_and_of_single_logits():
    logits = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 3.0], [0.0, 1.0, 0.0], [5.0, 1.0, 0.0]])
    labels = torch.tensor([0, 2, 0, 1])
    assert metrics.accuracy(logits, labels) == 0.5
    assert metrics.accuracy(logits, labels, torch.tensor([True, True, True, False])) == pytest.approx(2 / 3)
    assert metrics.accuracy(torch.tensor([[1.0], [-1.0], [2.0]]), torch.tensor([[1.0], [1.0], [NAN]])) == 0.5
    assert metrics.accuracy(torch.tensor([[1.0], [-1.0]]), torch.tensor([1, 0])) == 1.0


@pytest.mark.parametrize("name", ["mse", "roc_auc", "accuracy"])
def test_a_loss_without_labels_is_zero_and_has_a_gradient(name):
    output = torch.randn(3, 1, requires_grad=True)
    loss = metrics.loss(name, output, torch.full((3, 1), NAN))
    loss.backward()
    assert float(loss.detach()) == 0 and output.grad is not None


def test_losses():
    output, target = torch.randn(6, 1), torch.rand(6, 1).round()
    assert torch.allclose(metrics.loss("rmse", output, target), (output - target).square().mean())
    expected = torch.nn.functional.binary_cross_entropy_with_logits(output, target)
    assert torch.allclose(metrics.loss("roc_auc", output, target), expected)
    logits, classes = torch.randn(6, 4), torch.randint(4, (6,))
    expected = torch.nn.functional.cross_entropy(logits[1:], classes[1:])
    mask = torch.arange(6) > 0
    assert torch.allclose(metrics.loss("accuracy", logits, classes, mask), expected)


@pytest.mark.parametrize(
    ("name", "value", "than", "expected"),
    [
        ("mse", 1.0, 2.0, True), ("mse", 2.0, 1.0, False), ("roc_auc", 0.7, 0.6, True), ("accuracy", 0.6, 0.6, False),
        ("mse", NAN, 1.0, False), ("mse", 1.0, NAN, True), ("mse", NAN, NAN, False),
    ],
)  # fmt: skip
def test_better(name, value, than, expected):
    assert metrics.better(name, value, than) is expected


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="rmse"):
        metrics.metric("f1")
    with pytest.raises(ValueError, match="4 rows"):
        metrics.mse(torch.zeros(4, 1), torch.zeros(3, 1))
    with pytest.raises(ValueError, match="shape"):
        metrics.mse(torch.zeros(4, 2), torch.zeros(4, 1))
