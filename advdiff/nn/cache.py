"""Check, normalise and cut up each graph once: a training loop passes the same tensors to every layer at every step."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import torch
from torch import Tensor

from advdiff.checks import check_edge_index, check_edge_weight, is_traced, must_look_at
from advdiff.operators.graph import normalize_adjacency
from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity

#: Graphs remembered at once (more than the environments of any data set in the book).
CAPACITY = 16

Result = TypeVar("Result")
#: What was made of which tensors, the most recent last.
Memory = OrderedDict[Hashable, tuple[list[tuple[Tensor, int]], Any]]

_memories: list[Memory] = []
_lock = threading.RLock()


def new_memory() -> Memory:
    """A memory of its own, emptied with all others by :func:`forget`."""
    memory: Memory = OrderedDict()
    _memories.append(memory)
    return memory


_velocities, _segments, _good = new_memory(), new_memory(), new_memory()


def recall(memory: Memory, inputs: list[Tensor | None], options: tuple, make: Callable[[], Result]) -> Result:
    """``make()``, or what it returned for the very same tensors and options.

    A remembered entry holds its tensors, so their identity cannot be reused while it lives, and their version counters,
    so a change in place is noticed (not one behind autograd's back, through ``.data`` or a shared NumPy array).
    """
    given = [t for t in inputs if t is not None]
    if any(t.is_inference() for t in given):  # such tensors do not count their versions
        return make()
    key = (*(id(t) for t in inputs), *options)
    with _lock:
        if key in memory:
            seen, result = memory[key]
            if all(t is s and t._version == version for t, (s, version) in zip(given, seen, strict=True)):
                memory.move_to_end(key)
                return result
        with torch.inference_mode(False):  # what is remembered must serve autograd later
            result = make()
        memory[key] = ([(t, t._version) for t in given], result)
        while len(memory) > CAPACITY:
            memory.popitem(last=False)
        return result


def velocity_of(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, kind: str, self_loops: str = "none"
) -> Velocity:
    """``normalize_adjacency`` with a memory of the last graphs."""

    def normalise() -> Velocity:
        if self_loops == "none":
            return normalize_adjacency(edge_index, num_nodes, edge_weight, kind)
        return normalize_adjacency(edge_index, num_nodes, edge_weight, kind, self_loops=self_loops)

    if torch.compiler.is_compiling() or (edge_weight is not None and edge_weight.requires_grad):
        return normalise()  # neither is another call's
    return recall(_velocities, [edge_index, edge_weight], (num_nodes, kind, self_loops), normalise)


def segments_of(
    num_nodes: int, batch: Tensor | Segments | None, device: torch.device, num_graphs: int | None = None
) -> Segments:
    """``Segments`` with a memory of the last batches; those that are made already are returned as they are."""
    if isinstance(batch, Segments):
        return batch
    if is_traced():
        return Segments(num_nodes, batch, device, num_graphs)
    options = (num_nodes, device, num_graphs)
    return recall(_segments, [batch], options, lambda: Segments(num_nodes, batch, device, num_graphs))


def check_graph(
    edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None, batch: Tensor | None, device: torch.device
) -> None:
    """Edges between existing nodes, with weights that are not negative, inside the graphs of the batch."""

    def check() -> bool:
        check_edge_index(edge_index, num_nodes)
        if edge_weight is not None:
            check_edge_weight(edge_weight, edge_index.size(1))
        if batch is not None and not torch.compiler.is_compiling():
            segments_of(num_nodes, batch, device).check_edges(edge_index)
        return True

    if must_look_at(edge_index):
        recall(_good, [edge_index, edge_weight, batch], (num_nodes, device), check)
    else:  # what was not looked at is not to be remembered as good
        check()


def forget() -> None:
    """Empty the memory."""
    for memory in _memories:
        memory.clear()
