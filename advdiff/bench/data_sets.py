"""The training step of each model on each data set: its time, the share of sparse products, its memory per node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch_geometric.data import Batch, Data

from advdiff.bench import measure
from advdiff.bench.rows import Row
from advdiff.datasets import load
from advdiff.datasets.files import MissingDataError
from advdiff.experiments import metrics
from advdiff.experiments.fitting import build
from advdiff.experiments.plan import Plan, plans
from advdiff.experiments.recipes import RECIPES
from advdiff.experiments.training import predict
from advdiff.nn import model_names


def first_batch(plan: Plan, graphs: list[Data]) -> Data:
    """What the first step of training sees."""
    return graphs[0] if len(graphs) == 1 else Batch.from_data_list(graphs[: plan.budget.batch_size])


def steps_of(
    experiment: str, profile: str, models: Iterable[str] | None = None
) -> Iterator[tuple[str, Data, measure.Step]]:
    """Model, graph or batch, and one step of training, with the settings of the recipe."""
    recipe = RECIPES[experiment]
    names = [*models] if models is not None else [*model_names()]
    planned = plans(recipe, names, profile=profile)
    first = planned[0].options
    data = load(recipe.dataset, **first, **({"seed": 0} if recipe.seeded_data else {}))
    for plan in planned:
        if plan.options != first:
            continue
        graph = first_batch(plan, data.graphs(*data.train))
        torch.manual_seed(0)
        network = build(plan, data).train()
        optimizer = torch.optim.Adam(network.parameters())

        def step(
            network: torch.nn.Module = network, graph: Data = graph, optimizer: torch.optim.Adam = optimizer
        ) -> None:
            optimizer.zero_grad()
            metrics.loss(data.metric, predict(network, graph), graph.y, graph.get("mask")).backward()
            optimizer.step()

        yield plan.model, graph, step


def per_data_set(experiment: str, profile: str, budget: float, models: Iterable[str] | None = None) -> Iterator[Row]:
    """Nothing, if the data are not there."""
    try:
        steps = list(steps_of(experiment, profile, models))
    except MissingDataError:
        return
    for name, graph, step in steps:
        nodes = int(graph.num_nodes or 0)
        best = measure.side_by_side({name: step}, budget, least=1)[name]
        where = f"training step, {experiment}"
        yield Row(name, where, nodes, 1, figure=1e3 * best, unit="ms")
        yield Row(name, "its sparse products", nodes, 1, figure=100 * measure.share_of_sparse(step), unit="%")
        peak = measure.peak_bytes(step)
        if peak is not None:
            yield Row(name, "peak memory per node", nodes, 1, figure=peak / max(nodes, 1) / 1024, unit="kB")
