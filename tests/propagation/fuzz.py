"""Random problems for the rule of the solvers: an error of at most 10·tol, or a warning or error by name.

``python -m tests.propagation.fuzz 2000`` prints what came of 2,000 of them; one alone: ``check(seed)``.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import advdiff
from tests.reference import normalized

EXPONENTIALS = ("auto", "dense", "taylor", "krylov", "chebyshev", "rational", "ode")
RESOLVENTS = ("auto", "dense", "lowrank")
#: Warnings and errors by name: the rule allows a result that comes with one of them to miss the tolerance.
NAMED_WARNINGS = (advdiff.AccuracyWarning, advdiff.NearSingularWarning)
#: Gradients of longer flows are checked for one case in twenty: their panels take seconds.
LONG = 60.0
#: Random gradients of the output by which the usual size of those of the inputs is told.
OTHERS = 3


@dataclass
class Case:
    """One random problem; everything follows from the seed."""

    seed: int

    def __post_init__(self) -> None:
        rng = self.rng = np.random.default_rng(self.seed)
        self.nodes = int(rng.integers(2, 33))
        self.dtype = torch.float32 if rng.random() < 0.5 else torch.float64
        self.heads = None if rng.random() < 0.5 else int(rng.integers(1, 3))
        self.kind = ("symmetric", "row")[rng.integers(2)]
        self.terms = ("CV", "CV", "CV", "C", "V")[rng.integers(5)]
        self.tol = float(rng.choice([1e-3, 1e-6] if self.dtype == torch.float32 else [1e-3, 1e-6, 1e-9]))
        self.beta = float(rng.choice([0.0, rng.random(), 5.0 * rng.random()], p=[0.1, 0.6, 0.3]))
        self.per_head = self.heads is not None and self.terms == "CV" and rng.random() < 0.3
        self.solver = "resolvent" if rng.random() < 0.25 else "exponential"
        self.method = str(rng.choice(RESOLVENTS if self.solver == "resolvent" else EXPONENTIALS[:-1]))
        self.time = float(np.exp(rng.uniform(np.log(0.01), np.log(500.0))))
        if self.solver == "exponential" and self.time < 5.0 and rng.random() < 0.05:
            self.method = "ode"
        self.edges = self._edges()
        count = self.edges.shape[1]
        self.weight = rng.lognormal(0.0, 1.0, count) if rng.random() < 0.5 else np.ones(count)
        if not self.directed:
            half = self.weight[: self.edges.shape[1] // 2]
            self.weight = np.concatenate([half, half])
        self.query, self.key, self.Z, self.G = (self._normal() for _ in range(4))
        if rng.random() < 0.1:
            self.query = np.broadcast_to(self.query[:1], self.query.shape).copy()
        self.Z = self.Z * 10.0 ** rng.integers(-3, 4) + (3.0 if rng.random() < 0.3 else 0.0)

    def _normal(self) -> np.ndarray:
        return self.rng.normal(size=(self.nodes, self.heads or 1, 3)).astype(str(self.dtype).removeprefix("torch."))

    def _edges(self) -> np.ndarray:
        rng, n = self.rng, self.nodes
        self.directed, graphs = bool(rng.random() < 0.5), 1 + int(rng.random() < 0.3) * int(rng.integers(1, 4))
        self.batch = np.sort(rng.integers(0, graphs, n)) if graphs > 1 else None
        style = rng.integers(4)
        if style == 0:
            source = np.arange(n)
            edges = np.stack([source, (source + 1) % n])  # a cycle
        elif style == 1:
            edges = np.stack([np.zeros(n - 1, dtype=int), np.arange(1, n)])  # a star
        else:
            edges = rng.integers(0, n, (2, int(rng.integers(0, 4 * n))))
        if self.batch is not None:
            edges = edges[:, self.batch[edges[0]] == self.batch[edges[1]]]
        return edges if self.directed else np.concatenate([edges, edges[::-1]], axis=1)

    # -- the problem as the library sees it, and as the reference does -------------------------------------------

    def leaves(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """The inputs as tensors; float32 numbers are the same in float64."""
        betas = np.full(self.heads or 1, self.beta) * (np.linspace(0.5, 1.0, self.heads or 1) if self.per_head else 1.0)
        values = {"Z": self.Z, "weight": self.weight, "time": np.float64(self.time)}
        if "C" in self.terms:
            values |= {"query": self.query, "key": self.key}
        values["beta"] = betas if self.per_head else np.float64(self.beta)
        mine = {name: torch.as_tensor(value).to(self.dtype) for name, value in values.items()}
        return {name: value.to(dtype).requires_grad_() for name, value in mine.items()}

    def generator(self, leaf: dict[str, Tensor]) -> advdiff.Generator:
        edges = torch.as_tensor(self.edges, dtype=torch.int64)
        V = advdiff.normalize_adjacency(edges, self.nodes, leaf["weight"], self.kind) if "V" in self.terms else None
        batch = None if self.batch is None else torch.as_tensor(self.batch)
        C = None
        if "C" in self.terms:
            query, key = (leaf[name] if self.heads else leaf[name][:, 0] for name in ("query", "key"))
            C = advdiff.Attention(query, key, batch)
        return advdiff.Generator(C, V, leaf["beta"])

    def propagator(self, leaf: dict[str, Tensor]) -> Tensor:
        """P [H, N, N] by the formulas, on autograd's own tape, in float64."""
        n = self.nodes
        P = torch.zeros(1, n, n, dtype=torch.float64)
        if "C" in self.terms:
            unit = [leaf[name] / leaf[name].norm(dim=-1, keepdim=True) for name in ("query", "key")]
            scores = 1.0 + torch.einsum("uhd,vhd->huv", *unit)
            if self.batch is not None:
                batch = torch.as_tensor(self.batch)
                scores = scores * (batch[:, None] == batch[None, :])
            P = P + scores / scores.sum(-1, keepdim=True)
        if "V" in self.terms:
            source, target = torch.as_tensor(self.edges, dtype=torch.int64)
            A = torch.zeros(n, n, dtype=torch.float64).index_put((target, source), leaf["weight"], accumulate=True)
            rows, columns = A.sum(1), A.sum(0)
            if self.kind == "row":
                V = power(rows, -1.0)[:, None] * A
            else:
                V = power(rows, -0.5)[:, None] * A * power(columns, -0.5)[None, :]
            assert np.allclose(V.detach().numpy(), normalized(A.detach().numpy(), self.kind))
            P = P + (leaf["beta"].view(-1, 1, 1) if leaf["beta"].dim() else leaf["beta"]) * V
        return P.expand(max(P.size(0), self.heads or 1 if "C" in self.terms else 1), n, n)

    def exact(self, P: Tensor, Z: Tensor, time: Tensor, theta: float) -> np.ndarray:
        """The solution for one head, in extended precision."""
        matrix, right_side = P.detach().numpy(), Z.detach().numpy()
        if self.solver == "exponential":
            return exact_flow(matrix, float(time.detach())) @ right_side
        return exact_inverse(matrix, theta, right_side)

    @property
    def theta(self) -> float:
        P = self.propagator(self.leaves(torch.float64)).detach().numpy()
        return float(np.abs(np.linalg.eigvals(P)).max() - 1.0 + 10.0 ** np.random.default_rng(self.seed).uniform(-4, 1))


def power(degree: Tensor, exponent: float) -> Tensor:
    """d^exponent, 0 for d = 0."""
    return torch.where(degree > 0, torch.where(degree > 0, degree, 1.0) ** exponent, 0.0)


def exact_flow(P: np.ndarray, time: float) -> np.ndarray:
    """e^{T(P − I)} in extended precision: Taylor's series of a small part of it, squared."""
    A = (time * (P - np.eye(len(P)))).astype(np.longdouble)
    squarings = max(0, int(np.ceil(np.log2(max(float(np.abs(A).sum(1).max()), 1e-9)))) + 3)
    A = A / 2.0**squarings
    total = term = np.eye(len(P), dtype=np.longdouble)
    for k in range(1, 22):
        term = term @ A / k
        total = total + term
    for _ in range(squarings):
        total = total @ total
    return total


def exact_inverse(P: np.ndarray, theta: float, Z: np.ndarray) -> np.ndarray:
    """Solved in float64 and refined in extended precision."""
    A = (1.0 + theta) * np.eye(len(P), dtype=np.longdouble) - P
    inverse, X = np.linalg.inv(A.astype(float)).astype(np.longdouble), np.zeros(Z.shape, dtype=np.longdouble)
    for _ in range(6):
        X = X + inverse @ (Z - A @ X)
    return X


@dataclass
class Verdict:
    """What came of one case; ``outcome`` names it, ``wrong`` says how the rule was broken."""

    label: str
    outcome: str
    wrong: str = ""


def check(seed: int) -> Verdict:
    """Solve one problem, and compare value, estimate and gradients with the references."""
    case = Case(seed)
    label = f"{case.solver}, {case.method}"
    leaf, exact = case.leaves(case.dtype), case.leaves(torch.float64)
    floor = max(case.tol, 4 * torch.finfo(case.dtype).eps)
    theta = case.theta
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            L = case.generator(leaf)
            Z = leaf["Z"] if L.propagator.multi_head else leaf["Z"][:, 0]
            if case.solver == "exponential":
                solution = advdiff.exponential(L, Z, leaf["time"], case.method, case.tol, return_solution=True)
            else:
                solution = advdiff.resolvent(L, Z, theta, case.method, case.tol, return_solution=True)
        except ValueError as error:
            return Verdict(label, type(error).__name__)
    named = {w.category.__name__ for w in caught if issubclass(w.category, NAMED_WARNINGS)}
    P = case.propagator(exact)
    spread = exact["Z"].expand(-1, P.size(0), -1) if L.propagator.multi_head else exact["Z"][:, :1]
    truth = np.stack([case.exact(P[h], spread[:, h], exact["time"], theta) for h in range(P.size(0))], axis=1)
    value = solution.value.detach().double().numpy().reshape(truth.shape)
    size = float(np.sqrt((truth**2).sum()))
    error = float(np.sqrt(((value - truth) ** 2).sum())) / size if size else float(np.abs(value).max())
    if not error <= 10.0 * floor and not named:
        return Verdict(label, "silently wrong", f"error {error:.1e}, tol {floor:.1e}")
    estimate = solution.statistics.estimated_error
    if estimate is not None and not estimate >= 0.1 * error and error > 4 * np.finfo(float).eps:
        return Verdict(label, "estimate too small", f"error {error:.1e}, estimate {estimate:.1e}")
    outcome = "named warning" if named else "within tol" if error <= floor else "within 10 tol"
    return check_gradients(case, label, outcome, solution, leaf, exact, P, spread, theta, floor)


def check_gradients(case, label, outcome, solution, leaf, exact, P, spread, theta, floor) -> Verdict:
    """Each input relative to the size of its gradient, this one or the usual one for a G of this size.

    A gradient that is small because G happens to cancel in it has no more digits than the larger ones.
    """
    is_long = case.solver == "exponential" and float(1 + case.beta) * case.time > LONG
    if is_long and case.seed % 20:
        return Verdict(label, outcome)
    inputs = list(leaf) if case.solver == "exponential" else [name for name in leaf if name != "time"]
    G = torch.as_tensor(case.G[:, : P.size(0)] if solution.value.dim() == 3 else case.G[:, 0])
    G = G.to(solution.value.dtype)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = gradients(solution.value, leaf, inputs, G)
        except ValueError as error:
            return Verdict(label, f"gradient: {type(error).__name__}")
    named = outcome == "named warning" or any(issubclass(w.category, NAMED_WARNINGS) for w in caught)
    eye = torch.eye(case.nodes, dtype=torch.float64)
    if case.solver == "exponential":
        flow = torch.linalg.matrix_exp(exact["time"] * (P - eye))
    else:
        flow = torch.linalg.inv((1.0 + theta) * eye - P)
    dense = torch.einsum("huv,vhf->uhf", flow, spread).reshape(solution.value.shape)
    truth = gradients(dense, exact, inputs, G.double(), keep=True)
    usual = usual_sizes(case, dense, exact, inputs, G.double())
    worst = max(
        float((f.double() - t).norm()) / max(float(t.norm()), size, 1e-300)
        for f, t, size in zip(found, truth, usual, strict=True)
    )
    if not worst <= 10.0 * floor and not named:
        return Verdict(label, "gradient silently wrong", f"error {worst:.1e}, tol {floor:.1e}")
    return Verdict(label, outcome + (", gradient warned" if named and outcome != "named warning" else ""))


def usual_sizes(case: Case, value: Tensor, leaf: dict[str, Tensor], names: list[str], G: Tensor) -> list[float]:
    """Root mean squares over a few random G of the same size, and a hundredth of what the relative changes of all
    inputs together make, for an input on which the value does not depend."""
    rng = np.random.default_rng(case.seed)
    squares = np.zeros(len(names))
    for _ in range(OTHERS):
        other = torch.as_tensor(rng.normal(size=tuple(G.shape)))
        found = gradients(value, leaf, names, other * (G.norm() / other.norm()), keep=True)
        squares += [float(g.square().sum()) / OTHERS for g in found]
    extent = np.array([max(float(leaf[name].detach().norm()), 1e-300) for name in names])
    together = float(np.sqrt((squares * extent**2).sum()))
    return np.maximum(np.sqrt(squares), 0.01 * together / extent).tolist()


def gradients(
    value: Tensor, leaf: dict[str, Tensor], names: list[str], G: Tensor, keep: bool = False
) -> tuple[Tensor, ...]:
    inputs = [leaf[name] for name in names]
    return torch.autograd.grad(value, inputs, G, retain_graph=keep, materialize_grads=True, allow_unused=True)


def main(first: int, last: int) -> int:
    """Check the seeds first … last − 1, print what broke the rule as it is found, then what came of all."""
    counts: Counter[tuple[str, str]] = Counter()
    broken = 0
    for seed in range(first, last):
        verdict = check(seed)
        counts[verdict.label, verdict.outcome] += 1
        if verdict.wrong:
            broken += 1
            print(f"seed {seed}: {verdict}", flush=True)
    for (name, what), count in sorted(counts.items()):
        print(f"{name:26s} {what:32s} {count:5d}")
    print(f"{sum(counts.values())} cases, {broken} break the rule")
    return int(broken > 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    last, first = (int(word) for word in (*sys.argv[1:], "0")[:2])
    sys.exit(main(first, last))
