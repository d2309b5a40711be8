r"""The law of :mod:`advdiff.theory.advection_law` on trained models, next to linear read-outs. Chapter 6a."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from advdiff.checks import check_choice
from advdiff.experiments.advection_law import Row, closed_form, minimum, one_atom, sweep
from advdiff.experiments.advection_world import CHANNELS, POWERS, World, response
from advdiff.experiments.side_by_side import SideBySide, Spectrum, fit
from advdiff.operators import Generator, Velocity
from advdiff.propagation import resolvent
from advdiff.theory import advection_law as law

# θ of the inverse. With attention it has a pole where 1 + β, the eigenvalue of the constants, is 1 + θ: β must stay
# below θ, and with θ = 1 the law would leave this range for most labels.
THETA = 4.0
# The values of β, as multiples of the predicted one: equally spaced. Those of the inverse end earlier, at its pole.
MULTIPLES = {"exponential": (0.4, 0.8, 1.2, 1.6), "inverse": (0.4, 0.7, 1.0, 1.3)}
DENSITY = 4.0
SERIES_BETAS = (0.2, 1.0)
HELD_OUT = 0.25


def _linear_inverse(V: Velocity, Z: torch.Tensor, beta: float) -> torch.Tensor:
    return resolvent(Generator(None, V, beta), Z, theta=THETA, tol=1e-9)


def trained_rows(
    shift: str, signal: str, solver: str, shares: Sequence[float], seed: int, num_nodes: int = 200, *,
    order: int = 1, epochs: int = 200, most: int = 1600,
) -> list[Row]:  # fmt: skip
    r"""Best β of AdvDIFFormers of width 8, trained on graph #1, on graph #12; one row for each share w and power k.

    The graphs have few nodes and ``DENSITY`` times as many edges as those of the study: the eigenvalues are the
    same, and the degrees those of graphs with DENSITY · N nodes.

    Each β is one model, trained by Adam on three quarters of the nodes; the rest chooses the epoch. The values of β
    are ``MULTIPLES`` of the prediction from the environments (``jacobi``). Those of the inverse are at most 0.95 θ;
    where the prediction is too large for that, ``reachable`` is False. ``measured`` is where the parabola through the
    best three errors is smallest, ``linear`` the same for a linear decoder on the features, propagated without
    attention, with the same values of β on the same two graphs. Of the series there is no prediction: its β are
    ``SERIES_BETAS``.

    Example:
        >>> from advdiff.experiments.advection_trained import trained_rows
        >>> rows = trained_rows("homophily", "block", "inverse", [0.5], seed=0, num_nodes=100, epochs=10, most=10)
        >>> [row["power"] for row in rows], len(rows[0]["errors"])
        ([1, 2, 3], 4)
    """
    check_choice("solver", solver, ("exponential", "inverse", "series"))
    world = World.draw(shift, signal, seed, num_nodes, density=DENSITY)
    gain = law.exponential_gain if solver == "exponential" else _inverse_gain
    upper = 0.95 * THETA / MULTIPLES["inverse"][-1] if solver == "inverse" else 10.0
    cases = [(share, power) for share in shares for power in POWERS]
    responses = [response(*case) for case in cases]
    predicted = [law.best_beta(f, gain, *world.measures(num_nodes), upper=upper) for f in responses]
    grids = [SERIES_BETAS if solver == "series" else tuple(m * b for m in MULTIPLES[solver]) for b in predicted]
    labels = world.labels(cases)
    column = torch.arange(len(cases)).repeat_interleave(len(grids[0]))
    targets = [label.T[column].float() for label in labels]
    held_out = torch.rand(num_nodes, generator=torch.Generator().manual_seed(seed)) < HELD_OUT
    graphs = [Spectrum.of(V) for V in world.velocities]
    models = SideBySide(CHANNELS, [b for grid in grids for b in grid], solver, order=order, theta=THETA, seed=seed)
    found = fit(
        models, world.X.float(), (graphs[0], graphs[1]), (targets[0], targets[1]), held_out, epochs=epochs, most=most
    )
    rows: list[Row] = []
    for number, (share, power) in enumerate(cases):
        grid, mine = grids[number], column == number
        row: Row = {"kind": "trained", "shift": shift, "signal": signal, "solver": solver, "order": order}
        row |= {"pure": share == 1, "seed": seed, "nodes": num_nodes, "share": share, "power": power}
        row |= {"betas": list(grid), "errors": found.test[mine].tolist(), "valid": found.valid[mine].tolist()}
        row |= {"chosen": found.chosen[mine].tolist(), "epochs": found.epochs[mine].tolist()}
        if solver != "series":
            solve = closed_form if solver == "exponential" else _linear_inverse
            one = [label[:, number : number + 1] for label in labels]
            linear = sweep(solve, world.velocities, world.X, one, grid)[1][:, 0] / (one[1] ** 2).mean()
            before, after = (environment.eigenvalue for environment in world.pair)
            row |= {"law": one_atom(before, after, responses[number], solver, theta=THETA)}
            row |= {"jacobi": predicted[number], "reachable": predicted[number] < 0.99 * upper}
            row |= {"measured": minimum(grid, found.test[mine]), "linear": minimum(grid, linear)}
            row |= {"errors_linear": linear.tolist()}
        rows.append(row)
    return rows


def _inverse_gain(places: torch.Tensor, beta: float | torch.Tensor) -> torch.Tensor:
    return law.inverse_gain(places, beta, theta=THETA)
