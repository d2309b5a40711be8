"""A model whose training diverges hands NaN and ∞ to its solvers: they end at once, and hand them on."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import advdiff
from advdiff.checks import values_checked
from advdiff.nn import AdvDIFFormer
from advdiff.propagation.exponential import METHODS
from tests.cases import GraphCase, block_model
from tests.reference import randn

SBM = block_model((40, 40), 0.3, 0.05)
GRAPHS = {"undirected": SBM, "directed": GraphCase("arcs", 80, SBM.edges[:200])}
SOLVERS: dict[str, Callable[[advdiff.Generator, Tensor], Tensor]] = {
    "product": lambda L, Z: L @ Z,
    "powers": lambda L, Z: advdiff.powers(L.propagator, Z, 3)[3],
    **{f"exponential, {m}": lambda L, Z, m=m: advdiff.exponential(L, Z, 2.0, m) for m in METHODS},
    **{f"resolvent, {m}": lambda L, Z, m=m: advdiff.resolvent(L, Z, 2.0, m) for m in ("dense", "lowrank")},
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
@pytest.mark.parametrize("case", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("where", ["state", "attention"])
def test_solvers_end(case: GraphCase, solver: Callable, value: float, where: str) -> None:
    n = case.num_nodes
    query, Z = randn(n, 4, dtype=torch.float32), randn(n, 3, dtype=torch.float32)
    (Z if where == "state" else query)[1] = value
    with values_checked():
        L = advdiff.Generator(advdiff.Attention(query, query), case.velocity("symmetric"), 0.5)
        products = 0
        product = advdiff.Velocity.add_product_

        def spy(*args: object, **options: object) -> Tensor:
            nonlocal products
            products += 1
            return product(*args, **options)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(advdiff.Velocity, "add_product_", spy)
            out = solver(L, Z)
    assert not bool(out.isfinite().all())
    assert products <= 200


@pytest.mark.timeout(20)
@pytest.mark.parametrize("solver", ["series", "inverse", "exponential"])
def test_a_diverged_model_gives_a_loss_that_shows_it(solver: str) -> None:
    model = AdvDIFFormer(3, 4, 2, solver=solver, num_layers=2)
    x = torch.randn(SBM.num_nodes, 3)
    with torch.no_grad():
        model.layers[0].output[:] = float("nan")
    loss = model(x, SBM.edge_index).square().mean()
    assert not bool(loss.isfinite())
    loss.backward()
