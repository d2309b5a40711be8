"""Where runs are made: in this process, in several, or on a Dask cluster. Results come back as they are finished."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass

from advdiff.experiments.orphans import begin_worker
from advdiff.experiments.plan import Plan
from advdiff.experiments.records import Record

#: How long a Dask scheduler may take to answer.
CONNECT_SECONDS = 20.0


@dataclass(frozen=True)
class Failure:
    """A run that raised, instead of its record."""

    plan: Plan
    why: str
    traceback: str = ""


Result = Record | Failure
Work = Callable[[Plan], Result]


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


def results_of(
    work: Work, todo: Iterable[Plan | None], processes: int = 1, dask: str | None = None
) -> Generator[Result, None, None]:
    """``work`` done for every plan, in the order in which it is finished. Closing the generator ends the workers.

    Args:
        todo: plans, taken one by one when there is a free place; a None says that the next one depends on what is still
            being made.
        processes: on this machine; 1 is this one.
        dask: address of a Dask scheduler, instead of local processes.
    """
    plans = iter(todo)
    if dask is None and processes == 1:
        yield from (work(plan) for plan in plans if plan is not None)
        return
    with _cluster(dask) if dask is not None else _local(processes) as (executor, places):
        running: dict[Future[Result], Plan] = {}
        while True:
            while len(running) < places and (plan := next(plans, None)) is not None:
                running[executor.submit(work, plan)] = plan
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                plan = running.pop(future)
                raised = future.exception()  # the executor's own: what a run raises comes back as a Failure
                if raised is not None and dask is None:
                    raise SweepError(
                        "a worker process died, perhaps for lack of memory; finished runs are recorded: "
                        "give the same command again, with fewer jobs if it happens again."
                    ) from raised
                yield future.result() if raised is None else Failure(plan, f"{type(raised).__name__}: {raised}")


@contextmanager
def _local(processes: int) -> Iterator[tuple[Executor, int]]:
    """Processes of this machine. Leaving the context, as an interrupt does, ends them at once."""
    from joblib.externals.loky import ProcessPoolExecutor

    one_thread = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")}
    executor = ProcessPoolExecutor(processes, initializer=begin_worker, initargs=(os.getpid(),), env=one_thread)
    try:
        yield executor, processes
    finally:
        executor.shutdown(kill_workers=True)


@contextmanager
def _cluster(address: str) -> Iterator[tuple[Executor, int]]:
    """Workers of a Dask cluster. Dask gives the runs of a worker that died to another one."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError("a Dask cluster needs the extra 'cluster': pip install 'advdiff[cluster]'.") from error
    try:
        client = Client(address, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address!r}; the address looks like tcp://host:8786."
        ) from error
    executor = client.get_executor(pure=False)
    try:
        yield executor, max(2 * sum(client.nthreads().values()), 1)  # so that no worker waits for its next run
    finally:
        executor.shutdown(wait=False)  # Dask's cancels what is left
        client.close()
