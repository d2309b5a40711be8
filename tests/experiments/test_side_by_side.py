"""Models trained side by side are the library's models, and none of them knows of another."""

from __future__ import annotations

import pytest
import torch

import advdiff
from advdiff.experiments.advection_trained import trained_rows
from advdiff.experiments.advection_world import CHANNELS, World
from advdiff.experiments.side_by_side import SideBySide, Spectrum, fit, taylor_degree
from advdiff.nn.conv import SOLVERS


@pytest.fixture(scope="module")
def world():
    return World.draw("homophily", "noisy", 3, 60)


@pytest.fixture(scope="module")
def graphs(world):
    return tuple(Spectrum.of(V) for V in world.velocities)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_member_is_the_model_of_the_library(world, graphs, solver):
    x = world.X.float()
    models = SideBySide(CHANNELS, [0.0, 0.3, 1.9], solver, theta=2.5, order=3, seed=4)
    for value in models.parameters.values():  # members that differ
        value.data += 0.1 * torch.randn(value.shape, generator=torch.Generator().manual_seed(5))
    found = models(x, graphs[0])
    for number, mine in enumerate(found):
        wanted = models.member(number)(x, world.velocities[0].edge_index)[:, 0]
        assert torch.allclose(mine, wanted, rtol=1e-4, atol=1e-5)


def test_members_are_trained_as_if_they_were_alone(world, graphs):
    x, held_out = world.X.float(), torch.arange(60) % 4 == 0
    labels = [label.T.float() for label in world.labels([(0.5, 1), (0.25, 2)])]
    together = fit(
        SideBySide(CHANNELS, [0.2, 0.9], "inverse", theta=2.0), x, graphs, tuple(labels), held_out, epochs=20, most=20
    )
    for number, beta in enumerate((0.2, 0.9)):
        mine = tuple(label[number : number + 1] for label in labels)
        alone = fit(SideBySide(CHANNELS, [beta], "inverse", theta=2.0), x, graphs, mine, held_out, epochs=20, most=20)
        assert torch.allclose(together.test[number], alone.test[0], rtol=1e-3)
        assert torch.allclose(together.valid[number], alone.valid[0], rtol=1e-3)


def test_training_goes_on_while_it_helps(world, graphs):
    """A member that chose its epoch in the last tenth goes on, and as if it had never stopped."""
    x, held_out = world.X.float(), torch.arange(60) % 4 == 0
    labels = tuple(label.T.float() for label in world.labels([(0.5, 1)]))

    def run(epochs: int, most: int):
        return fit(SideBySide(CHANNELS, [0.5], "series"), x, graphs, labels, held_out, epochs=epochs, most=most)

    short, extended, long = run(10, 10), run(10, 40), run(40, 40)
    assert not short.converged and short.epochs == 10
    assert extended.epochs == 40 and torch.allclose(extended.valid, long.valid, rtol=1e-3)
    assert extended.valid < short.valid
    # What counts as better is 99 % of what was: with a gain that no training reaches the first epoch looked at is kept.
    stuck = fit(SideBySide(CHANNELS, [0.5], "series"), x, graphs, labels, held_out, epochs=40, most=80, gain=0.999)
    assert stuck.converged and (stuck.chosen, stuck.epochs) == (10, 40)


def test_the_taylor_series_is_long_enough():
    for norm in (0.5, 2.0, 8.0):
        k = torch.arange(taylor_degree(norm) + 1, dtype=torch.float64)
        total = (k * torch.tensor(norm).log() - torch.lgamma(k + 1)).exp().sum()
        assert abs(float(total) - float(torch.tensor(norm, dtype=torch.float64).exp())) < 2e-6 * 2.72**norm


def test_rows_have_a_prediction_and_two_measurements():
    for solver in ("exponential", "inverse"):
        rows = trained_rows("density", "block", solver, [0.25], seed=1, num_nodes=80, epochs=10, most=10)
        assert [row["power"] for row in rows] == [1, 2, 3]
        for row in rows:
            assert row["betas"][0] <= min(row["measured"], row["linear"])
            assert max(row["measured"], row["linear"]) <= row["betas"][-1]
            assert row["reachable"] and len(row["errors"]) == len(row["errors_linear"]) == len(row["betas"]) == 4
    (row, *_) = trained_rows("block", "block", "series", [0.5], seed=1, num_nodes=80, epochs=10, most=10)
    assert "measured" not in row and len(row["errors"]) == 2


def test_bad_input():
    V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2, kind="row")
    with pytest.raises(ValueError, match="symmetric"):
        Spectrum.of(V)
    with pytest.raises(ValueError, match="solver"):
        SideBySide(2, [0.1], "magic")
    with pytest.raises(ValueError, match="solver"):
        trained_rows("density", "block", "attention", [0.25], seed=1)
