"""``python -m tools.cluster_batches``: what mini-batching by clusters changes, on Arxiv; into results/clusters.jsonl.

AdvDIFFormer-s is trained on the papers up to 2017 in four ways: on the whole graph; on that graph cut into 16 or 128
clusters that METIS found, all in one batch, so that only the cut differs; and on 16 clusters one after the other, as
those who lack memory do. Validation chooses the epoch on the whole graph each time; a run that chose it in its last
tenth is made again with twice as many. The papers of 2018 to 2020 are then
classified on the whole graph, and by clusters. A row is written when its run has ended, and not made again while it is
there. The features are a stand-in (see :mod:`advdiff.datasets.arxiv`), so only differences between the rows count.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from advdiff.atomic import locked, replacing
from advdiff.datasets import Dataset, load
from advdiff.distributed.clusters import clusters
from advdiff.experiments import Budget, fit

OUT = Path("results/clusters.jsonl")
SETTINGS = {"hidden_channels": 64, "heads": 2, "beta": 0.8, "order": 1, "batch_norm": True, "residual": True}
#: Way of training → clusters, clusters in a batch.
WAYS = {"whole": (1, 1), "16 at once": (16, 16), "128 at once": (128, 128), "16 in turn": (16, 1)}
YEARS = ("2018", "2019", "2020")
SEEDS = range(3)
EPOCHS = (100, 200, 400)


def cut(data: Dataset, parts: int) -> Dataset:
    """The training graph in clusters; each test year whole, and as many clusters of it as there are for training."""
    environments = dict(data.environments)
    environments["train"] = clusters(data.graphs("train")[0], parts)
    for year in YEARS:
        environments[f"{year} by clusters"] = clusters(data.graphs(year)[0], max(parts, 16))
    return Dataset.from_graphs(
        environments, task="node", metric=data.metric, test=[name for name in environments if name[:2] == "20"]
    )


def train(way: str, seed: int, data: Dataset, device: str) -> dict[str, Any]:
    """One row: the metrics of a run, and how many answers change if the clusters are taken for the graph."""
    parts, together = WAYS[way]
    for epochs in EPOCHS:
        budget = Budget(epochs, learning_rate=0.005, batch_size=together, evaluate_every=5, patience=30)
        found = fit("advdifformer-s", data, budget=budget, seed=seed, settings=SETTINGS, device=device, threads=1)
        if found.record.converged:
            break
    changed = {}
    for year in YEARS:
        (graph,) = data.graphs(year)
        whole = torch.full((graph.num_nodes,), -1)
        whole[graph.mask] = found.predictions[year].argmax(-1)
        order = torch.cat([part.node[part.mask] for part in data.graphs(f"{year} by clusters")])
        changed[year] = float((whole[order] != found.predictions[f"{year} by clusters"].argmax(-1)).double().mean())
    outcome = found.record.outcome
    row = {"way": way, "seed": seed, "clusters": parts, "clusters_of_test": max(parts, 16), "together": together}
    row |= {"settings": SETTINGS, "budget": budget.as_dict(), "metrics": outcome.metrics, "changed": changed}
    row |= {"chosen_epoch": outcome.chosen_epoch, "epochs": outcome.epochs, "peak_gb": outcome.peak_memory_gb}
    return row | {"seconds_per_epoch": outcome.seconds_per_epoch}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    data = load("arxiv", features="text")
    lines = OUT.read_text(encoding="utf-8").splitlines() if OUT.exists() else []
    known = {(row["way"], row["seed"]) for row in map(json.loads, lines)}  # delete a line to have it made again
    cuts: dict[int, Dataset] = {}
    for seed in SEEDS:
        for way, (parts, _) in WAYS.items():
            if (way, seed) in known:
                continue
            if parts not in cuts:
                cuts[parts] = cut(data, parts)
            row = json.dumps(train(way, seed, cuts[parts], options.device))
            with locked(OUT):
                lines = OUT.read_text(encoding="utf-8").splitlines() if OUT.exists() else []
                with replacing(OUT) as file:
                    file.write(("\n".join([*lines, row]) + "\n").encode())
            print(row, flush=True)


if __name__ == "__main__":
    main()
