"""What ``advdiff bench`` measures, and the bars it is held to."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

import advdiff
from advdiff.bench import measure, reference
from advdiff.bench.data_sets import per_data_set
from advdiff.bench.problems import CHANNELS, Graph, loss_of, model, molecules, random_graph, training_step
from advdiff.bench.pyg_peers import against_pyg
from advdiff.bench.rows import Row
from advdiff.bench.scipy_peer import against_expm_multiply
from advdiff.experiments.recipes import RECIPES
from advdiff.nn import AdvDiffConv, AdvDIFFormer

ARXIV = 169_343


Reference = Callable[[AdvDIFFormer], Tensor]


def _disagreement(fast: AdvDIFFormer, step: Callable[[], None], slow: Callable[[], None]) -> float:
    """Largest relative difference ‖a − b‖/‖b‖ over all parameters' gradients."""
    gradients = []
    for run in (step, slow):
        run()
        gradients.append([p.grad.clone() for p in fast.parameters() if p.grad is not None])
    return max(float((a - b).norm() / b.norm()) for a, b in zip(*gradients, strict=True))


def _compare(
    what: str, against: str, module: AdvDIFFormer, graph: Graph, slow: Reference, budget: float, bar: float | None
) -> Row:
    step = training_step(module, graph)
    (layer,) = module.layers
    assert isinstance(layer, AdvDiffConv)
    heads = layer.heads

    def reference_step() -> None:
        loss_of(module, slow(module))

    disagreement = _disagreement(module, step, reference_step)
    best = measure.side_by_side({"fast": step, "slow": reference_step}, budget)
    return Row(
        what, against, graph.x.size(0), heads, 1e3 * best["fast"], 1e3 * best["slow"],
        best["slow"] / best["fast"], "×", bar, disagreement,
    )  # fmt: skip


def series(nodes: int, heads: int, budget: float, bars: dict[int, float], formats: tuple[str, ...]) -> Iterator[Row]:
    graph, module = random_graph(nodes), model("series", heads)
    csr = reference.sparse_adjacency(graph.edge_index, nodes, "symmetric")
    for layout in formats:
        adjacency = csr if layout == "CSR" else csr.to_sparse_coo().coalesce()

        def slow(m: AdvDIFFormer, A: Tensor = adjacency) -> Tensor:
            return reference.whole_model(m, graph.x, lambda layer, z: reference.series_by_heads(layer, z, A))

        bar = bars.get(nodes) if layout == "COO" else None
        yield _compare("series, K = 4", f"by heads, {layout}", module, graph, slow, budget, bar)


#: The N×N matrices that the lines of the paper's algorithms speak of: solver → title, what it is called, the code.
PSEUDO_CODE: dict[str, tuple[str, str, Callable[..., Tensor]]] = {
    "inverse": ("inverse, low rank", "dense solve", reference.inverse_by_heads),
    "exponential": ("exponential", "dense matrix_exp", reference.exponential_dense),
    "series": ("series, K = 4", "dense C", reference.series_dense),
}


def against_pseudo_code(solver: str, nodes: int, heads: int, budget: float, bars: dict[int, float]) -> Row:
    """A solver against the same step with dense matrices, on one graph."""
    what, against, propagate = PSEUDO_CODE[solver]
    graph, module = random_graph(nodes), model(solver, heads)
    adjacency = reference.sparse_adjacency(graph.edge_index, nodes, "symmetric").to_dense()

    def slow(m: AdvDIFFormer) -> Tensor:
        return reference.whole_model(m, graph.x, lambda layer, z: propagate(layer, z, adjacency))

    return _compare(what, against, module, graph, slow, budget, bars.get(nodes))


def batch_of_molecules(solver: str, graphs: int, heads: int, budget: float, bar: float | None) -> Row:
    graph = molecules(graphs)
    assert graph.batch is not None
    module, nodes = model(solver, heads), graph.x.size(0)
    adjacency = reference.sparse_adjacency(graph.edge_index, nodes, "symmetric").to_dense()
    same_graph = (graph.batch[:, None] == graph.batch[None, :]).float()
    propagate = PSEUDO_CODE[solver][2]

    def slow(m: AdvDIFFormer) -> Tensor:
        return reference.whole_model(m, graph.x, lambda layer, z: propagate(layer, z, adjacency, same_graph))

    name = f"{solver}, {graphs} molecules"
    return _compare(name, "block-diagonal dense", module, graph, slow, budget, bar)


def shares(nodes: int, heads: int, budget: float) -> Iterator[Row]:
    """Share of sparse products in forward and backward of the propagation itself, C given."""
    graph = random_graph(nodes)
    V = advdiff.normalize_adjacency(graph.edge_index, nodes)
    attention = advdiff.Attention(*torch.randn(2, nodes, heads, CHANNELS))
    factors = [attention.left.requires_grad_(), attention.right.requires_grad_()]
    L = advdiff.Generator(attention, V, 0.5)
    Z = graph.x.clone().requires_grad_()
    grads = [torch.randn(nodes, heads, CHANNELS) for _ in range(4)]
    steps = {
        "series, K = 4": lambda: torch.autograd.grad(advdiff.powers(L.propagator, Z, 4)[1:], [*factors, Z], grads),
        "inverse, low rank": lambda: torch.autograd.grad(
            advdiff.resolvent(L, Z, method="lowrank"), [*factors, Z], grads[0]
        ),
    }
    for name, step in steps.items():
        share = measure.sparse_share(step, budget)
        bar = 50.0 if nodes >= 8_000 else None
        yield Row(name, "its sparse products", nodes, heads, figure=100 * share, unit="%", bar=bar)


def memory(solver: str, nodes: int, heads: int, bar: float) -> Row:
    peak = measure.peak_in_own_process(solver, nodes, heads)
    return Row(f"{solver}, whole model", "peak memory", nodes, heads, figure=peak, unit="GB", bar=bar)


def rows(quick: bool) -> Iterator[Row]:
    """All measurements; ``quick`` leaves out what takes long."""
    budget = 0.2 if quick else 10.0
    for nodes in (1_000,) if quick else (1_000, 4_000, 8_000):
        yield against_pseudo_code("inverse", nodes, 1, budget, {4_000: 20.0, 8_000: 60.0})
    yield against_pseudo_code("exponential", 500 if quick else 2_000, 1, budget, {})
    for nodes in (1_000,) if quick else (1_000, 8_000):
        yield against_pseudo_code("series", nodes, 2, budget, {8_000: 3.0})
    for nodes in (1_000,) if quick else (8_000, ARXIV):
        yield from series(nodes, 2, budget, {8_000: 3.0, ARXIV: 1.6}, ("COO", "CSR"))
    for solver in ("series", "inverse"):
        yield batch_of_molecules(solver, 32 if quick else 256, 2, budget, None if quick else 10.0)
    for nodes in (1_000,) if quick else (8_000, ARXIV):
        yield from shares(nodes, 2, budget)
    if not quick:
        for solver in ("series", "inverse"):
            yield memory(solver, ARXIV, 2, 6.0)
    yield from peers(quick, budget)


def compiled(nodes: int, heads: int, budget: float, backend: str = "inductor") -> Row:
    """The series model under ``torch.compile`` against itself."""
    graph, module = random_graph(nodes), model("series", heads)
    fast = torch.compile(module, backend=backend)
    steps: dict[str, measure.Step] = {
        "eager": training_step(module, graph),
        "compiled": lambda: loss_of(module, fast(graph.x, graph.edge_index)),
    }
    best = measure.side_by_side(steps, budget)
    return Row(
        "series, K = 4, compiled", f"eager, {backend}", nodes, heads, 1e3 * best["compiled"], 1e3 * best["eager"],
        best["eager"] / best["compiled"], bar=1.0,
    )  # fmt: skip


def peers(quick: bool, budget: float) -> Iterator[Row]:
    """Against scipy, against PyG, and every model on every data set that is there."""
    for nodes in (500,) if quick else (2_000, 20_000, ARXIV):
        for tol in (1e-6, 1e-12):
            bar = {20_000: 7.0, ARXIV: 5.0}.get(nodes) if tol == 1e-6 else None
            yield against_expm_multiply(nodes, tol, budget, bar)
    for nodes in (500,) if quick else (8_000, ARXIV):
        bars = {("exponential", "PyG SGFormer"): 1.0} if nodes == ARXIV else {}
        yield from against_pyg(nodes, budget, bars)
    if not quick:  # without a C++ compiler there is nothing but torch's own kernels to compare
        backend = "inductor" if shutil.which("g++") or shutil.which("clang++") else "aot_eager"
        for heads in (1, 2):
            yield compiled(8_000, heads, budget, backend)
    for experiment in ("small_graphs",) if quick else [name for name in RECIPES if name != "arxiv_whole"]:
        names = ("advdifformer-s", "gcn") if quick else None
        yield from per_data_set(experiment, "quick" if quick else "full", budget / 10, names)


def scaling(quick: bool) -> Iterator[dict[str, float | str]]:
    """Time of a training step against N, for the scaling plot."""
    sizes = (500, 1_000, 2_000) if quick else (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, ARXIV)
    for nodes in sizes:
        graph = random_graph(nodes)
        for solver in ("series", "inverse", "exponential"):
            step = training_step(model(solver, 1), graph)
            best = measure.side_by_side({"step": step}, budget=0.1 if quick else 2.0, least=1)["step"]
            yield {"solver": solver, "nodes": nodes, "milliseconds": 1e3 * best}
        if nodes <= 4_000:
            module = model("inverse", 1)
            adjacency = reference.sparse_adjacency(graph.edge_index, nodes, "symmetric").to_dense()

            def slow(m: AdvDIFFormer = module, A: Tensor = adjacency, g: Graph = graph) -> None:
                loss_of(m, reference.whole_model(m, g.x, lambda layer, z: reference.inverse_by_heads(layer, z, A)))

            best = measure.side_by_side({"step": slow}, budget=0.1, least=1)["step"]
            yield {"solver": "inverse, dense", "nodes": nodes, "milliseconds": 1e3 * best}
