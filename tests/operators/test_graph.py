"""``normalize_adjacency`` against numpy, PyG and networkx; gradient and divergence against the Laplacian."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.nn.conv.gcn_conv import gcn_norm

import advdiff
from tests.cases import BY_NAME, PATH, GraphCase, some, star
from tests.reference import leaf, normalized, randn, relative_error

UNDIRECTED = [case for case in BY_NAME.values() if case.is_undirected]


def test_velocity_is_the_definition(case: GraphCase, kind: str, dtype: torch.dtype) -> None:
    V = case.velocity(kind, dtype).to_dense()
    assert V.dtype == dtype
    assert relative_error(V, normalized(case.adjacency, kind)) <= (1e-15 if dtype == torch.float64 else 1e-7)


def test_path_by_hand() -> None:
    """The path 0 – 1 – 2 – 3 has degrees 1, 2, 2, 1."""
    half, root = 0.5, 0.5**0.5
    rows = [[0, 1, 0, 0], [half, 0, half, 0], [0, half, 0, half], [0, 0, 1, 0]]
    symmetric = [[0, root, 0, 0], [root, 0, half, 0], [0, half, 0, root], [0, 0, root, 0]]
    for kind, expected in (("row", rows), ("symmetric", symmetric)):
        assert relative_error(PATH.velocity(kind).to_dense(), np.array(expected)) <= 1e-15


def test_an_edge_goes_from_source_to_target() -> None:
    """One edge 0 → 1: V gathers at the target, V[1, 0] = 1."""
    for kind in ("symmetric", "row"):
        V = advdiff.normalize_adjacency(torch.tensor([[0], [1]]), 2, kind=kind)
        assert V.to_dense().tolist() == [[0, 0], [1, 0]]
        assert (V @ torch.tensor([5.0, 7.0])).tolist() == [0, 5]


@pytest.mark.parametrize(
    "case, self_loops",
    # PyG keeps an existing loop where A + I adds one.
    [(c, loops) for c in UNDIRECTED for loops in ("none", "all") if (c.name, loops) != ("self_loops", "all")],
    ids=lambda value: getattr(value, "name", value),
)
def test_symmetric_is_the_normalisation_of_pyg(case: GraphCase, self_loops: str) -> None:
    weight = torch.ones(len(case.edges), dtype=torch.float64) if case.edge_weight is None else case.edge_weight
    edge_index, weight = gcn_norm(case.edge_index, weight, case.num_nodes, add_self_loops=self_loops == "all")
    V = np.zeros((case.num_nodes, case.num_nodes))
    np.add.at(V, (edge_index[1].numpy(), edge_index[0].numpy()), weight.numpy())
    assert relative_error(case.velocity(self_loops=self_loops).to_dense(), V) <= 1e-12


@some("path", "undirected", "weighted", "star")
def test_identity_minus_velocity_is_the_normalised_laplacian(case: GraphCase) -> None:
    graph = nx.from_numpy_array(case.adjacency)
    expected = nx.normalized_laplacian_matrix(graph).toarray()
    assert relative_error(torch.eye(case.num_nodes) - case.velocity().to_dense(), expected) <= 1e-12


def test_norms(case: GraphCase) -> None:
    """Rows of D⁻¹A sum to 1 or, for an isolated node, 0; ‖D_in^{-1/2} A D_out^{-1/2}‖₂ ≤ 1."""
    sums = case.velocity("row").to_dense().sum(1).numpy()
    assert sums == pytest.approx((case.adjacency.sum(1) > 0).astype(float), abs=1e-14)
    assert np.linalg.norm(case.velocity("symmetric").to_dense().numpy(), 2) <= 1.0 + 1e-12


def test_two_sided_degrees_keep_a_directed_hub_bounded() -> None:
    """Theory §5: with a one-sided degree a hub of 99 leaves would have norm √99 = 9.95."""
    hub = GraphCase("hub", 100, [(leaf, 0) for leaf in range(1, 100)])
    assert np.linalg.norm(hub.velocity("symmetric").to_dense().numpy(), 2) == pytest.approx(1.0)
    assert np.linalg.norm(hub.velocity("row").T.to_dense().numpy(), 2) <= 1.0


@some("undirected", "isolated", "no_edges", "self_loops", "batch_with_one_node_graph")
def test_self_loops(case: GraphCase, kind: str) -> None:
    A, lonely = case.adjacency, case.adjacency.sum(1) == 0
    everywhere = normalized(A + np.eye(case.num_nodes), kind)
    assert relative_error(case.velocity(kind, self_loops="all").to_dense(), everywhere) <= 1e-15
    isolated = case.velocity(kind, self_loops="isolated").to_dense()
    assert relative_error(isolated, normalized(A, kind) + np.diag(lonely)) <= 1e-15


def test_self_loops_of_isolated_nodes_are_ones_in_a_directed_graph(kind: str) -> None:
    """v_uu = 1 for nodes without any edge, here 2; a loop at the source 0 would break ‖V‖₂ ≤ 1."""
    V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 1]]), 3, kind=kind, self_loops="isolated").to_dense()
    assert V[2].tolist() == [0, 0, 1]
    assert V[0].tolist() == [0, 0, 0]
    assert np.linalg.norm(V.numpy(), 2) <= 1.0 + 1e-6


def test_precision_of_weights_and_indices(kind: str) -> None:
    case = BY_NAME["weighted"]
    weight = torch.tensor(case.weight, dtype=torch.float32)
    V = advdiff.normalize_adjacency(case.edge_index.int(), 8, weight, kind)
    assert V.dtype == torch.float32
    assert advdiff.normalize_adjacency(case.edge_index, 8).dtype == torch.get_default_dtype()
    assert relative_error(V.to_dense(), normalized(case.adjacency, kind)) <= 1e-6
    assert relative_error(V @ torch.ones(8), normalized(case.adjacency, kind).sum(1)) <= 1e-6


# ------------------------------------------------------------------------------------- gradient and divergence


def test_gradient_by_hand() -> None:
    Z = torch.tensor([1.0, 3.0, 6.0, 10.0])
    assert PATH.edges == [(0, 1), (1, 2), (2, 3), (1, 0), (2, 1), (3, 2)]
    assert advdiff.gradient(Z, PATH.edge_index).tolist() == [-2, -3, -4, 2, 3, 4]  # source minus target
    flow = torch.tensor([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
    assert advdiff.divergence(flow, PATH.edge_index, 4).tolist() == [8, 1 + 16, 2 + 32, 4]


@some("path", "undirected", "star", "isolated")
def test_divergence_of_the_gradient_is_minus_the_laplacian(case: GraphCase) -> None:
    Z = randn(case.num_nodes, 3)
    laplacian = nx.laplacian_matrix(nx.from_numpy_array(case.adjacency)).toarray()
    actual = advdiff.divergence(advdiff.gradient(Z, case.edge_index), case.edge_index, case.num_nodes)
    assert relative_error(actual, -laplacian @ Z.numpy()) <= 1e-14


def test_weighted_divergence_is_diffusion(case: GraphCase) -> None:
    """Theory §1: ∇*(S ⊙ ∇Z) = (S − diag(S1)) Z for any S on the edges."""
    rng = np.random.default_rng(3)
    S, Z = rng.random(len(case.edges)), rng.normal(size=(case.num_nodes, 2))
    dense = np.zeros((case.num_nodes, case.num_nodes))
    for (source, target), s in zip(case.edges, S, strict=True):
        dense[target, source] += s
    flow = torch.tensor(S)[:, None] * advdiff.gradient(torch.tensor(Z), case.edge_index)
    actual = advdiff.divergence(flow, case.edge_index, case.num_nodes)
    assert relative_error(actual, (dense - np.diag(dense.sum(1))) @ Z) <= 1e-12


def test_gradient_and_divergence_carry_gradients() -> None:
    case = star(3)
    Z = leaf(4, 2)
    assert torch.autograd.gradcheck(
        lambda Z: advdiff.divergence(advdiff.gradient(Z, case.edge_index) ** 2, case.edge_index, 4), (Z,)
    )
