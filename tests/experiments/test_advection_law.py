"""The test of the law: labels and errors written out with dense matrices, and agreement where the law promises it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from advdiff.experiments import advection_law as trial
from advdiff.experiments.advection_study import study_rows
from advdiff.experiments.advection_world import World

RESULTS = Path(__file__).parents[2] / "results" / "advection_law.jsonl"


def test_labels_are_functions_of_the_graph():
    world = World.draw("homophily", "noisy", 1, 60)
    x = world.X @ world.w
    for V, found in zip(world.velocities, world.labels([(0.25, 1), (0.5, 3)]), strict=True):
        dense = V.to_dense()
        assert torch.allclose(found[:, 0], 0.75 * x + 0.25 * dense @ x)
        assert torch.allclose(found[:, 1], 0.5 * x + 0.5 * dense @ dense @ dense @ x)


@pytest.mark.parametrize("solver", sorted(trial.SOLVERS))
def test_sweep_is_least_squares_on_dense_states(solver):
    world = World.draw("block", "block", 2, 60)
    labels = world.labels([(0.5, 1)])
    found = trial.sweep(trial.SOLVERS[solver], world.velocities, world.X, labels, [0.3])
    ones, eye, states = torch.ones(60, 1, dtype=torch.float64), torch.eye(60, dtype=torch.float64), []
    for V in world.velocities:
        P = 0.3 * V.to_dense()
        if solver == "attention":
            q = torch.nn.functional.normalize(world.X, dim=1)
            weights = 1 + q @ q.T
            P = P + weights / weights.sum(1, keepdim=True)
        state = (
            torch.linalg.solve(2 * eye - P, world.X)
            if solver == "inverse"
            else torch.linalg.matrix_exp(P - eye) @ world.X
        )
        states.append(torch.cat([state, ones], 1))
    weight = torch.linalg.lstsq(states[0], labels[0]).solution
    for errors, state, label in zip(found, states, labels, strict=True):
        assert torch.allclose(errors[0], ((state @ weight - label) ** 2).mean(0), rtol=1e-4, atol=1e-12)


def test_law_and_measurement_agree_where_blocks_are_plain():
    for row in trial.linear_rows("homophily", "block", "exponential", seed=3, num_nodes=600):
        if row["share"] <= 0.5:
            assert abs(row["jacobi"] - row["measured"]) < 0.1 and row["error_jacobi"] < row["error_zero"]


def test_study_with_kept_labels_wants_less_advection():
    for row in study_rows("homophily", seed=1, num_nodes=300)[:2]:
        assert row["shared"] < row["measured"]


@pytest.mark.skipif(not RESULTS.exists(), reason="the recorded rows are not there")
def test_recorded_rows_are_those_of_the_command():
    rows = [json.loads(text) for text in RESULTS.read_text(encoding="utf-8").splitlines()]
    first = next(r for r in rows if r["kind"] == "linear" and (r["solver"], r["seed"]) == ("exponential", 0))
    again = trial.linear_rows(first["shift"], first["signal"], first["solver"], 0, first["nodes"])[0]
    for name in ("law", "atoms", "jacobi", "measured", "error_best", "error_zero"):
        assert again[name] == pytest.approx(first[name], rel=2e-3, abs=1e-6), name


def test_bad_input():
    with pytest.raises(ValueError, match="signal"):
        World.draw("homophily", "loud", 0)
    with pytest.raises(ValueError, match="solver"):
        trial.linear_rows("homophily", "block", "magic", 0)
