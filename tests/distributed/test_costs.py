"""Formulas of what a product and a step cost."""

from __future__ import annotations

import math

import pytest
import torch

from advdiff.distributed.costs import Machine, cost_of_product, most_rows_at_random, predict_step

MACHINE = Machine(1e8, 10.0, 100.0, 1e-6, 1e-7, speed=1e9, seconds_of_sum=1e-3)


@pytest.mark.parametrize("parts", [2, 5, 16])
def test_random_parts_send_no_more_rows_than_the_bound(parts):
    drawn = torch.Generator().manual_seed(parts)
    nodes, edges = 20_000, 100_000
    source, target = torch.randint(nodes, (2, edges), generator=drawn)
    owner = torch.randint(parts, (nodes,), generator=drawn)
    crossing = owner[source] != owner[target]
    sent = (source[crossing] * parts + owner[target[crossing]]).unique().numel() / parts
    bound = most_rows_at_random(nodes, edges, parts)
    assert 0.8 * bound < sent < bound  # degrees scatter around their mean, which Jensen charges for
    assert most_rows_at_random(nodes, edges, 1) == 0


def test_a_regular_graph_reaches_the_bound():
    assert most_rows_at_random(1000, 3000, 4) == pytest.approx(250 * 3 * (1 - 0.75**3))


def test_a_step_is_the_sum_of_its_parts():
    one = predict_step(1e6, 1e7, 1, 0, MACHINE, channels=64, width=32, order=2)
    assert one.memory == pytest.approx(1e8 + 4e6 * (64 + 320) + 1e9)
    assert one.computing == pytest.approx(2.0) and one.sending == 0
    four = predict_step(1e6, 1e7, 4, 1000, MACHINE, channels=64, width=32, order=2)
    assert four.memory - 1e8 == pytest.approx((one.memory - 1e8) / 4 + 2 * 1000 * 4 * 32)
    forward = cost_of_product(1000, 1, 32)
    assert four.sent == pytest.approx(4 * sum(forward))  # two products forward, two backward
    assert four.sending == pytest.approx(4 * forward.exchanged / 1e9 + 8 * 1e-3 * math.log2(4))
