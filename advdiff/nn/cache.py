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
    are_values_wanted,
    check_all_finite,
    check_csr,
    check_edge_index,
    check_edge_weight,
    check_tensor,
    has_values,
    is_checked,
    is_traced,
    look,
    must_look_at,
)
from advdiff.nn.part import CURRENT_PART
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
        self.key, self.marks = id(given), _marks(given)
        storage = _parts(given)[-1].untyped_storage()
        self.memory = weakref.ref(storage, partial(_freed, self.key))

    def has_form_of(self, given: Tensor) -> bool:
        """Are shape, type, place and storage the same, and the number of entries of a sparse matrix?"""
        form = (given.shape, given.dtype, given.device, given.layout)
        if form != (self.copy.shape, self.copy.dtype, self.copy.device, self.copy.layout):
            return False
        return all(new.shape == old.shape for new, old in zip(_parts(given), _parts(self.copy), strict=True))

    def differs(self, given: Tensor) -> Tensor | None:
        """A flag on the tensor's device, raised where its values are others than those of the copy; None: in form."""
        if not self.has_form_of(given):
            return None
        parts = zip(_parts(given.detach()), _parts(self.copy), strict=True)
        return torch.stack([torch.ne(new, old).any() for new, old in parts]).any()

    def is_up_to_date(self, given: Tensor) -> bool:
        """Does the tensor hold what the copy holds? Where nobody may look, torch's count of its writes tells."""
        if not are_values_wanted() and self.marks is not None:
            return self.marks == _marks(given)
        differs = self.differs(given)
        return differs is not None and not bool(differs)


def _parts(tensor: Tensor) -> tuple[Tensor, ...]:
    if tensor.layout == torch.sparse_csr:
        return tensor.crow_indices(), tensor.col_indices(), tensor.values()
    if tensor.layout == torch.sparse_csc:
        return tensor.ccol_indices(), tensor.row_indices(), tensor.values()
    if tensor.layout == torch.sparse_coo:
        return tensor._indices(), tensor._values()
    return (tensor,)


def _marks(tensor: Tensor) -> tuple | None:
    """Where the tensor lies and how many writes to it torch has counted; None in inference mode, which counts none."""
    if tensor.is_inference():
        return None
    parts = [(part.data_ptr(), part.shape, part.stride(), part.dtype, part._version) for part in _parts(tensor)]
    return tensor.layout, tensor.shape, *parts


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


def _up_to_date(given: Tensor | None, trusted: bool = False) -> Known | None:
    """The copy that equals the tensor now; compared unless the call under way has done so at its door, or will."""
    if given is None:
        return None
    known = _copies.get(id(given))
    if known is None:
        return _learn(given)
    if is_checked(given) or (known.has_form_of(given) if trusted else known.is_up_to_date(given)):
        return known
    return _learn(given)


def recall(
    memory: Memory, inputs: list[Tensor | None], options: tuple, make: Callable[..., Result], *, trusted: bool = False
) -> Result:
    """``make(*copies of the inputs)``, or what it returned for tensors with these contents and these options.

    ``trusted`` leaves it to the caller to compare the contents afterwards (``made_from`` of :func:`check_graph`).
    """
    # On ``meta`` there is nothing to compare, and what torch records or transforms is of no use to another call.
    if is_traced() or any(given is not None and not has_values(given) for given in inputs):
        return make(*inputs)
    copies = [_up_to_date(given, trusted) for given in inputs]
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
    part = CURRENT_PART.get()
    if part is not None:
        return part.velocity(kind, self_loops)

    def normalise(edge_index: Tensor, edge_weight: Tensor | None) -> Velocity:
        return normalize_adjacency(edge_index, num_nodes, edge_weight, kind, self_loops=self_loops)

    if edge_weight is not None and edge_weight.requires_grad:  # gradients flow to the weights, not to a copy of them
        return normalise(edge_index, edge_weight)
    return recall(_velocities, [edge_index, edge_weight], (num_nodes, kind, self_loops), normalise)


def segments_of(
    num_nodes: int, batch: Tensor | Segments | None, device: torch.device, num_graphs: int | None = None
) -> Segments:
    """``Segments`` with a memory of the last batches; those that are made already are returned as they are.

    Where a part stands for the graph, its own are returned.
    """
    if isinstance(batch, Segments):
        return batch
    part = CURRENT_PART.get()
    if part is not None:
        return part.segments
    options = (num_nodes, device, num_graphs)
    return recall(_segments, [batch], options, lambda batch: Segments(num_nodes, batch, device, num_graphs))


def check_graph(
    edge_index: Tensor,
    num_nodes: int,
    edge_weight: Tensor | None,
    batch: Tensor | None,
    device: torch.device,
    features: Mapping[str, Tensor | None] | None = None,
    made_from: Tensor | None = None,
) -> bool:
    """The door of a model: edges between existing nodes, with weights that are not negative, inside the graphs of the
    batch, and features without NaN.

    What was found good is compared with its copy, in the one look that also reads the features; a sparse matrix of
    features is such a thing, too. The caller then works inside ``values_checked(edge_index, edge_weight, batch, …)``.

    False if ``made_from``, of which the edges were made (``adj_t``), is no longer what it was then: they must be made
    anew, and nothing was checked.
    """
    features = features or {}
    dense = {name: given for name, given in features.items() if given is None or given.layout == torch.strided}
    sparse = {name: given for name, given in features.items() if name not in dense and given is not None}
    graph = [edge_index, edge_weight, batch]

    def check(edge_index: Tensor, edge_weight: Tensor | None, _: Tensor | None, *matrices: Tensor) -> None:
        check_edge_index(edge_index, num_nodes)
        if edge_weight is not None:
            check_edge_weight(edge_weight, edge_index.size(1))
        if batch is not None and not torch.compiler.is_compiling():
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
    part = CURRENT_PART.get()
    if part is not None:
        part.check(edge_index, num_nodes, edge_weight, batch)
        check_all_finite(dense)
        return True
    if not must_look_at(edge_index):  # what was not looked at is not to be remembered as good
        check(edge_index, edge_weight, batch, *sparse.values())
        check_all_finite(dense)
        return True
    inputs = [*graph, *sparse.values()]
    read = [*inputs, made_from]
    known = [(copy, copy.differs(t)) for t in read if t is not None and (copy := _copies.get(id(t))) is not None]
    finite, *answers = look(dense, [flag for _, flag in known if flag is not None])
    for copy, flag in known:
        if flag is None or answers.pop(0):
            _drop(copy)
    if made_from is not None and id(made_from) not in _copies:
        return False
    copies = [None if t is None else _copies.get(id(t)) or _learn(t) for t in inputs]
    key = (*copies, num_nodes, device)
    if key not in _good:
        check(*(None if copy is None else copy.copy for copy in copies))  # type: ignore[arg-type]
        _keep(_good, key, True)
    if not finite:
        check_all_finite(dense)
    return True


def forget() -> None:
    """Empty the memory."""
    _copies.clear()
    for memory in _memories:
        memory.clear()
