"""Which device a run uses, and how to make it repeat itself there."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils import deterministic

DEVICES = ("auto", "cpu", "cuda", "mps")


def choose_device(name: str = "auto") -> torch.device:
    """``"auto"``: a CUDA device where there is one, else Apple's mps, else the CPU. Also ``"cuda:1"`` and the like.

    Example:
        >>> choose_device("cpu")
        device(type='cpu')
    """
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if there[kind]))
    kind, _, number = name.partition(":")
    if kind not in there or (number and not number.isdigit()):
        raise ValueError(f"unknown device {name!r}; choose one of: {', '.join(DEVICES)}.")
    if not there[kind]:
        raise ValueError(f"this machine has no {kind} device; use device='cpu' or 'auto'.")
    return torch.device(name)


@contextmanager
def repeatable(seed: int, threads: int | None = None) -> Iterator[None]:
    """Everything random inside follows from ``seed``, and the caller's random state is untouched afterwards.

    Deterministic kernels are used where torch has them, silently others where it has not. On the CPU, sums over nodes
    depend in their last digits on the number of threads.
    """
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        deterministic.fill_uninitialized_memory,  # type: ignore[attr-defined]
        torch.get_num_threads(),
    )
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*does not have a deterministic implementation.*")
        try:
            torch.use_deterministic_algorithms(True, warn_only=True)
            deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
            if threads is not None:
                torch.set_num_threads(threads)
            torch.manual_seed(seed)
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            deterministic.fill_uninitialized_memory = before[2]  # type: ignore[attr-defined]
            torch.set_num_threads(before[3])
