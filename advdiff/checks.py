"""Input checks at the library's boundary: one sentence that says what was wrong and what would be right.

A check of shapes costs nothing. One that looks at values makes the host wait for the device, so the outermost public
call makes it once and does its work inside :func:`values_checked`, where the calls that it makes in turn do not look
again. Nor is there anything to look at on torch's ``meta`` device, where tensors have no values, or while torch records
or transforms a call (:func:`is_traced`). ``set_value_checks`` turns them off altogether.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from types import UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import torch
from torch import Tensor

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

#: What did the public call that is under way find equal to its memory of it? None outside of all calls. Each thread has
#: its own answer.
_checked: ContextVar[tuple[Tensor, ...] | None] = ContextVar("advdiff_values_checked", default=None)


@contextmanager
def values_checked(*compared: Tensor | None) -> Iterator[None]:
    """Take the values of all tensors inside as checked; shapes, types and devices are looked at all the same.

    ``compared`` names those that the caller has just compared with its memory of them (:mod:`advdiff.nn.cache`). A call
    inside another one has not looked, so that the list is that of the outermost.
    """
    outer = _checked.get()
    token = _checked.set(tuple(t for t in compared if t is not None) if outer is None else outer)
    try:
        yield
    finally:
        _checked.reset(token)


#: Are values looked at in this process? See ``set_value_checks``.
_wanted = True


def set_value_checks(enabled: bool) -> None:
    """Turn the checks that look at values off, or on again, in this process.

    They refuse NaN and infinite features, edges to nodes that do not exist, negative weights and edges between the
    graphs of a batch, at the price of one synchronisation with the device per call. Turned off, such input gives wrong
    numbers, or reads memory that is not its own: for data that have been through one checked epoch. Shapes, types and
    devices are looked at all the same, and a solver still reports a singular point. A graph that is passed again is
    then known by its memory and by torch's count of the writes to it: one that torch does not count (through NumPy, or
    ``w.data``) goes unnoticed.

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
    """Does ``torch.export`` record this call? It takes a series apart into products, ``torch.ops.advdiff.spmm``."""
    return bool(getattr(torch.compiler, "is_exporting", lambda: False)())


def must_look_at(tensor: Tensor) -> bool:
    """Has the tensor values that nobody has checked yet, and is it the time to look?"""
    return not is_traced() and has_values(tensor) and _wanted and _checked.get() is None


def is_checked(tensor: Tensor) -> bool:
    """Has the call that is under way compared this very tensor at its door?"""
    return _wanted and any(tensor is compared for compared in _checked.get() or ())


def are_values_wanted() -> bool:
    """May values be looked at in this process? See ``set_value_checks``."""
    return _wanted


def has_values(tensor: Tensor) -> bool:
    """False on the ``meta`` device and in recorded code, where nothing that depends on values can be decided."""
    return tensor.device.type != "meta" and not torch.compiler.is_compiling()


def check_finite(name: str, tensor: Tensor) -> None:
    """Refuse NaN and infinite entries."""
    check_all_finite({name: tensor})


def check_all_finite(tensors: Mapping[str, Tensor | None]) -> None:
    """Refuse NaN and infinite entries in any of the named tensors, with one look at all of them."""
    if look(tensors)[0]:
        return
    for name, tensor in tensors.items():
        bad = 0 if tensor is None else int((~torch.isfinite(tensor)).sum())
        if bad:
            raise ValueError(
                f"{name} holds {bad} NaN or infinite entries; it must be finite: clean or impute it first."
            )


def look(tensors: Mapping[str, Tensor | None], flags: Sequence[Tensor] = ()) -> list[bool]:
    """Are all entries of the tensors surely finite (a sum of finite ones may overflow), and which flags are raised?

    One transfer from the device for all of them.
    """
    for name, tensor in tensors.items():
        if tensor is not None:
            check_tensor(name, tensor)
    given = [tensor.detach() for tensor in tensors.values() if tensor is not None and must_look_at(tensor)]
    if given:  # NaN and ∞ survive a sum
        flags = [torch.isfinite(sum((t.sum() for t in given[1:]), given[0].sum())), *flags]
    answers = torch.stack(list(flags)).tolist() if flags else []
    return answers if given else [True, *answers]


def check_tensor(name: str, value: object, sparse: bool = False) -> None:
    """Refuse lists, arrays and None; and what most kernels do not know: sparse storage."""
    if not isinstance(value, Tensor):
        hint = "" if value is None else f": torch.as_tensor({name})"
        raise ValueError(f"{name} is of type {type(value).__name__}; it must be a torch tensor{hint}.")
    if value.layout != torch.strided and not sparse:
        raise ValueError(f"{name} is stored as {value.layout}; pass it dense: call .to_dense() on it.")


def expects(function: Callable[Parameters, Returned]) -> Callable[Parameters, Returned]:
    """Refuse arguments that are not of the annotated type: a list for a tensor, a string for a number, Z for L.

    Looks at tensors, numbers, strings and classes of this library, and at unions of these; where a number is asked for,
    a tensor without dimensions will do. Tensors must lie on one device. Not in recorded code, where it would be traced.
    """
    names = list(inspect.signature(function).parameters)
    wanted: dict[str, tuple[type, ...]] = {}

    @functools.wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        if torch.compiler.is_compiling():
            return function(*args, **kwargs)
        if not wanted:
            hints = get_type_hints(function)
            wanted.update({name: _accepted(hints[name]) for name in names if name in hints})
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        for name, value in given.items():
            _check_type(name, value, wanted.get(name, ()))
        lies = {name: value.device for name, value in given.items() if isinstance(value, Tensor) and value.dim()}
        if len(set(lies.values())) > 1:
            places = ", ".join(f"{name} on {device}" for name, device in lies.items())
            raise ValueError(f"the tensors lie in different places ({places}); move all to one device.")
        return function(*args, **kwargs)

    return checked


def _accepted(hint: Any) -> tuple[type, ...]:
    """The types that a hint allows, or none if it says something that is not looked at (a callable, a sequence)."""
    if get_origin(hint) in (Union, UnionType):
        parts = [_accepted(part) for part in get_args(hint)]
        return tuple(kind for part in parts for kind in part) if all(parts) else ()
    if hint in (float, int, str, bool, Tensor, type(None)) or getattr(hint, "__module__", "").startswith("advdiff."):
        return (hint,) if isinstance(hint, type) else ()
    return ()


def _check_type(name: str, value: object, accepted: tuple[type, ...]) -> None:
    if Tensor in accepted and (isinstance(value, Tensor) or set(accepted) <= {Tensor, type(None)}):
        if value is not None or type(None) not in accepted:
            check_tensor(name, value)
        return
    if not accepted or any(_is_a(value, kind) for kind in accepted):
        return
    words = {float: "a number", int: "an integer", str: "a string", bool: "True or False"}
    kinds = [words.get(kind, f"a {kind.__name__}") for kind in accepted if kind is not type(None)]
    form = f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"of type {type(value).__name__}"
    raise ValueError(f"{name} is {form}; it must be {' or '.join(kinds)}.")


def _is_a(value: object, kind: type) -> bool:
    if kind in (float, int) and isinstance(value, Tensor):
        return value.dim() == 0 and not value.is_complex() and (kind is float or not value.is_floating_point())
    return isinstance(value, Real if kind is float else Integral if kind is int else kind)


def check_csr(name: str, matrix: Tensor) -> None:
    """A sparse matrix whose pointers and columns stay inside it, with finite values.

    torch's kernels take them on trust, and read and write wherever they point.
    """
    if not must_look_at(matrix):
        return
    pointers, columns, values = matrix.crow_indices(), matrix.col_indices(), matrix.detach().values()
    steps = pointers.diff()
    inside = (pointers[0] == 0) & (pointers[-1] == columns.numel()) & (steps >= 0).all()
    inside &= ((columns >= 0) & (columns < matrix.size(1))).all()
    if not bool(inside):
        raise ValueError(
            f"{name} is a sparse matrix of shape {tuple(matrix.shape)} whose indices point outside of it; make it "
            "from a dense or COO matrix, or with check_invariants=True."
        )
    check_finite(name, values)


def check_floating(name: str, tensor: Tensor, sparse: bool = False) -> None:
    """Refuse integer, boolean and complex tensors, whose products would be rounded or undefined."""
    check_tensor(name, tensor, sparse)
    if not tensor.is_floating_point():
        raise ValueError(f"{name} has dtype {tensor.dtype}; it must be floating point: call .float() on it.")


def check_precision(name: str, tensor: Tensor, parameter: Tensor) -> None:
    """Refuse a tensor in another precision than what it is multiplied with, unless torch casts by itself."""
    if tensor.dtype != parameter.dtype and not torch.is_autocast_enabled(tensor.device.type):
        raise ValueError(
            f"{name} has dtype {tensor.dtype} but is multiplied with {parameter.dtype}: call .to({parameter.dtype})."
        )


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Refuse a name that is not in the list, and print the list."""
    choices = list(choices)
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}; choose one of: {', '.join(choices)}.")


def check_rows(name: str, tensor: Tensor, num_nodes: int) -> None:
    """Refuse a tensor whose first dimension is not the number of nodes."""
    check_tensor(name, tensor)
    rows = tensor.size(0) if tensor.dim() else 0
    if tensor.dim() == 0 or rows != num_nodes:
        raise ValueError(f"{name} has {rows} rows but the graph has {num_nodes} nodes; pass one row per node.")


def check_nonnegative(name: str, value: float | Tensor) -> None:
    """Refuse a negative, NaN, infinite or complex number."""
    if isinstance(value, Tensor) and value.is_complex():
        raise ValueError(f"{name} has dtype {value.dtype}; it must be real.")
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
    if value.numel() != 1 or value.is_complex():
        raise ValueError(f"{name} has shape {tuple(value.shape)} and dtype {value.dtype}; it must be a single number.")
    return float(value.detach()) if has_values(value) else 1.0


def check_tolerance(tol: float) -> None:
    """A relative tolerance lies strictly between 0 and 1."""
    if not 0.0 < tol < 1.0:
        raise ValueError(f"tol is {tol:g}; it must lie strictly between 0 and 1, for example 1e-6.")


def check_edge_index(edge_index: Tensor, num_nodes: int, name: str = "edge_index") -> None:
    """PyG's ``edge_index``: an integer tensor [2, E] with entries in 0 … num_nodes - 1."""
    check_tensor(name, edge_index)
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
    check_tensor("edge_weight", edge_weight)
    if edge_weight.shape != (num_edges,):
        raise ValueError(
            f"edge_weight has shape {tuple(edge_weight.shape)}; it must hold one number for each of the "
            f"{num_edges} edges: [{num_edges}]."
        )
    check_floating("edge_weight", edge_weight)
    check_finite("edge_weight", edge_weight)
    if num_edges and must_look_at(edge_weight) and float(edge_weight.detach().min()) < 0:
        raise ValueError("edge_weight holds negative entries; the velocity V needs weights of at least 0.")
