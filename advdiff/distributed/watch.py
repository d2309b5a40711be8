"""The watch over lost ranks: when one dies, all others end soon, and each says which one it was.

A rank that is killed says nothing. Those that talk to it see a broken connection, if they see anything, and not whose.
So each rank counts up a number of its own in the store of the job, twice a second, from a thread that runs whatever the
main thread waits for, and looks at those of the others. A number that stands still is a lost rank. Who finds it first
writes the sentence into the store, for the others to repeat, so that none who leaves next is taken for lost as well.

SIGTERM, which torchrun sends to the ranks that are left, is kept from ending them before they know.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import suppress
from datetime import timedelta

import torch.distributed as dist

BEAT = 0.5
#: Seconds without a beat after which a rank is lost; fewer once something is known to be wrong.
PATIENCE, ALARMED = 15.0, 4.0
#: What the sentence of a lost rank ends with.
ADVICE = "start the same command again with --resume"


def hold_sigterm() -> None:
    """Leave SIGTERM to the watch. Threads inherit this from the one that starts them, so call it before all others."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


class Watch(threading.Thread):
    """Beats for this rank and listens to the others until ``stop``; ends the process when one is lost.

    Args:
        rank, size: of this process and of the job.
        address: host and port of the job's store.
        keeper: who is lost if the store is.
    """

    def __init__(self, rank: int, size: int, address: tuple[str, int], keeper: str) -> None:
        super().__init__(name="watch", daemon=True)
        self.rank, self.size, self.keeper = rank, size, keeper
        self.store = dist.TCPStore(*address, is_master=False, wait_for_workers=False, timeout=timedelta(seconds=10))
        self.alarmed: float | None = None
        self.stopped = threading.Event()

    @classmethod
    def of_environment(cls) -> Watch:
        """From the variables that torchrun sets."""
        address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        by_torchrun = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
        keeper = "torchrun" if by_torchrun else "rank 0"
        return cls(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), address, keeper)

    def begin(self) -> None:
        """A first beat, and then one after the other; all ranks must have one before any starts."""
        self.store.add(self._key(self.rank), 1)
        dist.barrier()
        self.start()

    def alarm(self) -> None:
        """Something is wrong: a lost rank is called so sooner."""
        self.alarmed = self.alarmed or time.monotonic()

    def announce(self, sentence: str) -> None:
        """Tell the others why this rank ends."""
        with suppress(RuntimeError):  # without a store there is nobody to tell
            self.store.compare_set("advdiff/verdict", "", sentence)
            self._leave()

    def _leave(self) -> None:
        """Say that this rank knows; whoever keeps the store leaves last, or after a while."""
        told = self.store.add("advdiff/told", 1)
        deadline = time.monotonic() + ALARMED
        while self.keeper == f"rank {self.rank}" and told < self.size - 1 and time.monotonic() < deadline:
            time.sleep(BEAT / 5)
            told = self.store.add("advdiff/told", 0)

    def stop(self) -> None:
        """Wait for the thread, too: one that is inside the store when the interpreter ends aborts the process."""
        self.stopped.set()
        self.join()

    def run(self) -> None:
        beats, changed = [b""] * self.size, [time.monotonic()] * self.size
        keys = [self._key(rank) for rank in range(self.size)]
        while not self.stopped.is_set():
            if self._terminated():
                self.alarm()
            try:
                self.store.add(keys[self.rank], 1)
                now = self.store.multi_get(keys)
                if self.store.check(["advdiff/verdict"]):
                    sentence = self.store.get("advdiff/verdict").decode()
                    self._leave()
                    self._end(sentence)
            except RuntimeError:
                self._end(f"{self.keeper} was lost; {ADVICE}.")
                break  # the job is over, and the keeper left before this rank
            for rank, (old, new) in enumerate(zip(beats, now, strict=True)):
                if old != new:
                    beats[rank], changed[rank] = new, time.monotonic()
            silent = time.monotonic() - min(changed)
            if silent > (PATIENCE if self.alarmed is None else ALARMED):
                sentence = f"rank {changed.index(min(changed))} was lost; {ADVICE}."
                self.announce(sentence)
                self._end(sentence)
            if self.alarmed is not None and time.monotonic() - self.alarmed > PATIENCE:
                self._end(f"the job was stopped; {ADVICE}.")

    def _key(self, rank: int) -> str:
        return f"advdiff/beat/{rank}"

    def _terminated(self) -> bool:
        """Wait for the next beat, or for SIGTERM."""
        if not hasattr(signal, "sigtimedwait"):
            return self.stopped.wait(BEAT) and False
        return signal.sigtimedwait({signal.SIGTERM}, BEAT) is not None

    def _end(self, sentence: str) -> None:
        if self.stopped.is_set():
            return
        print(f"advdiff: {sentence}", file=sys.stderr, flush=True)
        os._exit(1)  # the main thread may wait in a collective for ever


def is_broken_connection(error: RuntimeError) -> bool:
    """Does the error come from a collective whose other side is gone?"""
    text = str(error)
    return isinstance(error, dist.DistError) or any(word in text for word in ("gloo", "NCCL", "Connection", "Socket"))
