"""The two ablations of the paper's Table 7: without advection (β = 0), without diffusion."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import torch

from advdiff.nn import AdvDiffConv, build
from tests.cases import BY_NAME, KINDS
from tests.reference import normalized

EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 2], [1, 0, 2, 1, 3, 2, 2, 0]])  # node 4 is isolated


def flow(solver: str, P: np.ndarray) -> list[np.ndarray]:
    """[I, P, P²], (2I − P)⁻¹ or e^{P−I}: what each block of W_O reads, with K = 2, θ = 1, T = 1."""
    identity = np.eye(len(P))
    if solver == "series":
        return [identity, P, P @ P]
    return [np.linalg.inv(2 * identity - P) if solver == "inverse" else math.exp(-1) * scipy.linalg.expm(P)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("heads", [1, 3])
@pytest.mark.parametrize("solver", ["series", "inverse", "exponential"])
def test_without_diffusion_only_the_edges_carry(solver: str, heads: int, kind: str) -> None:
    layer = AdvDiffConv(2, 3, solver, heads=heads, beta=0.7, normalization=kind, tol=1e-10, diffusion=False).double()
    x = torch.randn(5, 2, dtype=torch.float64)
    A = np.zeros((5, 5))
    A[EDGES[1], EDGES[0]] = 1.0
    weights = layer.output.detach().numpy().sum(1)
    expected = sum(F @ x.numpy() @ W for F, W in zip(flow(solver, 0.7 * normalized(A, kind)), weights, strict=True))
    np.testing.assert_allclose(layer(x, EDGES).detach().numpy(), expected, atol=1e-9)
    assert [name for name, _ in layer.named_parameters()] == ["output"]
    assert "diffusion=False" in repr(layer)


@pytest.mark.parametrize("name", ["advdifformer-s", "advdifformer-i", "advdifformer-e"])
def test_without_both_a_model_is_blind(name: str) -> None:
    """Nothing is left but the node itself."""
    model = build(name, 2, 4, 1, beta=0.0, diffusion=False).double()
    x = torch.randn(5, 2, dtype=torch.float64)
    together = model(x, EDGES)
    for u in range(5):
        alone = model(x[u : u + 1], EDGES[:, :0])
        torch.testing.assert_close(together[u : u + 1], alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["advdifformer-s", "advdifformer-i", "advdifformer-e"])
def test_without_advection_the_edges_do_not_matter(name: str) -> None:
    model, case = build(name, 2, 4, 1, beta=0.0, heads=2).double(), BY_NAME["path"]
    x = torch.randn(case.num_nodes, 2, dtype=torch.float64)
    torch.testing.assert_close(model(x, case.edge_index), model(x, case.edge_index[:, :0]), rtol=0, atol=1e-6)
