"""Writes that torch does not count: ways of changing a tensor behind the memory of normalised graphs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

import advdiff
from advdiff.nn import AdvDiffConv, build
from advdiff.nn import cache as velocity_cache
from advdiff.nn.cache import forget, velocity_of
from tests.cases import BY_NAME

GRAPH = BY_NAME["weighted"]
NODES = GRAPH.num_nodes
NEW = torch.linspace(0.5, 2.0, GRAPH.edge_index.size(1), dtype=GRAPH.edge_weight.dtype)


@pytest.fixture(autouse=True)
def empty_memory() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def group(tmp_path) -> Iterator[None]:
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def by_data(weight: Tensor) -> None:
    weight.data = NEW.clone()


def by_copy_into_data(weight: Tensor) -> None:
    weight.data.copy_(NEW)


def by_swap(weight: Tensor) -> None:
    torch.utils.swap_tensors(weight, NEW.clone())


def by_set(weight: Tensor) -> None:
    weight.set_(NEW.clone())


def by_dlpack(weight: Tensor) -> None:
    torch.from_dlpack(weight.__dlpack__()).copy_(NEW)


def by_numpy(weight: Tensor) -> None:
    weight.numpy()[:] = NEW.numpy()


def by_storage(weight: Tensor) -> None:
    weight.untyped_storage().copy_(NEW.untyped_storage())


def by_shared_memory(weight: Tensor) -> None:
    """Another process writes."""
    weight.share_memory_()
    child = os.fork()
    if child == 0:
        weight.numpy()[:] = NEW.numpy()
        os._exit(0)
    os.waitpid(child, 0)


WRITES = [by_data, by_copy_into_data, by_swap, by_set, by_dlpack, by_numpy, by_storage]
if hasattr(os, "fork"):
    WRITES.append(by_shared_memory)


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write.__name__)
def test_a_write_that_torch_does_not_count_is_noticed(write: Callable[[Tensor], None]) -> None:
    edge_index, weight = GRAPH.edge_index, GRAPH.edge_weight.clone()
    layer, x = AdvDiffConv(2, 2).to(weight.dtype), torch.randn(NODES, 2, dtype=weight.dtype)
    old = velocity_of(edge_index, NODES, weight, "row").to_dense()
    before = layer(x, edge_index, weight)
    write(weight)
    assert torch.equal(weight, NEW)
    new = velocity_of(edge_index, NODES, weight, "row").to_dense()
    assert not torch.equal(new, old)
    assert torch.equal(new, advdiff.normalize_adjacency(edge_index.clone(), NODES, NEW.clone(), "row").to_dense())
    assert torch.equal(layer(x, edge_index, weight), layer(x, edge_index.clone(), NEW.clone()))
    assert not torch.equal(layer(x, edge_index, weight), before)


@pytest.mark.parametrize("collective", ["all_gather_into_tensor", "scatter", "all_to_all_single"])
def test_a_collective_is_noticed(group: None, collective: str) -> None:
    """With one process these write what they are given, past the counter of versions."""
    edge_index, weight = GRAPH.edge_index, GRAPH.edge_weight.clone()
    velocity_of(edge_index, NODES, weight, "row")
    if collective == "scatter":
        dist.scatter(weight, [NEW.clone()], src=0)
    else:
        getattr(dist, collective)(weight, NEW.clone())
    expected = advdiff.normalize_adjacency(edge_index.clone(), NODES, NEW.clone(), "row").to_dense()
    assert torch.equal(velocity_of(edge_index, NODES, weight, "row").to_dense(), expected)


@pytest.mark.parametrize("name", ["gcn", "gat", "gdc", "graphgps", "sgc", "advdifformer-s"])
def test_every_memory_of_a_model_notices(name: str) -> None:
    edge_index, weight = GRAPH.edge_index, GRAPH.edge_weight.clone()
    model, x = build(name, 2, 32, 1).to(weight.dtype).eval(), torch.randn(NODES, 2, dtype=weight.dtype)
    before = model(x, edge_index, weight)
    by_numpy(weight)
    after = model(x, edge_index, weight)
    assert not torch.equal(after, before)
    assert torch.equal(after, model(x, edge_index.clone(), NEW.clone()))


def test_a_bad_index_written_past_the_counter_is_refused() -> None:
    edge_index = GRAPH.edge_index.clone()
    layer, x = AdvDiffConv(2, 2), torch.ones(NODES, 2)
    layer(x, edge_index)
    edge_index.numpy()[0, 0] = 10**9
    with pytest.raises(ValueError, match="edge_index names nodes"):
        layer(x, edge_index)


def test_weights_that_a_layer_makes_for_itself_are_compared_inside_a_call() -> None:
    """The door of the model has not seen them."""

    class Reweighted(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.weight = AdvDiffConv(32, 32), GRAPH.edge_weight.float()

        def forward(self, z: Tensor, edge_index: Tensor, *graph: Tensor | None) -> Tensor:
            return self.conv(z, edge_index, self.weight)

    from advdiff.nn import GraphModel

    model, x = GraphModel(2, 32, 1, [Reweighted()]), torch.randn(NODES, 2)
    edge_index = GRAPH.edge_index
    before = model(x, edge_index)
    model.layers[0].weight.numpy()[:] = NEW.float().numpy()
    after = model(x, edge_index)
    forget()
    assert not torch.equal(after, before) and torch.equal(after, model(x, edge_index))


def test_v_does_not_change_with_the_callers_edges() -> None:
    edge_index = GRAPH.edge_index.clone()
    for velocity in (velocity_of(edge_index, NODES, None, "row"), advdiff.normalize_adjacency(edge_index, NODES)):
        before = velocity.to_dense()
        edge_index.copy_(edge_index.flip(1))
        assert torch.equal(velocity.to_dense(), before)


def test_backward_sees_the_graph_of_its_forward() -> None:
    edge_index, weight = GRAPH.edge_index.clone(), GRAPH.edge_weight.clone().float()
    layer, x = AdvDiffConv(2, 2), torch.randn(NODES, 2, requires_grad=True)
    (expected,) = torch.autograd.grad(layer(x, edge_index, weight).square().sum(), x)
    out = layer(x, edge_index, weight).square().sum()
    edge_index.zero_()
    weight.zero_()
    assert torch.equal(torch.autograd.grad(out, x)[0], expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_fills_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    inside, leave = threading.Event(), threading.Event()
    original = velocity_cache.normalize_adjacency

    def slow(*args: object, **options: object) -> advdiff.Velocity:
        if threading.current_thread() is not threading.main_thread():
            inside.set()
            leave.wait(20)
        return original(*args, **options)

    monkeypatch.setattr(velocity_cache, "normalize_adjacency", slow)
    thread = threading.Thread(target=velocity_of, args=(GRAPH.edge_index, NODES, None, "row"))
    thread.start()
    assert inside.wait(20)
    child = os.fork()
    if child == 0:
        velocity_of(GRAPH.edge_index.clone(), NODES, None, "row")
        os._exit(7)
    try:
        for _ in range(200):
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            leave.wait(0.05)
        else:
            os.kill(child, 9)
            os.waitpid(child, 0)
        assert done and os.waitstatus_to_exitcode(status) == 7
    finally:
        leave.set()
        thread.join()
