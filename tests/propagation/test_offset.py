"""Single precision with features far from zero: no solver's gradient may drown in a constant that has no effect.

The rows of C sum to one, so query and key do not feel a constant added to the states; a gradient that carries it along
loses two digits for an offset of 100.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

import advdiff
from tests.reference import randn

OFFSET = 100.0
#: Relative errors in single precision. Without the centring query and key have at least 7e-6, mostly more than 1e-5.
BAR = {"query": 5e-6, "key": 5e-6, "beta": 5e-5, "Z": 2e-6}
#: Nodes, width of query and key, graphs: as factors, as factors of a batch, and as blocks of small graphs.
SETTINGS = {"one graph": (800, 8, 1), "graphs": (800, 8, 2), "small graphs": (600, 300, 2)}
SOLVERS: dict[str, Callable[[advdiff.Generator, Tensor], Tensor]] = {
    "product": lambda L, Z: L @ Z,
    "powers": lambda L, Z: torch.cat(advdiff.powers(L.propagator, Z, 4)[1:], -1),
    "powers with a source": lambda L, Z: torch.cat(advdiff.powers(L.propagator, Z, 3, source=Z)[1:], -1),
    **{
        f"exponential, {m}": lambda L, Z, m=m: advdiff.exponential(L, Z, 1.0, m)
        for m in ("dense", "taylor", "krylov", "chebyshev", "rational", "ode")
    },
    **{f"resolvent, {m}": lambda L, Z, m=m: advdiff.resolvent(L, Z, 1.0, m) for m in ("dense", "lowrank")},
}
every_solver = pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS.keys())
every_setting = pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS.keys())


class Case:
    """The same numbers, representable in single precision, for both precisions."""

    def __init__(self, nodes: int, width: int, graphs: int, transposed: bool) -> None:
        f32 = torch.float32
        self.batch = torch.arange(nodes) * graphs // nodes if graphs > 1 else None
        size = nodes // graphs
        first = (torch.arange(nodes) // size * size).repeat(3)  # of each edge's graph
        edges = first + torch.randint(size, (2, 3 * nodes))
        self.edge_index = torch.cat([edges, edges.flip(0)], 1)
        self.query, self.key = (randn(nodes, 2, width, dtype=f32) for _ in range(2))
        # Of the transpose it is the incoming gradient whose constant has no effect.
        self.Z = randn(nodes, 8, dtype=f32) + (0.0 if transposed else OFFSET)
        self.transposed, self.offset_of_gradient = transposed, OFFSET if transposed else 0.0
        self.beta = torch.tensor(0.5)

    def gradients(self, solver: Callable, dtype: torch.dtype, centring: bool = True) -> dict[str, Tensor]:
        leaves = {n: getattr(self, n).to(dtype).requires_grad_() for n in ("query", "key", "beta", "Z")}
        C = advdiff.Attention(leaves["query"], leaves["key"], self.batch)
        if not centring:  # an operator that does not know that its rows sum to one
            C = advdiff.Attention.from_factors(C.left, C.right, C.segments, multi_head=True)
        V = advdiff.normalize_adjacency(self.edge_index, len(self.Z), dtype=dtype)
        L = advdiff.Generator(C, V, leaves["beta"])
        out = solver(L.T if self.transposed else L, leaves["Z"])
        noise = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)) + self.offset_of_gradient
        return dict(zip(leaves, torch.autograd.grad(out, tuple(leaves.values()), noise.to(dtype)), strict=True))

    def errors(self, solver: Callable, centring: bool = True) -> dict[str, float]:
        exact, rounded = (self.gradients(solver, t, centring) for t in (torch.float64, torch.float32))
        return {name: float((rounded[name] - g).norm() / g.norm()) for name, g in exact.items()}


@every_setting
@every_solver
@pytest.mark.parametrize("transposed", [False, True], ids=["L", "transposed"])
def test_gradients_in_single_precision(setting: tuple[int, int, int], solver: Callable, transposed: bool) -> None:
    for name, error in Case(*setting, transposed).errors(solver).items():
        assert error <= BAR[name], f"∂{name} is off by {error:.1e}"


@every_setting
@every_solver
def test_the_bar_is_one_that_fails_without_centring(setting: tuple[int, int, int], solver: Callable) -> None:
    errors = Case(*setting, transposed=False).errors(solver, centring=False)
    assert min(errors["query"], errors["key"]) > BAR["query"]
