"""``python -m advdiff.bench.peak series 169343 2``: peak memory in GB of two training steps."""

from __future__ import annotations

import sys

from advdiff.bench.problems import model, random_graph, training_step
from advdiff.experiments.machine import keep_freed_memory, peak_gigabytes


def main(solver: str, nodes: str, heads: str) -> None:
    keep_freed_memory()
    graph = random_graph(int(nodes))
    step = training_step(model(solver, int(heads)), graph)
    step()
    step()
    print(f"{peak_gigabytes():.3f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
