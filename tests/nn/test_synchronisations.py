"""How often the host waits for the device in one forward pass: the price of looking at a value.

Counted on the CPU as the operations that hand a value to Python or whose output's size depends on one. The budget of a
model is one look at the door, whatever its layers, and for each layer what its solver must decide by values: whether
the inverse exists (1), or whether the series has converged (once for each term beyond the expected degree, here 1 or
2) and rounding has not spoilt it (1).
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch_geometric import EdgeIndex
from torch_geometric.data import Data

import advdiff
from advdiff.checks import check_finite, values_checked
from advdiff.nn import AdvDiffConv, AdvDIFFormer, build, model_names
from tests.cases import block_model

#: Operators that read a value or make a tensor of a size that only the values know.
LOOKS = {
    "aten::_local_scalar_dense",
    "aten::is_nonzero",
    "aten::equal",
    "aten::nonzero",
    "aten::masked_select",
    "aten::_unique2",
    "aten::unique_dim",
    "aten::bincount",
    "aten::repeat_interleave.Tensor",
    "aten::_linalg_check_errors",
}


class Looks(TorchDispatchMode):
    """Counts them; ``tolist`` reads memory without an operator, so it is counted as it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: Counter[str] = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name if function._schema.overload_name != "Tensor" else function.name()
        by_mask = name.startswith("aten::index") and any(
            isinstance(index, Tensor) and index.dtype == torch.bool
            for indices in args[1:2]
            if isinstance(indices, list | tuple)
            for index in indices
        )
        if name in LOOKS or by_mask:
            self.seen[name] += 1
        return function(*args, **(kwargs or {}))


class Lists(TorchFunctionMode):
    def __init__(self, looks: Looks) -> None:
        super().__init__()
        self.looks = looks

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is Tensor.tolist:
            self.looks.seen["tolist"] += 1
        return function(*args, **(kwargs or {}))


def looks(call: Callable[[], object]) -> int:
    with Looks() as mode, Lists(mode):
        call()
    return mode.seen.total()


SBM = block_model((100, 100), 0.05, 0.01)  # too large for the dense methods
X, EDGES = torch.randn(SBM.num_nodes, 6, generator=torch.Generator().manual_seed(0)), SBM.edge_index


@pytest.mark.parametrize(
    "call",
    [
        lambda: float(X.sum()),
        lambda: X.sum().item(),
        lambda: bool(X.any()),
        lambda: X[0].tolist(),
        lambda: X[X > 0],
        lambda: torch.equal(X, X),
        lambda: X.nonzero(),
    ],
    ids=["float", "item", "bool", "tolist", "mask", "equal", "nonzero"],
)
def test_a_look_is_counted(call: Callable[[], object]) -> None:
    assert looks(call) == 1


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("solver, per_layer", [("series", 0), ("inverse", 1), ("exponential", 3)])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_a_model_looks_once_at_the_door(solver: str, per_layer: int, layers: int, training: bool) -> None:
    model = AdvDIFFormer(6, 8, 3, solver=solver, heads=2, num_layers=layers, dropout=0.5).train(training)
    model(X, EDGES)
    assert looks(lambda: model(X, EDGES)) <= 1 + per_layer * layers


def test_edge_features_and_a_known_batch_cost_no_further_look() -> None:
    batch = torch.zeros(SBM.num_nodes, dtype=torch.int64)
    attr = torch.ones(EDGES.size(1), 2)
    model = AdvDIFFormer(6, 8, 3, num_layers=3, edge_dim=2, task="graph")
    model(X, EDGES, edge_attr=attr, batch=batch)
    assert looks(lambda: model(X, EDGES, edge_attr=attr, batch=batch)) == 1


@pytest.mark.parametrize("layers", [1, 3])
def test_the_series_looks_once_at_any_form_of_a_known_graph(layers: int) -> None:
    edges = EDGES.contiguous()
    adj_t = torch.sparse_coo_tensor(edges.flip(0), torch.ones(edges.size(1)), (SBM.num_nodes,) * 2).to_sparse_csr()
    model = AdvDIFFormer(6, 8, 3, heads=2, num_layers=layers)
    for graph in ((X, EdgeIndex(edges)), (X, adj_t), (Data(x=X, edge_index=edges),)):
        model(*graph)
        assert looks(lambda graph=graph: model(*graph)) == 1
    model = AdvDIFFormer(6, 8, 3, heads=2, num_layers=layers, learn=("beta",))  # two heads: β never leaves the device
    model(X, EDGES)
    assert looks(lambda: model(X, EDGES)) == 1


@pytest.mark.parametrize("solver, per_layer", [("series", 0), ("inverse", 1)])
def test_with_the_checks_turned_off_nobody_looks(solver: str, per_layer: int) -> None:
    """But for the inverse, which must know whether it exists."""
    model = AdvDIFFormer(6, 8, 3, solver=solver, heads=2, num_layers=2)
    model(X, EDGES)
    advdiff.set_value_checks(False)
    try:
        assert looks(lambda: model(X, EDGES)) <= 2 * per_layer
        model(NAN, EDGES)
    finally:
        advdiff.set_value_checks(True)
    with pytest.raises(ValueError, match="NaN or infinite"):
        model(NAN, EDGES)


@pytest.mark.parametrize("name", sorted(model_names()))
def test_no_model_looks_at_a_known_graph_again(name: str) -> None:
    """Nor at its features: beyond the one look there are those of a solver of the library, as above."""
    model = build(name, 6, 8, 3)
    model(X, EDGES)
    assert looks(lambda: model(X, EDGES)) <= 1 + 3 * len(model.layers)


# ---------------------------------------------------------------- called directly, everything looks for itself

V = advdiff.normalize_adjacency(EDGES, SBM.num_nodes)
C = advdiff.Attention(X, X)
L = advdiff.Generator(C, V)
NAN = torch.full_like(X, float("nan"))
DIRECT = {
    "layer": lambda Z: AdvDiffConv(6, 6)(Z, EDGES),
    "model": lambda Z: AdvDIFFormer(6, 6, 2)(Z, EDGES),
    "query": lambda Z: advdiff.Attention(Z, X),
    "key": lambda Z: advdiff.Attention(X, Z),
    "V": lambda Z: V @ Z,
    "C": lambda Z: C @ Z,
    "L": lambda Z: L @ Z,
    "exponential": lambda Z: advdiff.exponential(L, Z),
    "resolvent": lambda Z: advdiff.resolvent(L, Z),
    "powers": lambda Z: advdiff.powers(L.propagator, Z, 2),
    "powers of V": lambda Z: advdiff.powers(V, Z, 2),
    "source": lambda Z: advdiff.powers(L.propagator, X, 2, source=Z),
}


@pytest.mark.parametrize("call", DIRECT.values(), ids=DIRECT.keys())
def test_called_directly_each_refuses_nan(call: Callable[[Tensor], object]) -> None:
    with pytest.raises(ValueError, match="NaN or infinite"):
        call(NAN)
    with values_checked():
        call(NAN)  # not looked at inside another call, and no solver hangs on it
    with pytest.raises(ValueError, match="NaN or infinite"):
        call(NAN)


def test_powers_of_any_operator_look_once() -> None:
    assert looks(lambda: advdiff.powers(V, X, 5)) == 1
    assert looks(lambda: advdiff.powers(L, X, 5)) == 1


def test_a_failed_call_leaves_the_door_closed() -> None:
    model = AdvDIFFormer(6, 6, 2, solver="inverse", theta=float("nan"))
    with pytest.raises(ValueError, match="theta is nan"):
        model(X, EDGES)
    with pytest.raises(ValueError, match="NaN or infinite"):
        check_finite("x", NAN)


def test_threads_do_not_open_the_door_for_each_other() -> None:
    inside, done, refused = threading.Event(), threading.Event(), []

    def other() -> None:
        with values_checked():
            inside.set()
            done.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait(10)
    try:
        check_finite("x", NAN)
    except ValueError:
        refused.append(True)
    finally:
        done.set()
        thread.join()
    assert refused


def test_a_graph_not_looked_at_is_not_remembered_as_good() -> None:
    crossing = torch.arange(SBM.num_nodes)
    layer = AdvDiffConv(6, 6)
    with values_checked():
        layer(X, EDGES, batch=crossing)
    with pytest.raises(ValueError, match="join nodes of different graphs"):
        layer(X, EDGES, batch=crossing)
