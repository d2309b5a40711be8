"""The memory of normalised graphs: it saves work and never answers with another graph's velocity."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import Tensor

import advdiff
from advdiff.nn import AdvDiffConv, AdvDIFFormer
from advdiff.nn import cache as velocity_cache
from advdiff.nn.cache import CAPACITY, forget, velocity_of
from tests.cases import BY_NAME
from tests.nn.dense import every_solver

GRAPH = BY_NAME["weighted"]
NODES = GRAPH.num_nodes


@pytest.fixture(autouse=True)
def empty_memory() -> Iterator[None]:
    forget()
    yield
    forget()


@pytest.fixture
def normalised(monkeypatch: pytest.MonkeyPatch) -> list[Tensor]:
    """The edge_index of every normalisation that was carried out."""
    calls: list[Tensor] = []

    def counted(edge_index: Tensor, *args: object, **options: object) -> advdiff.Velocity:
        calls.append(edge_index)
        return advdiff.normalize_adjacency(edge_index, *args, **options)

    monkeypatch.setattr(velocity_cache, "normalize_adjacency", counted)
    return calls


def fresh(edge_index: Tensor, edge_weight: Tensor | None = None, kind: str = "row") -> Tensor:
    return advdiff.normalize_adjacency(edge_index.clone(), NODES, edge_weight, kind).to_dense()


def test_the_same_tensors_give_the_same_object() -> None:
    edge_index, weight = GRAPH.edge_index, GRAPH.edge_weight
    first = velocity_of(edge_index, NODES, weight, "row")
    assert velocity_of(edge_index, NODES, weight, "row") is first
    others = [
        velocity_of(edge_index, NODES, weight, "symmetric"),
        velocity_of(edge_index, NODES, None, "row"),
        velocity_of(edge_index, NODES, weight.clone(), "row"),
        velocity_of(edge_index, NODES + 1, weight, "row"),
        velocity_of(edge_index.clone(), NODES, weight, "row"),
    ]
    assert len({id(velocity) for velocity in [first, *others]}) == 6
    assert others[3].num_nodes == NODES + 1
    assert torch.equal(others[4].to_dense(), first.to_dense())
    assert velocity_of(edge_index, NODES, weight, "row") is first


@every_solver
def test_training_normalises_once(normalised: list[Tensor], solver: str) -> None:
    model, edge_index = AdvDIFFormer(2, 4, 1, solver=solver, num_layers=3), GRAPH.edge_index
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        model(torch.ones(NODES, 2), edge_index).sum().backward()
        optimizer.step()
    assert len(normalised) == 1


@pytest.mark.parametrize("kind", ["symmetric", "row"])
def test_a_change_in_place_is_noticed(kind: str) -> None:
    edge_index, weight = GRAPH.edge_index, GRAPH.edge_weight
    for tensor, change in ((edge_index, lambda t: t.add_(1).remainder_(NODES - 2)), (weight, lambda t: t[:3].mul_(5))):
        before = velocity_of(edge_index, NODES, weight, kind)
        change(tensor)
        after = velocity_of(edge_index, NODES, weight, kind)
        assert after is not before
        assert torch.equal(after.to_dense(), fresh(edge_index, weight, kind))
        assert velocity_of(edge_index, NODES, weight, kind) is after


def test_the_layer_sees_a_change_in_place() -> None:
    layer, x, weight = AdvDiffConv(2, 2), torch.randn(NODES, 2), GRAPH.edge_weight
    edge_index = GRAPH.edge_index
    before = layer(x, edge_index, weight)
    weight[0] = 9.0
    after = layer(x, edge_index, weight)
    assert not torch.equal(after, before)
    assert torch.equal(after, layer(x, edge_index.clone(), weight.clone()))


def test_capacity_is_bounded_and_the_least_recent_goes_first(normalised: list[Tensor]) -> None:
    graphs = [GRAPH.edge_index for _ in range(CAPACITY)]
    velocities = [velocity_of(graph, NODES, None, "row") for graph in graphs]
    assert velocity_of(graphs[0], NODES, None, "row") is velocities[0]  # now the most recent
    another = GRAPH.edge_index
    velocity_of(another, NODES, None, "row")
    assert len(velocity_cache._velocities) == CAPACITY
    assert len(normalised) == CAPACITY + 1
    assert velocity_of(graphs[0], NODES, None, "row") is velocities[0]
    assert velocity_of(graphs[1], NODES, None, "row") is not velocities[1]


def test_a_new_tensor_is_never_taken_for_an_old_one() -> None:
    """Short-lived tensors reuse addresses and identities."""
    for step in range(5 * CAPACITY):
        edge_index = torch.tensor([[step % NODES], [(step // NODES) % NODES]])
        assert torch.equal(velocity_of(edge_index, NODES, None, "row").to_dense(), fresh(edge_index))
        del edge_index


def test_nothing_is_kept_alive() -> None:
    edge_index, weight = GRAPH.edge_index, GRAPH.edge_weight
    velocity = velocity_of(edge_index, NODES, weight, "row")
    watched = [weakref.ref(edge_index), weakref.ref(weight), weakref.ref(velocity)]
    del weight, velocity
    assert [ref() is None for ref in watched] == [False, True, True]
    del edge_index
    assert watched[0]() is None
    assert not velocity_cache._velocities and not velocity_cache._copies


def test_new_weights_at_every_step_do_not_pile_up() -> None:
    edge_index = GRAPH.edge_index
    for _ in range(3 * CAPACITY):
        velocity_of(edge_index, NODES, torch.rand(edge_index.size(1)), "row")
    assert len(velocity_cache._velocities) <= 1 and len(velocity_cache._copies) <= 2


def test_tensors_made_in_inference_mode_are_remembered_as_they_are() -> None:
    """They do not count their versions; their contents are compared, as those of all others."""
    layer = AdvDiffConv(2, 2)
    with torch.inference_mode():
        edge_index, weight, x = GRAPH.edge_index, GRAPH.edge_weight, torch.ones(NODES, 2)
        layer(x, edge_index, weight)
        weight[0] = 9.0
        changed = velocity_of(edge_index, NODES, weight, "symmetric")
        assert torch.equal(changed.to_dense(), fresh(edge_index, weight, "symmetric"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@every_solver
def test_training_after_evaluation_in_inference_mode(solver: str, dtype: torch.dtype) -> None:
    """What inference mode remembered serves autograd too."""
    layer, edge_index = AdvDiffConv(2, 2, solver=solver, edge_dim=1).to(dtype), GRAPH.edge_index
    x, edge_attr = torch.ones(NODES, 2, dtype=dtype), torch.ones(edge_index.size(1), 1, dtype=dtype)
    with torch.inference_mode():
        layer(x, edge_index, edge_attr=edge_attr)
    edge_attr.requires_grad_()
    layer(x, edge_index, edge_attr=edge_attr).sum().backward()
    assert edge_attr.grad.isfinite().all()


def test_threads_may_share_the_memory() -> None:
    graphs = [GRAPH.edge_index for _ in range(CAPACITY + 8)]

    def visit(offset: int) -> None:
        for step in range(300):
            velocity_of(graphs[(7 * step + offset) % len(graphs)], NODES, None, "row")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(visit, range(8)))
