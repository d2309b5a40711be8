"""Many runs: in this process, in several, or on a Dask cluster. Records are written here, as they arrive."""

from __future__ import annotations

import functools
import signal
import traceback
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from advdiff.experiments import records
from advdiff.experiments.execute import execute
from advdiff.experiments.jobs import Job
from advdiff.experiments.records import Record

#: How long a Dask scheduler may take to answer.
CONNECT_SECONDS = 20.0


@dataclass(frozen=True)
class Failure:
    """A run that raised, instead of its record."""

    job: Job
    why: str
    traceback: str = ""


Result = Record | Failure
Work = Callable[[Job], Result]


class SweepError(RuntimeError):
    """Some runs of a sweep could not be made; the others are recorded.

    Attributes:
        failures: the runs that raised, each with its traceback.

    Example:
        >>> from advdiff.experiments import SweepError
        >>> SweepError("1 of 3 runs failed").failures
        []
    """

    def __init__(self, message: str, failures: Sequence[Failure] = ()) -> None:
        super().__init__(message)
        self.failures = list(failures)


def sweep(
    jobs: Sequence[Job],
    path: Path,
    *,
    device: str = "auto",
    workers: int = 1,
    dask: str | None = None,
    threads: int | None = None,
    progress: bool = True,
) -> list[Record]:
    """Make the runs that are not recorded in ``path`` yet, and return the records of all, in the order of ``jobs``.

    A run that raises does not stop the others; what was raised is told at the end.

    Args:
        workers: local processes; 1 is this one.
        dask: address of a Dask scheduler, ``"tcp://host:8786"``, instead of local processes.
        threads: torch threads of a run. With several workers 1, alone what torch has.
    """
    if workers < 1:
        raise ValueError(f"jobs is {workers}; it must be at least 1.")
    found = {record.key: record for record in records.read(path) if record.complete}
    todo = list({job.key: job for job in jobs if job.key not in found}.values())
    failures: list[Failure] = []
    alone = dask is None and min(workers, len(todo)) <= 1
    work = functools.partial(
        _attempt,
        device=device,
        threads=threads if threads is not None or alone else 1,
        progress=progress and alone,
    )
    if alone:
        results: Generator[Result, None, None] = (work(job) for job in todo)
    elif dask is None:
        results = _local(work, todo, workers)
    else:
        results = _cluster(work, todo, dask)
    bar = tqdm(
        total=len(jobs), initial=len(jobs) - len(todo), desc="runs", unit="run", disable=None if progress else True
    )
    with closing(results), bar:  # closed at once, also when interrupted: then the workers end
        for result in results:
            if isinstance(result, Record):
                _write(path, result)
                found[result.key] = result
            else:
                failures.append(result)
            bar.update()
    if failures:
        first = f"{failures[0].job.label()}: {failures[0].why}"
        raise SweepError(f"{len(failures)} of {len(todo)} runs failed, the others are in {path}; {first}", failures)
    return [found[job.key] for job in jobs]


def _attempt(job: Job, device: str, threads: int | None, progress: bool) -> Result:
    """A record, or why there is none."""
    try:
        return execute(job, device=device, threads=threads, progress=progress)
    except Exception as error:
        return Failure(job, f"{type(error).__name__}: {error}", traceback.format_exc())


def _write(path: Path, record: Record) -> None:
    try:
        records.append(path, record)
    except OSError as error:
        raise SweepError(
            f"could not write {path} ({error.strerror or error}); what is in it is complete: "
            "make room or choose another folder, and give the same command again."
        ) from error


def _leave_interrupts_to_the_parent() -> None:
    """Ctrl-C reaches every process of a terminal. The parent ends its workers; by themselves they print tracebacks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _local(work: Work, jobs: Sequence[Job], workers: int) -> Generator[Result, None, None]:
    """Processes of this machine, by joblib. Closing the iterator, as an interrupt does, ends them."""
    import joblib
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    with joblib.parallel_config(backend="loky", inner_max_num_threads=1, initializer=_leave_interrupts_to_the_parent):
        parallel = joblib.Parallel(n_jobs=workers, return_as="generator_unordered", batch_size=1)
        results = parallel(joblib.delayed(work)(job) for job in jobs)
        try:
            for result in results:  # noqa: UP028 -- `yield from` would close it before the filter below
                yield result
        except TerminatedWorkerError as error:
            raise SweepError(
                "a worker process died, perhaps for lack of memory; finished runs are recorded: "
                "give the same command again, with fewer jobs if it happens again."
            ) from error
        finally:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*still being processed", category=UserWarning)
                results.close()


def _cluster(work: Work, jobs: Sequence[Job], address: str) -> Generator[Result, None, None]:
    """Workers of a Dask cluster. Dask gives the runs of a worker that died to another one."""
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise ValueError("a Dask cluster needs the extra 'cluster': pip install 'advdiff[cluster]'.") from error
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address!r}; the address looks like tcp://host:8786."
        ) from error
    futures: dict[Any, Job] = {}
    try:
        for job in jobs:
            futures[client.submit(work, job, pure=False)] = job
        for future in as_completed(list(futures)):
            trouble = future.exception()  # the cluster's own: what a run raises comes back as a Failure
            job = futures.pop(future)
            yield future.result() if trouble is None else Failure(job, f"{type(trouble).__name__}: {trouble}")
    finally:
        client.cancel(list(futures))
        client.close()
