"""GDC: the kernel, its largest entries, and what is dropped on the way, against dense matrices and PyG."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import GDC as GDCTransform

from advdiff.nn import build
from advdiff.nn.baselines import columns, gdc
from advdiff.nn.baselines.columns import Columns
from advdiff.nn.baselines.gdc import GDC, sparsified
from advdiff.nn.cache import velocity_of
from tests.cases import BATCHED, BY_NAME, CASES, GraphCase, each, some
from tests.nn.dense import LARGE, array
from tests.nn.test_formulas import UNDIRECTED, WIDTH, run, state
from tests.reference import normalized, relative_error

every_kernel = pytest.mark.parametrize("kernel", ["heat", "ppr"])


def dense_kernel(case: GraphCase, kernel: str, t: float = 2.5, teleport: float = 0.2) -> np.ndarray:
    """e^{-t(I − Â)} or α(I − (1 − α)Â)⁻¹."""
    identity = np.eye(case.num_nodes)
    A = normalized(case.adjacency + identity, "symmetric")
    if kernel == "heat":
        return scipy.linalg.expm(-t * (identity - A))
    return teleport * np.linalg.inv(identity - (1.0 - teleport) * A)


def largest(S: np.ndarray, number: int) -> np.ndarray:
    """The largest entries of each row, divided by their sum."""
    kept = np.zeros_like(S)
    for u, row in enumerate(S):
        best = np.argsort(-row)[:number]
        kept[u, best] = row[best] / row[best].sum()
    return kept


@every_kernel
@each([*UNDIRECTED, BY_NAME["directed_weighted"]])
def test_the_whole_kernel(case: GraphCase, kernel: str) -> None:
    layer = GDC(WIDTH, kernel, t=2.5, teleport=0.2, sparsify=False, tol=1e-12).double()
    expected = dense_kernel(case, kernel) @ array(state(case)) @ array(layer.weight).T + array(layer.bias)
    assert relative_error(run(layer, case), expected) <= 1e-10


@every_kernel
@each([*CASES, LARGE])
def test_the_largest_entries(case: GraphCase, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them on small graphs, and a part on a large one, whose columns come in several blocks."""
    monkeypatch.setattr(columns, "SIZE", 4 if case.num_nodes < 20 else 64)
    layer = GDC(WIDTH, kernel, t=2.5, teleport=0.2, neighbours=20, tol=1e-13).double()
    S = largest(dense_kernel(case, kernel), 20)
    expected = S @ array(state(case)) @ array(layer.weight).T + array(layer.bias)
    assert relative_error(run(layer, case), expected) <= 1e-10


@every_kernel
def test_it_is_the_transform_of_pyg(kernel: str) -> None:
    options = {"heat": {"method": "heat", "t": 5.0}, "ppr": {"method": "ppr", "alpha": 0.15}}[kernel]
    transform = GDCTransform(diffusion_kwargs=options, sparsification_kwargs={"method": "topk", "k": 16, "dim": 0})
    x = state(LARGE)
    diffused = transform(Data(x=x, edge_index=LARGE.edge_index, edge_attr=torch.ones(len(LARGE.edges)).double()))
    S = torch.zeros(LARGE.num_nodes, LARGE.num_nodes, dtype=torch.float64)
    S[diffused.edge_index[1], diffused.edge_index[0]] = diffused.edge_attr
    layer = GDC(WIDTH, kernel, neighbours=16, tol=1e-13).double()
    torch.testing.assert_close(run(layer, LARGE), S @ x @ layer.weight.T + layer.bias)


@each(BATCHED)
def test_graphs_of_a_batch_share_columns(case: GraphCase) -> None:
    found = Columns(case.num_nodes, case.batch_vector, torch.device("cpu"))
    graph = torch.tensor(case.batch)
    assert found.width == int(graph.bincount().max())
    row = torch.arange(case.num_nodes)
    torch.testing.assert_close(found.nodes(row, found.place), row)
    for g in graph.unique():
        assert sorted(found.place[graph == g].tolist()) == list(range(int((graph == g).sum())))
    blocks = torch.cat([block for _, block in found.blocks(torch.float64)], 1)
    assert torch.equal(blocks, torch.nn.functional.one_hot(found.place, found.width).double())


@some("weighted", "directed_weighted", "batch_unsorted", "isolated", "no_edges")
def test_dropping_entries_that_are_tiny_changes_nothing(case: GraphCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gdc, "ROWS", 3)
    exact, pruned = (GDC(WIDTH, t=2.0, neighbours=3, prune=prune).double() for prune in (0.0, 1e-7))
    pruned.load_state_dict(exact.state_dict())
    torch.testing.assert_close(run(pruned, case), run(exact, case), rtol=1e-5, atol=1e-5)


def test_dropping_entries() -> None:
    """Row by row: powers of Â without their entries below the threshold, added up."""
    A = normalized(LARGE.adjacency + np.eye(LARGE.num_nodes), "symmetric")
    layer = GDC(WIDTH, t=3.0, neighbours=12, prune=0.02)
    power, S = np.eye(LARGE.num_nodes), np.zeros_like(A)
    for weight in layer.weights():
        S += weight * power
        power = power @ A
        power[power < 0.02] = 0.0
    adjacency = velocity_of(LARGE.edge_index, LARGE.num_nodes, None, "symmetric", self_loops="all")
    found = array(sparsified(adjacency, layer.weights(), 12, 0.02).to_dense())
    expected = largest(S, 12)
    # Entries of equal size at the end of a row may stand for each other.
    np.testing.assert_allclose(np.sort(found, 1), np.sort(expected, 1), atol=1e-6)
    assert ((found > 0).sum(1) <= 12).all() and np.mean((found > 0) == (expected > 0)) > 0.995


def test_what_would_take_hours_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_WORK", 1000.0)
    case, message = (
        BY_NAME["undirected"],
        "exact diffusion weights of this graph take .* set prune=1e-3 .*sparsify=False",
    )
    with pytest.raises(ValueError, match=message):
        run(GDC(WIDTH), case)
    for instead in ({"prune": 1e-3}, {"sparsify": False}):
        assert run(GDC(WIDTH, **instead), case).isfinite().all()


def test_a_graph_is_diffused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, case = [], BY_NAME["undirected"]
    monkeypatch.setattr(gdc, "_exact", lambda *given: made.append(given) or _exact(*given))
    model, edge_index = build("gdc", WIDTH, 8, 2).double(), case.edge_index
    for _ in range(3):
        model(state(case), edge_index)
    assert len(made) == 1


_exact = gdc._exact
