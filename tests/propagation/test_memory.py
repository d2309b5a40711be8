"""What the backward pass keeps does not grow with the iterations of the forward pass."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

import advdiff
from tests.cases import block_model
from tests.reference import leaf

f64 = torch.float64
SBM = block_model((50, 50), 0.1, 0.02)
N, HEADS, WIDTH, COLUMNS = SBM.num_nodes, 2, 3, 4
STATE = N * HEADS * COLUMNS * 8  # bytes of one [N, H, F] tensor


def generator() -> advdiff.Generator:
    query, key = leaf(N, HEADS, WIDTH), leaf(N, HEADS, WIDTH)
    beta = torch.tensor(0.5, dtype=f64, requires_grad=True)
    return advdiff.Generator(advdiff.Attention(query, key), SBM.velocity("row"), beta)


def saved(call: Callable[[], torch.Tensor]) -> tuple[int, int]:
    """How many tensors the tape keeps for one call, and their bytes (a shared storage counts once)."""
    kept: dict[int, int] = {}
    count = 0

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = call()
    assert result.requires_grad
    return count, sum(kept.values())


@pytest.mark.parametrize("method", ["taylor", "krylov", "chebyshev", "rational", "ode"])
def test_exponential(method: str) -> None:
    L, Z = generator(), leaf(N, HEADS, COLUMNS)
    sizes, products = [], []
    for time, tol in ((1.0, 1e-2), (1.0, 1e-10), (8.0, 1e-6)):
        sizes.append(saved(lambda t=time, e=tol: advdiff.exponential(L, Z, t, method, e)))
        products.append(advdiff.exponential(L, Z, time, method, tol, return_solution=True).statistics.products)
    assert sizes[0] == sizes[1] == sizes[2]
    assert sizes[0][1] <= 2 * STATE
    assert max(products) >= 1.4 * products[0], "the iterations did grow"


def test_lowrank_resolvent() -> None:
    L, Z = generator(), leaf(N, HEADS, COLUMNS)
    sizes, products = [], []
    for tol in (1e-2, 1e-12):
        sizes.append(saved(lambda e=tol: advdiff.resolvent(L, Z, 1.0, "lowrank", e)))
        products.append(advdiff.resolvent(L, Z, 1.0, "lowrank", tol, return_solution=True).statistics.products)
    assert sizes[0] == sizes[1]
    assert products[1] > 1.5 * products[0]
    # X, B⁻¹U (as columns of the one solve) and the capacitance matrices.
    assert sizes[0][1] <= 6 * STATE


def test_powers_keep_one_state_per_order() -> None:
    """The K states are the result; besides them only their moments and means are kept, whose size is not N."""
    P, Z = generator().propagator, leaf(N, HEADS, COLUMNS)
    one, nine = (saved(lambda K=order: advdiff.powers(P, Z, K)[-1])[1] for order in (1, 9))
    moments = HEADS * (WIDTH + 1 + 1) * COLUMNS * 8
    assert nine - one <= 8 * (STATE + moments)


def test_products_keep_their_input_only() -> None:
    L, Z = generator(), leaf(N, HEADS, COLUMNS)
    assert saved(lambda: L.propagator @ Z)[1] <= STATE
