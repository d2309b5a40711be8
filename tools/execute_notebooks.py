"""Execute notebooks in place, with progress and the time that each one took.

    python -m tools.execute_notebooks                     all of notebooks/
    python -m tools.execute_notebooks notebooks/02_*.ipynb

A notebook is written only after it ran to its end, and atomically, so that an interrupted run leaves the
committed file as it was. What differs between machines for no good reason (timings of cells, the version of
the interpreter, the name of the kernel) is left out of the file.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from tqdm.auto import tqdm

from advdiff.atomic import replacing

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
NOT_RUN = "export default { render({ el }) { el.textContent = 'Run this cell, and the figure comes to life.'; } };"
RUN_FAILURES = (CellExecutionError, CellTimeoutError, DeadKernelError)


def find_notebooks(paths: list[Path]) -> list[Path]:
    """The notebooks among paths and in the folders among paths, sorted by name."""
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found.update(p for p in path.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
        elif path.suffix == ".ipynb" and path.is_file():
            found.add(path)
        else:
            sys.exit(f"{path} is neither a notebook nor a folder")
    return sorted(found)


def normalise(notebook: NotebookNode) -> None:
    """Drop the metadata that change between machines and runs."""
    notebook.metadata["kernelspec"] = dict(KERNEL)
    language = notebook.metadata.get("language_info", {})
    notebook.metadata["language_info"] = {
        key: language[key] for key in ("file_extension", "mimetype", "name") if key in language
    }
    for model in notebook.metadata.get("widgets", {}).get(WIDGET_STATE, {}).get("state", {}).values():
        if "_esm" in model["state"]:  # script and graphs are the library's; tools/book_pages.py puts them back
            model["state"].update(_esm=NOT_RUN, _css="", examples={})
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        cell.metadata.pop("collapsed", None)


def write(notebook: NotebookNode, path: Path) -> None:
    """Put the notebook in the place of the file at path, whole or not at all."""
    with replacing(path) as file:
        file.write(nbformat.writes(notebook).encode() + b"\n")


def execute(path: Path, timeout: int) -> float:
    """Execute the notebook at path, write it back, and return the seconds it took."""
    notebook = nbformat.read(path, as_version=4)
    count = sum(cell.cell_type == "code" for cell in notebook.cells)
    current = 0

    with tqdm(total=count, desc=path.stem, unit="cell", leave=False, disable=None) as bar:

        def on_start(cell: NotebookNode, cell_index: int) -> None:
            nonlocal current
            current = cell_index

        def on_done(cell: NotebookNode, cell_index: int, execute_reply: object) -> None:
            bar.update()

        client = NotebookClient(
            notebook,
            timeout=timeout,
            kernel_name="python3",
            resources={"metadata": {"path": str(path.parent)}},
            record_timing=False,
            coalesce_streams=True,
            on_cell_start=on_start,
            on_cell_executed=on_done,
        )
        start = time.perf_counter()
        try:
            client.execute()
        except RUN_FAILURES as error:
            first_line = (notebook.cells[current].source.strip().splitlines() or [""])[0]
            raise RuntimeError(f"{path}: cell {current} failed, {first_line!r}\n{error}") from error
        seconds = time.perf_counter() - start

    normalise(notebook)
    write(notebook, path)
    return seconds


def main() -> int:
    parser = argparse.ArgumentParser(description="Execute notebooks in place.")
    parser.add_argument("paths", nargs="*", type=Path, default=[Path("notebooks")])
    parser.add_argument("--timeout", type=int, default=1800, help="seconds allowed for one cell")
    arguments = parser.parse_args()

    os.environ.setdefault("ADVDIFF_PROFILE", "quick")
    paths = find_notebooks(arguments.paths)
    if not paths:
        print("no notebooks found", file=sys.stderr)
        return 1
    print(f"executing {len(paths)} notebook(s), profile {os.environ['ADVDIFF_PROFILE']}", flush=True)

    failures = 0
    for number, path in enumerate(paths, start=1):
        try:
            seconds = execute(path, arguments.timeout)
        except RuntimeError as error:
            failures += 1
            print(f"[{number}/{len(paths)}] {path.stem}: FAILED\n{error}", file=sys.stderr, flush=True)
        else:
            print(f"[{number}/{len(paths)}] {path.stem}: {seconds:.1f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
