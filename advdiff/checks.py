"""Input checks at the library's boundary: one sentence that says what was wrong and what would be right.

A check of shapes costs nothing. One that looks at values makes the host wait for the device, so the outermost public
call makes it once and does its work inside :func:`values_checked`, where the calls that it makes in turn do not look
again. Nor is there anything to look at on torch's ``meta`` device, where tensors have no values, or while torch records
or transforms a call (:func:`is_traced`). :func:`set_value_checks` turns them off altogether.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

#: Is a public call under way that has looked at its input? Each thread has its own answer.
_checked: ContextVar[bool] = ContextVar("advdiff_values_checked", default=False)


@contextmanager
def values_checked() -> Iterator[None]:
    """Take the values of all tensors inside as checked; shapes, types and devices are looked at all the same."""
    token = _checked.set(True)
    try:
        yield
    finally:
        _checked.reset(token)


#: Are values looked at in this process? See :func:`set_value_checks`.
_wanted = True


def set_value_checks(enabled: bool) -> None:
    """Turn the checks that look at values off, or on again, in this process.

    They refuse NaN and infinite features, edges to nodes that do not exist, negative weights and edges between the
    graphs of a batch, at the price of one synchronisation with the device per call. Turned off, such input gives wrong
    numbers, or reads memory that is not its own: for data that have been through one checked epoch. Shapes, types and
    devices are looked at all the same, and a solver still reports a singular point.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> advdiff.set_value_checks(False)
        >>> V @ torch.tensor([1.0, torch.nan])
        tensor([nan, 1.])
        >>> advdiff.set_value_checks(True)
        >>> V @ torch.tensor([1.0, torch.nan])
        Traceback (most recent call last):
            ...
        ValueError: Z holds 1 NaN or infinite entries; it must be finite: clean or impute it first.
    """
    global _wanted
    _wanted = bool(enabled)


def is_traced() -> bool:
    """Does torch record this call (``torch.compile``, ``torch.export``) or transform it (``torch.func``)?

    Then nothing may depend on values, and only operations that torch knows may be used.
    """
    return torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active()


def is_exported() -> bool:
    """Does ``torch.export`` record this call? What it writes should run without this library where possible."""
    return bool(getattr(torch.compiler, "is_exporting", lambda: False)())


def must_look_at(tensor: Tensor) -> bool:
    """Has the tensor values that nobody has checked yet, and is it the time to look?"""
    return not is_traced() and has_values(tensor) and _wanted and not _checked.get()


def has_values(tensor: Tensor) -> bool:
    """False on the ``meta`` device and in recorded code, where nothing that depends on values can be decided."""
    return tensor.device.type != "meta" and not torch.compiler.is_compiling()


def check_finite(name: str, tensor: Tensor) -> None:
    """Refuse NaN and infinite entries."""
    check_all_finite({name: tensor})


def check_all_finite(tensors: Mapping[str, Tensor | None]) -> None:
    """Refuse NaN and infinite entries in any of the named tensors, with one look at all of them."""
    given = {name: tensor.detach() for name, tensor in tensors.items() if tensor is not None and must_look_at(tensor)}
    if not given or math.isfinite(float(sum(t.sum() for t in given.values()))):  # NaN and ∞ survive a sum
        return
    for name, tensor in given.items():
        bad = int((~torch.isfinite(tensor)).sum())
        if bad:
            raise ValueError(
                f"{name} holds {bad} NaN or infinite entries; it must be finite: clean or impute it first."
            )


def check_floating(name: str, tensor: Tensor) -> None:
    """Refuse integer, boolean and complex tensors, whose products would be rounded or undefined."""
    if not tensor.is_floating_point():
        raise ValueError(f"{name} has dtype {tensor.dtype}; it must be floating point: call .float() on it.")


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a name that is not in the list, and print the list."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}; choose one of: {', '.join(choices)}.")


def check_rows(name: str, tensor: Tensor, num_nodes: int) -> None:
    """Refuse a tensor whose first dimension is not the number of nodes."""
    rows = tensor.size(0) if tensor.dim() else 0
    if tensor.dim() == 0 or rows != num_nodes:
        raise ValueError(f"{name} has {rows} rows but the graph has {num_nodes} nodes; pass one row per node.")


def check_nonnegative(name: str, value: float | Tensor) -> None:
    """Refuse a negative, NaN or infinite number."""
    if isinstance(value, Tensor) and not must_look_at(value):
        return
    number = float(_worst(value.detach()) if isinstance(value, Tensor) else value)
    if not 0.0 <= number < float("inf"):
        raise ValueError(f"{name} is {number:g}; it must be a finite number that is not negative.")


def _worst(value: Tensor) -> Tensor:
    """The entry that a check of "finite and not negative" must look at: NaN or ∞ if there is one, else the smallest."""
    return torch.where(value.sum().isfinite(), value.amin(), value.sum()) if value.numel() > 1 else value


def number_of(name: str, value: float | Tensor) -> float:
    """A number, or the value of a tensor with one element (1 on ``meta``, where it has none)."""
    if not isinstance(value, Tensor):
        return float(value)
    if value.numel() != 1:
        raise ValueError(f"{name} has shape {tuple(value.shape)}; it must be a single number.")
    return float(value.detach()) if has_values(value) else 1.0


def check_tolerance(tol: float) -> None:
    """A relative tolerance lies strictly between 0 and 1."""
    if not 0.0 < tol < 1.0:
        raise ValueError(f"tol is {tol:g}; it must lie strictly between 0 and 1, for example 1e-6.")


def check_edge_index(edge_index: Tensor, num_nodes: int, name: str = "edge_index") -> None:
    """PyG's ``edge_index``: an integer tensor [2, E] with entries in 0 … num_nodes - 1."""
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"{name} has shape {tuple(edge_index.shape)}; it must be [2, number of edges].")
    if edge_index.dtype not in (torch.int32, torch.int64):
        raise ValueError(f"{name} has dtype {edge_index.dtype}; node numbers must be integers (int64).")
    if num_nodes < 0:
        raise ValueError(f"num_nodes is {num_nodes}; it must not be negative.")
    if edge_index.size(1) and must_look_at(edge_index):
        low, high = torch.stack(edge_index.aminmax()).tolist()
        if low < 0 or high >= num_nodes:
            raise ValueError(
                f"{name} names nodes {low} to {high}, but with num_nodes={num_nodes} "
                f"the valid numbers are 0 to {num_nodes - 1}."
            )


def check_edge_weight(edge_weight: Tensor, num_edges: int) -> None:
    """One finite weight, not negative, per edge."""
    if edge_weight.shape != (num_edges,):
        raise ValueError(
            f"edge_weight has shape {tuple(edge_weight.shape)}; it must hold one number for each of the "
            f"{num_edges} edges: [{num_edges}]."
        )
    check_floating("edge_weight", edge_weight)
    check_finite("edge_weight", edge_weight)
    if num_edges and must_look_at(edge_weight) and float(edge_weight.detach().min()) < 0:
        raise ValueError("edge_weight holds negative entries; the velocity V needs weights of at least 0.")
