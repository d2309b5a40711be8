"""The table, the JSON file and the scaling plot of ``advdiff bench``."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import torch

from advdiff.bench.rows import Row


def line(row: Row) -> str:
    """One row as text."""
    times = (
        "" if row.milliseconds is None else f"{row.milliseconds:9.1f} ms against {row.reference_milliseconds:9.1f} ms"
    )
    figure = f"{row.figure:.1f} {row.unit}"
    bar = "" if row.bar is None else f"bar {row.bar:g} {row.unit}: {row.verdict}"
    agrees = "" if row.disagreement is None else f"{row.compared} differ by {row.disagreement:.0e}"
    case = f"{row.what:26s} {row.against:22s} N={row.nodes:<7d} H={row.heads}"
    return f"{case}  {times:36s} {figure:>9s}  {bar:22s} {agrees}".rstrip()


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    return {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads": torch.get_num_threads(),
        "processor": platform.processor() or platform.machine(),
        "capability": torch.backends.cpu.get_cpu_capability(),
    }


def write_json(path: Path, rows: Iterable[Row], scaling: Iterable[dict[str, float | str]]) -> None:
    """Atomically: a killed run leaves the old file."""
    content = {
        "machine": machine(),
        "rows": [{**asdict(row), "verdict": row.verdict} for row in rows],
        "scaling": list(scaling),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    temporary.replace(path)


def draw(path: Path, scaling: Iterable[dict[str, float | str]]) -> None:
    """Milliseconds of a training step against the number of nodes, both axes logarithmic."""
    import matplotlib.pyplot as plt

    from advdiff import viz

    with viz.style():
        figure, axes = plt.subplots(figsize=(6.4, 4.0))
        curves: dict[str, list[tuple[float, float]]] = {}
        for point in scaling:
            curves.setdefault(str(point["solver"]), []).append((float(point["nodes"]), float(point["milliseconds"])))
        for name, points in curves.items():
            axes.loglog(*zip(*points, strict=True), marker="o", label=name)
        axes.set_xlabel("number of nodes")
        axes.set_ylabel("milliseconds per training step")
        axes.legend()
        figure.savefig(path)
        plt.close(figure)
