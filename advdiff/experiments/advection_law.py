r"""The law of :mod:`advdiff.theory.advection_law` put to the test: predicted against measured best β. Chapter 6a.

Each function draws one world (:mod:`advdiff.experiments.advection_world`), predicts the best β from the environments
alone, measures it with the library's solvers, and returns rows of numbers. Errors are ‖ŷ' − y'‖²/‖y'‖².
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from advdiff.checks import check_choice
from advdiff.experiments.advection_world import CASES, POWERS, World, response
from advdiff.operators import Attention, Generator, Velocity
from advdiff.propagation import exponential, powers, resolvent
from advdiff.theory import advection_law as law
from advdiff.theory import gap

THETA = 1.0
Row = dict[str, Any]
Solve = Callable[[Velocity, Tensor, float], Tensor]


def closed_form(V: Velocity, Z: Tensor, beta: float) -> Tensor:
    """e^{−(I − βV)}Z: no attention, T = 1."""
    return exponential(Generator(None, V, beta), Z, tol=1e-9)


def attentive(V: Velocity, Z: Tensor, beta: float) -> Tensor:
    """e^{−(I − C − βV)}Z with the attention of the features among themselves."""
    return exponential(Generator(Attention(Z, Z), V, beta), Z, tol=1e-9)


def inverse(V: Velocity, Z: Tensor, beta: float) -> Tensor:
    """((1 + θ)I − βV)^{−1}Z with θ = 1; needs β < 2."""
    return resolvent(Generator(None, V, beta), Z, theta=THETA, tol=1e-9)


SOLVERS: dict[str, Solve] = {"exponential": closed_form, "attention": attentive, "inverse": inverse}


def sweep(
    solve: Solve, graphs: Sequence[Velocity], Z: Tensor, labels: Sequence[Tensor], betas: Sequence[float]
) -> tuple[Tensor, Tensor]:
    """Squared errors on both graphs of a linear decoder that is fitted on the first: two tensors [betas, labels]."""
    before: list[Tensor] = []
    after: list[Tensor] = []
    for beta in betas:
        states = [solve(V, Z, beta) for V in graphs]
        readout = gap.fit_readout(states[0], labels[0], ridge=1e-10)
        for found, state, label in zip((before, after), states, labels, strict=True):
            found.append(((readout(state) - label) ** 2).mean(0))
    return torch.stack(before), torch.stack(after)


def minimum(betas: Sequence[float], errors: Tensor) -> float:
    """Where the errors over equally spaced betas are smallest: the vertex of a parabola through the best three.

    Example:
        >>> from advdiff.experiments.advection_law import minimum
        >>> minimum([0.0, 0.5, 1.0], (torch.tensor([0.0, 0.5, 1.0]) - 0.6) ** 2)
        0.6
    """
    best = int(errors.argmin())
    if best in (0, len(betas) - 1):
        return float(betas[best])
    left, middle, right = errors[best - 1 : best + 2].tolist()
    return round(betas[best] + (betas[1] - betas[0]) / 2 * (left - right) / (left - 2 * middle + right), 4)


def error_at(betas: Sequence[float], errors: Tensor, beta: float) -> float:
    """The error at β, linearly between the grid's points; beyond the last point, that of the last."""
    place = min(max(beta, betas[0]), betas[-1]) / (betas[1] - betas[0])
    left = min(int(place), len(betas) - 2)
    return float(errors[left] + (place - left) * (errors[left + 1] - errors[left]))


def one_atom(lam: float, other: float, f: law.Response, solver: str, theta: float = THETA) -> float | None:
    """The law for one atom, None where it has no solution.

    Example:
        >>> from advdiff.experiments.advection_law import one_atom
        >>> round(one_atom(0.5, 0.25, lambda s: s.exp(), "exponential"), 6)
        1.0
    """
    before, after = (float(f(torch.tensor(s, dtype=torch.float64))) for s in (lam, other))
    try:
        if solver == "inverse":
            return law.inverse_law(lam, other, after / before, theta=theta)
        return law.exponential_law(lam, other, after / before)
    except ValueError:
        return None


def linear_rows(
    shift: str, signal: str, solver: str, seed: int, num_nodes: int = 1000, *, step: float = 0.1
) -> list[Row]:
    """Predicted and measured best β for every share and power, with a linear decoder on the propagated features.

    ``law`` is the formula for one atom, ``atoms`` the limit N → ∞ with all atoms, ``jacobi`` with edge noise,
    ``measured`` the minimum of the test error over β, and ``train`` that of the training error.

    Example:
        >>> from advdiff.experiments.advection_law import linear_rows
        >>> row = linear_rows("homophily", "block", "exponential", seed=0, num_nodes=400)[3]  # w = 1/2, k = 1
        >>> row["share"], row["power"], abs(row["law"] - row["measured"]) < 0.1
        (0.5, 1, True)
    """
    check_choice("solver", solver, SOLVERS)
    world = World.draw(shift, signal, seed, num_nodes)
    upper = 1.95 if solver == "inverse" else 10.0
    betas = [step * i for i in range(round(upper / step) + 1)]
    labels = world.labels(CASES)
    before, after = sweep(SOLVERS[solver], world.velocities, world.X, labels, betas)
    sizes = [(label**2).mean(0) for label in labels]
    before, after = before / sizes[0], after / sizes[1]
    gain = law.inverse_gain if solver == "inverse" else law.exponential_gain
    rows = []
    for column, (share, power) in enumerate(CASES):
        f, errors = response(share, power), after[:, column]
        exact = one_atom(world.pair[0].eigenvalue, world.pair[1].eigenvalue, f, solver)
        predicted = {
            name: law.best_beta(f, gain, *world.measures(nodes), upper=upper)
            for name, nodes in (("atoms", None), ("jacobi", num_nodes))
        }
        found = {"measured": minimum(betas, errors), "train": minimum(betas, before[:, column])}
        named = {"jacobi": predicted["jacobi"], "train": found["train"], "zero": 0.0, "fifth": 0.2, "local": 1.0}
        rows.append(
            {"kind": "linear", "shift": shift, "signal": signal, "solver": solver, "seed": seed, "nodes": num_nodes}
            | {"share": share, "power": power, "law": exact}
            | predicted
            | found
            | {f"error_{name}": error_at(betas, errors, beta) for name, beta in named.items()}
            | {
                "error_law": None if exact is None else error_at(betas, errors, exact),
                "error_best": float(errors.min()),
            }
        )
    return rows


def series_rows(shift: str, seed: int, num_nodes: int = 1000) -> list[Row]:
    """Errors of the series with fitted weights for K = 1, 2, 3 and two β, and what the Jacobi matrix predicts.

    Example:
        >>> from advdiff.experiments.advection_law import series_rows
        >>> row = series_rows("homophily", seed=0, num_nodes=400)[3]  # K = 1 of w = 1/2, k = 1
        >>> row["order"], row["power"], row["error_low"] < 1e-9
        (1, 1, True)
    """
    world = World.draw(shift, "block", seed, num_nodes)
    labels = world.labels(CASES)
    rows = []
    for order in POWERS:
        errors = []
        for beta in (0.2, 1.0):
            states = [
                torch.cat(list(powers(Generator(None, V, beta).propagator, world.X, order)), 1)
                for V in world.velocities
            ]
            readout = gap.fit_readout(states[0], labels[0], ridge=0.0)
            errors.append(((readout(states[1]) - labels[1]) ** 2).mean(0) / (labels[1] ** 2).mean(0))
        for column, (share, power) in enumerate(CASES):
            predicted = law.series_errors(response(share, power), order, *world.measures(num_nodes)).test
            rows.append(
                {"kind": "series", "shift": shift, "seed": seed, "nodes": num_nodes, "share": share, "power": power}
                | {"order": order, "predicted": float(predicted)}
                | {"error_low": float(errors[0][column]), "error_high": float(errors[1][column])}
            )
    return rows
