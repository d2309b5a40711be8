r"""The law on the labels of the synthetic study, which networks with ReLU make. Chapter 6a."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from advdiff.datasets import synthetic
from advdiff.datasets.causal.block_model import Environment, Randomness, environments, sample_graph
from advdiff.datasets.causal.mechanism import average_over_blocks
from advdiff.experiments.advection_law import Row, attentive, closed_form, error_at, minimum, sweep
from advdiff.experiments.advection_world import SHARES
from advdiff.operators import Attention, normalize_adjacency
from advdiff.theory import gap


def study_rows(shift: str, seed: int, num_nodes: int = 1000, *, step: float = 0.2, upper: float = 8.0) -> list[Row]:
    r"""Predicted and measured best β on the study's labels, for every share of the graph.

    In the limit N → ∞ the label at a node is a function of its latent. Its part y_b that is constant on blocks has at
    #12 the form y'_b = r·y_b + rest, of which advection reaches the first term only: ``law`` is ln r/(λ' − λ),
    ``shape`` the rest, relative to ‖y'_b‖², and ``drift`` the squared change of the mean, relative to the variance of
    y', as all errors are. ``limit`` is the best β where graphs, labels and model are replaced by their limits,
    ``shared`` the measured one if the labels of graph #1 are kept, so that r = 1.

    Example:
        >>> from advdiff.experiments.advection_study import study_rows
        >>> rows = study_rows("homophily", seed=0, num_nodes=200, step=1.0)
        >>> [row["share"] for row in rows], all(0 <= row["shape"] <= 1 for row in rows)
        ([0.25, 0.5, 0.75, 1.0], True)
    """
    pair = environments(shift)[0], environments(shift)[-1]
    dice = torch.Generator().manual_seed(10_000 + seed)
    weights = torch.randn(4, 16, generator=dice, dtype=torch.float64) / 2
    offset = 2 * torch.rand(16, generator=dice, dtype=torch.float64) - 1
    mechanisms = []
    for share in SHARES:
        latent, mechanism = synthetic.world(seed, num_nodes, share)
        mechanisms.append(mechanism)
    grid = (torch.arange(80, dtype=torch.float64) + 0.5) / 80  # 5 and 16 blocks with equally many points
    encode = [torch.tanh(mechanisms[0].features(u) @ weights + offset) for u in (latent, grid)]
    edges = [
        sample_graph(e, Randomness.draw(num_nodes, dice, latent=latent, ceiling=0.2)) for e in pair
    ]  # fmt: skip
    graphs = [normalize_adjacency(edge, num_nodes, dtype=torch.float64) for edge in edges]
    labels = [torch.stack([m.labels(latent, edge) for m in mechanisms], 1) for edge in edges]
    kept = labels[0]
    labels = [torch.cat([label, kept], 1) for label in labels]
    limits = [torch.stack([m.limit_labels(grid, e) for m in mechanisms], 1) for e in pair]
    betas = [step * i for i in range(round(upper / step) + 1)]
    found = sweep(attentive, graphs, encode[0], labels, betas)
    before, after = (errors / label.var(0) for errors, label in zip(found, labels, strict=True))
    local = sweep(closed_form, graphs, encode[0], labels, [1.0])[1][0] / labels[1].var(0)
    ideal = _limit_sweep(pair, grid, encode[1], limits, betas)
    rows = []
    for column, share in enumerate(SHARES):
        errors, (r, shape, drift) = after[:, column], _shapes(pair, grid, *(limit[:, column] for limit in limits))
        exact = math.log(r) / (pair[1].eigenvalue - pair[0].eigenvalue) if r > 0 else None
        chosen = {
            "limit": minimum(betas, ideal[:, column]), "measured": minimum(betas, errors),
            "train": minimum(betas, before[:, column]), "shared": minimum(betas, after[:, len(SHARES) + column]),
        }  # fmt: skip
        named = (
            {name: chosen[name] for name in ("limit", "train")}
            | {"zero": 0.0, "fifth": 0.2}
            | ({} if exact is None else {"law": exact})
        )
        rows.append(
            {"kind": "study", "shift": shift, "seed": seed, "nodes": num_nodes, "share": share, "law": exact}
            | {"ratio": r, "shape": shape, "drift": drift}
            | chosen
            | {f"error_{name}": error_at(betas, errors, beta) for name, beta in named.items()}
            | {"error_best": float(errors.min()), "error_local": float(local[column])}
            | {"floor": float((ideal[:, column]).min())}
        )
    return rows


def _limit_sweep(
    pair: Sequence[Environment], grid: Tensor, Z: Tensor, labels: Sequence[Tensor], betas: Sequence[float]
) -> Tensor:
    """Errors [betas, labels] of the limit of the model on the limit of the labels, relative to their variance."""
    C, eye = Attention(Z, Z).to_dense(), torch.eye(len(grid), dtype=torch.float64)
    graphons = [average_over_blocks(eye, grid, environment) for environment in pair]
    found = []
    for beta in betas:
        states = [torch.linalg.matrix_exp(C + beta * V - eye) @ Z for V in graphons]
        readout = gap.fit_readout(states[0], labels[0], ridge=1e-10)
        found.append(((readout(states[1]) - labels[1]) ** 2).mean(0) / labels[1].var(0))
    return torch.stack(found)


def _shapes(pair: Sequence[Environment], grid: Tensor, y: Tensor, y_new: Tensor) -> tuple[float, float, float]:
    """(r, shape, drift) of :func:`study_rows`: of the parts that are constant on the blocks of graph #1."""
    block = pair[0].block(grid)
    parts = []
    for label in (y, y_new):
        centred = label - label.mean()
        parts.append(torch.stack([centred[block == b].mean() for b in range(pair[0].blocks)]))
    old, new = parts
    r = float(new @ old / (old @ old))
    shape = float(((new - r * old) ** 2).sum() / (new @ new))
    return r, shape, float((y_new.mean() - y.mean()) ** 2 / y_new.var())
