"""Check, normalise and cut up each graph once: a training loop passes the same tensors to every layer at every step.

Whatever is remembered was made of an own copy of the given tensors, and is used again only if they still hold what the
copy holds. So no write can make it stale, be it one that torch does not count (a collective of ``torch.distributed``,
``w.data = …``, an alias in NumPy, DLPack or shared memory). A model compares once per call, at the door, and asks the
device in the same look as for NaN among its features: one pass over the edges, and no synchronisation of its own.

Memories hold their tensors weakly and are dropped with them. There is no lock, so a fork cannot inherit a closed one:
single operations on a dict are atomic, and two threads that miss at once make the same thing twice.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor

from advdiff.checks import (
    check_all_finite,
    check_csr,
    check_edge_index,
    check_edge_weight,
    check_tensor,
    has_values,
    is_checked,
    look,
    must_look_at,
)
from advdiff.nn.part import current_part
from advdiff.operators.graph import normalize_adjacency
from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity

#: Graphs remembered at once (more than the environments of any data set in the book).
CAPACITY = 16

Result = TypeVar("Result")
#: What was made of which copies under which options, the most recent last.
Memory = dict[tuple, Any]

_memories: list[Memory] = []


class Known:
    """An own copy of a tensor, found by the tensor's identity. Another tensor may have that later: contents decide.

    It goes when the memory of the tensor is freed, which a weak reference to the storage tells; one to the tensor
    itself would make ``torch.utils.swap_tensors`` refuse it.
    """

    def __init__(self, given: Tensor) -> None:
        with torch.inference_mode(False):  # what is remembered must serve autograd later
            self.copy = given.detach().clone()
        self.key = id(given)
        storage = _parts(given)[-1].untyped_storage()
        self.memory = weakref.ref(storage, partial(_freed, self.key))

    def differs(self, given: Tensor) -> Tensor | None:
        """A flag on the tensor's device, raised where its values are others than those of the copy; None: in form."""
        form = (given.shape, given.dtype, given.device, given.layout)
        if form != (self.copy.shape, self.copy.dtype, self.copy.device, self.copy.layout):
            return None
        parts = list(zip(_parts(given.detach()), _parts(self.copy), strict=True))
        if any(new.shape != old.shape for new, old in parts):  # another number of entries of a sparse matrix
            return None
        return torch.stack([torch.ne(new, old).any() for new, old in parts]).any()


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    if tensor.layout == torch.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    return (tensor,)


_copies: dict[int, Known] = {}


def new_memory() -> Memory:
    """A memory of its own, emptied with all others by :func:`forget`."""
    memory: Memory = {}
    _memories.append(memory)
    return memory


_velocities, _segments, _good = new_memory(), new_memory(), new_memory()


def _freed(key: int, memory: weakref.ref) -> None:
    known = _copies.get(key)
    if known is not None and known.memory is memory:
        _drop(known)


def _drop(known: Known) -> None:
    if _copies.get(known.key) is known:
        _copies.pop(known.key, None)
    for memory in _memories:
        for key in [key for key in list(memory) if known in key]:
            memory.pop(key, None)


def _learn(given: Tensor) -> Known:
    """Copy a tensor that is not known, or no longer as it was."""
    old = _copies.get(id(given))
    if old is not None:
        _drop(old)
    known = Known(given)
    _keep(_copies, known.key, known, 3 * CAPACITY)  # edges, weights and batch of each graph
    return known


def _keep(memory: dict, key: Any, value: Any, capacity: int = CAPACITY) -> None:
    """Store as the most recent, and let go of the least recent."""
    memory.pop(key, None)
    memory[key] = value
    for oldest in list(memory)[: max(0, len(memory) - capacity)]:
        gone = memory.pop(oldest, None)
        if isinstance(gone, Known):
            _drop(gone)


def _up_to_date(given: Tensor | None) -> Known | None:
    """The copy that equals the tensor now; compared unless the call under way has done so at its door."""
    if given is None:
        return None
    known = _copies.get(id(given))
    if known is None:
        return _learn(given)
    if is_checked(given):
        return known
    differs = known.differs(given)
    return _learn(given) if differs is None or bool(differs) else known


def recall(memory: Memory, inputs: list[Tensor | None], options: tuple, make: Callable[..., Result]) -> Result:
    """``make(*copies of the inputs)``, or what it returned for tensors with these contents and these options."""
    if any(given is not None and not has_values(given) for given in inputs):  # nothing to compare
        return make(*inputs)
    copies = [_up_to_date(given) for given in inputs]
    key = (*copies, *options)
    result = memory.get(key)
    if result is None:
        with torch.inference_mode(False):
            result = make(*(None if known is None else known.copy for known in copies))
    _keep(memory, key, result)
    return result


def velocity_of(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, kind: str, self_loops: str = "none"
) -> Velocity:
    """``normalize_adjacency`` with a memory of the last graphs; or V of the part that stands for the graph."""
    part = current_part()
    if part is not None:
        return part.velocity(kind, self_loops)

    def normalise(edge_index: Tensor, edge_weight: Tensor | None) -> Velocity:
        return normalize_adjacency(edge_index, num_nodes, edge_weight, kind, self_loops=self_loops)

    return recall(_velocities, [edge_index, edge_weight], (num_nodes, kind, self_loops), normalise)


def segments_of(num_nodes: int, batch: Tensor | None, device: torch.device) -> Segments:
    """``Segments`` with a memory of the last batches; or those of the part that stands for the graph."""
    part = current_part()
    if part is not None:
        return part.segments
    return recall(_segments, [batch], (num_nodes, device), lambda batch: Segments(num_nodes, batch, device))


def check_graph(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None,
    batch: Tensor | None,
    device: torch.device,
    features: Mapping[str, Tensor | None] | None = None,
) -> None:
    """The door of a model: edges between existing nodes, with weights that are not negative, inside the graphs of the
    batch, and features without NaN.

    What was found good is compared with its copy, in the one look that also reads the features; a sparse matrix of
    features is such a thing, too. The caller then works inside ``values_checked(edge_index, edge_weight, batch, …)``.
    """
    features = features or {}
    dense = {name: given for name, given in features.items() if given is None or given.layout == torch.strided}
    sparse = {name: given for name, given in features.items() if name not in dense and given is not None}
    graph = [edge_index, edge_weight, batch]

    def check(edge_index: Tensor, edge_weight: Tensor | None, _: Tensor | None, *matrices: Tensor) -> None:
        check_edge_index(edge_index, num_nodes)
        if edge_weight is not None:
            check_edge_weight(edge_weight, edge_index.size(1))
        if batch is not None:
            segments_of(num_nodes, batch, device).check_edges(edge_index)
        for name, matrix in zip(sparse, matrices, strict=True):
            check_csr(name, matrix)

    for name, given in (("edge_index", edge_index), ("edge_weight", edge_weight), ("batch", batch)):
        if given is not None:
            check_tensor(name, given)
            if given.device != device:
                raise ValueError(
                    f"{name} lies on {given.device} and the features on {device}; move both to one device."
                )
    part = current_part()
    if part is not None:
        part.check(edge_index, num_nodes, edge_weight, batch)
        check_all_finite(dense)
        return
    if not must_look_at(edge_index):  # what was not looked at is not to be remembered as good
        check(edge_index, edge_weight, batch, *sparse.values())
        check_all_finite(dense)
        return
    inputs = [*graph, *sparse.values()]
    known = [(copy, copy.differs(t)) for t in inputs if t is not None and (copy := _copies.get(id(t))) is not None]
    finite, *answers = look(dense, [flag for _, flag in known if flag is not None])
    for copy, flag in known:
        if flag is None or answers.pop(0):
            _drop(copy)
    copies = [None if t is None else _copies.get(id(t)) or _learn(t) for t in inputs]
    key = (*copies, num_nodes, device)
    if key not in _good:
        check(*(None if copy is None else copy.copy for copy in copies))  # type: ignore[arg-type]
        _keep(_good, key, True)
    if not finite:
        check_all_finite(dense)


def forget() -> None:
    """Empty the memory."""
    _copies.clear()
    for memory in _memories:
        memory.clear()
