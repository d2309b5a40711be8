r"""Many AdvDIFFormers on one small graph, trained in one pass. Chapter 6a.

Hundreds of models of width 8 differ in their β and in their label only. One after the other they spend their time in
the overhead of small operations, so they are computed side by side: every parameter gets a first axis for the M
members. No member knows of another: the loss is the sum of theirs, so its gradient has a block for each, and Adam works
element by element. The attention is that of ``Attention`` with a head for each member.

The graph is fixed. With V = UΛUᵀ, computed once (so N is at most a few thousand), C = ABᵀ and Ẑ = UᵀZ, the propagator
acts as

.. math::
    \mathbf U^\top (\mathbf C + \beta \mathbf V) \mathbf Z
    = \hat{\mathbf A} (\hat{\mathbf B}^\top \hat{\mathbf Z}) + \beta \Lambda \hat{\mathbf Z} ,

without a product with V. The exponential is its Taylor series and the inverse is Woodbury's formula around a diagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from advdiff.checks import check_choice
from advdiff.nn import AdvDIFFormer
from advdiff.nn.conv import SOLVERS
from advdiff.operators import Attention, Velocity

LARGEST = 4000
Parameters = dict[str, Tensor]


@dataclass(frozen=True, eq=False)
class Spectrum:
    """V = UΛUᵀ of a symmetric velocity: ``values`` [N] and ``vectors`` [N, N]."""

    values: Tensor
    vectors: Tensor

    @classmethod
    def of(cls, V: Velocity) -> Spectrum:
        """The decomposition of a graph of at most a few thousand nodes, in single precision."""
        if V.kind != "symmetric" or V.num_nodes > LARGEST:
            raise ValueError(
                f"the velocity is {V.kind!r} with {V.num_nodes} nodes; pass a symmetric one with at most {LARGEST}."
            )
        values, vectors = torch.linalg.eigh(V.to_dense(torch.float64))
        return cls(values.float(), vectors.float())


class SideBySide:
    r"""M models ``AdvDIFFormer(channels, width, 1, solver, beta=β_m)``, which start from the same parameters.

    Args:
        channels: number D of node features.
        betas: [M], one β for each member.
        solver: ``"series"``, ``"inverse"`` or ``"exponential"``.
        width: d.
        order: K of the series.
        theta: θ of the inverse.
        seed: of the parameters.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.experiments.side_by_side import SideBySide, Spectrum
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> SideBySide(3, [0.0, 0.5], "inverse")(torch.ones(2, 3), Spectrum.of(V)).shape  # members, nodes
        torch.Size([2, 2])
    """

    def __init__(
        self, channels: int, betas: Sequence[float], solver: str, *, width: int = 8, order: int = 2,
        theta: float = 1.0, seed: int = 0,
    ) -> None:  # fmt: skip
        check_choice("solver", solver, SOLVERS)
        self.make: Callable[[float], AdvDIFFormer] = lambda beta: AdvDIFFormer(
            channels, width, 1, solver=solver, beta=beta, theta=theta, order=order
        )
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            start = self.make(0.0).float().state_dict()
        self.solver, self.order, self.theta = solver, order, theta
        self.betas = torch.tensor(list(betas), dtype=torch.float32)
        self.parameters: Parameters = {
            name: nn.Parameter(value.expand(len(self.betas), *value.shape).clone()) for name, value in start.items()
        }

    def member(self, number: int) -> AdvDIFFormer:
        """One member as a model of its own."""
        model = self.make(float(self.betas[number]))
        model.load_state_dict({name: value[number].detach().clone() for name, value in self.parameters.items()})
        return model

    def keep(self, members: Tensor) -> None:
        """Drop all members but these (numbers [m])."""
        self.betas = self.betas[members]
        self.parameters = {
            name: nn.Parameter(value.detach()[members].clone()) for name, value in self.parameters.items()
        }

    def __call__(self, x: Tensor, graph: Spectrum) -> Tensor:
        """The predictions [M, N] of all members for features x [N, D]."""
        z = self._mlp("encoder", x.expand(len(self.betas), *x.shape))
        query, key = (z @ self.parameters[f"layers.0.{name}.weight"].mT for name in ("query", "key"))
        C = Attention(query.transpose(0, 1), key.transpose(0, 1))
        both = torch.cat([z.transpose(0, 1), C.left, C.right], dim=2)  # one product of matrices for all
        start, A, B = _rotated(graph.vectors.T, both).split([z.size(2), C.rank, C.rank], dim=2)
        diagonal = self.betas[:, None, None] * graph.values[:, None]  # [M, N, 1]
        states = self._propagate(start, A, B, diagonal)
        weights = self.parameters["layers.0.output"][:, :, 0]  # one head: [M, blocks, d, d]
        out = torch.stack([state @ weights[:, block] for block, state in enumerate(states)]).sum(0)
        return self._mlp("decoder", _rotated(graph.vectors, out.transpose(0, 1))).squeeze(-1)

    def _mlp(self, name: str, z: Tensor) -> Tensor:
        for layer in (0, 3):  # Linear, ReLU, Dropout, Linear
            weight, bias = (self.parameters[f"{name}.{layer}.{part}"] for part in ("weight", "bias"))
            z = torch.baddbmm(bias[:, None], z if layer == 0 else z.relu(), weight.mT)
        return z

    def _propagate(self, z: Tensor, A: Tensor, B: Tensor, diagonal: Tensor) -> list[Tensor]:
        if self.solver == "inverse":  # (D − ABᵀ)⁻¹ with D = 1 + θ − βΛ, by Woodbury
            D = 1 + self.theta - diagonal
            left, state = A / D, z / D
            small = torch.eye(A.size(2)) - B.mT @ left
            return [state + left @ torch.linalg.solve(small, B.mT @ state)]
        states = [z]
        if self.solver == "series":
            for _ in range(self.order):
                states.append(torch.baddbmm(diagonal * states[-1], A, B.mT @ states[-1]))
            return states
        term = total = z
        for k in range(1, taylor_degree(1 + float(self.betas.max())) + 1):
            term = torch.baddbmm(diagonal * term, A, B.mT @ term, beta=1 / k, alpha=1 / k)
            total = total + term
        return [total * torch.e**-1]


def _rotated(rotation: Tensor, Z: Tensor) -> Tensor:
    """The product of a matrix [N, N] with Z [N, M, d], as [M, N, d]."""
    return (rotation @ Z.flatten(1)).view(Z.shape).transpose(0, 1)


def taylor_degree(norm: float, tol: float = 1e-6) -> int:
    """The first k > ``norm`` with normᵏ/k! below ``tol``; ‖C + βV‖ is about 1 + β.

    Example:
        >>> from advdiff.experiments.side_by_side import taylor_degree
        >>> taylor_degree(1.0), taylor_degree(3.0)
        (10, 17)
    """
    degree, term = 0, 1.0
    while term > tol or degree <= norm:
        degree += 1
        term *= norm / degree
    return degree


@dataclass
class Fit:
    """What training found, one number for each member; errors are relative to the label's mean square.

    Attributes:
        valid: the smallest error on the nodes of the training graph that were held out.
        test: the error on the test graph at that epoch.
        chosen: that epoch.
        epochs: how many there were.
    """

    valid: Tensor
    test: Tensor
    chosen: Tensor
    epochs: Tensor

    @property
    def converged(self) -> Tensor:
        """Whether the chosen epoch lies before the last tenth."""
        return self.chosen <= 0.9 * self.epochs


def fit(
    models: SideBySide, x: Tensor, graphs: tuple[Spectrum, Spectrum], labels: tuple[Tensor, Tensor], held_out: Tensor,
    *, epochs: int = 200, most: int = 400, rate: float = 0.02, every: int = 10, gain: float = 0.01,
) -> Fit:  # fmt: skip
    """Train all members on the first graph by Adam, and read their errors on the second.

    After ``epochs`` the members that chose their epoch in the last tenth go on for twice as long, and so on up to
    ``most`` epochs; the others are done. A validation error counts as better if it is lower by the share ``gain``.

    Args:
        models: the members.
        x: [N, D], the features on both graphs.
        graphs: the training and the test graph.
        labels: [M, N] on each; they are learned in units of their size on the training graph.
        held_out: [N], True for the nodes of the training graph that only choose the epoch.
    """
    scale = labels[0].pow(2).mean(1, keepdim=True).sqrt()
    target, wanted = (label / scale for label in labels)
    size = wanted.pow(2).mean(1)
    total = len(models.betas)
    found = Fit(torch.full((total,), torch.inf), torch.full((total,), torch.inf), *torch.zeros(2, total).long())
    active, done, budget = torch.arange(total), 0, epochs
    optimiser = torch.optim.Adam(models.parameters.values(), lr=rate)
    while len(active):
        for epoch in range(done + 1, budget + 1):
            optimiser.zero_grad()
            squares = (models(x, graphs[0]) - target[active]) ** 2
            squares[:, ~held_out].mean(1).sum().backward()
            if epoch % every == 0:
                valid = squares.detach()[:, held_out].mean(1)
                better = valid < (1 - gain) * found.valid[active]
                with torch.no_grad():
                    test = ((models(x, graphs[1]) - wanted[active]) ** 2).mean(1) / size[active]
                for old, new in ((found.valid, valid), (found.test, test), (found.chosen, torch.tensor(epoch))):
                    old[active] = torch.where(better, new, old[active])
            optimiser.step()
        done = budget
        found.epochs[active] = done
        going = torch.nonzero(~found.converged[active]).flatten()
        if done >= most:
            break
        budget, active = min(2 * done, most), active[going]
        optimiser = _narrowed(optimiser, models, going)
    return found


def _narrowed(optimiser: torch.optim.Adam, models: SideBySide, members: Tensor) -> torch.optim.Adam:
    """Adam for some of the members, with what it remembers of them."""
    old = [optimiser.state[p] for p in models.parameters.values()]
    models.keep(members)
    new = torch.optim.Adam(models.parameters.values(), lr=optimiser.param_groups[0]["lr"])
    for parameter, state in zip(models.parameters.values(), old, strict=True):
        new.state[parameter] = {
            name: value if name == "step" else value[members].clone() for name, value in state.items()
        }
    return new
