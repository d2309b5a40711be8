r"""How a signal is spread over the eigenvalues of a graph: its spectral measure. Chapter 6a.

For a symmetric V with eigenvectors e_i and eigenvalues λ_i, and a signal x, the **spectral measure** is

.. math::
    \mu = \sum_i \frac{(e_i^\top x)^2}{\lVert x \rVert^2}\, \delta_{\lambda_i} , \qquad
    \int h \, d\mu = \frac{x^\top h(V)\, x}{\lVert x \rVert^2} .

It says all that a function of V can do to x: :math:`\lVert h(V) x \rVert^2 = \lVert x \rVert^2 \int h^2 \, d\mu`. A
few steps of Lanczos give it as a small tridiagonal (Jacobi) matrix, without any eigenvector of V.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from advdiff.checks import check_finite, check_floating, check_nonnegative, check_rows, has_values
from advdiff.datasets.causal.block_model import Environment
from advdiff.operators.velocity import Velocity

STEPS = 24  # of Lanczos: exact for polynomials up to degree 47, and for e^{βλ} with β ≤ 10 to rounding


@dataclass(frozen=True, eq=False)
class SpectralMeasure:
    r"""μ = Σ_i w_i δ_{s_i} with weights w_i ≥ 0 of sum 1.

    Attributes:
        places: [m], the s_i.
        weights: [m], the w_i.

    Example:
        >>> from advdiff.theory.spectral_measure import SpectralMeasure
        >>> two = SpectralMeasure(torch.tensor([0.0, 1.0]), torch.tensor([0.25, 0.75]))
        >>> two.mean(lambda s: s**2)
        tensor(0.7500)
    """

    places: Tensor
    weights: Tensor

    def mean(self, h: Callable[[Tensor], Tensor]) -> Tensor:
        """∫ h dμ."""
        return (self.weights * h(self.places)).sum()

    def spread(self, place: float) -> Tensor:
        """ε = (∫ (s − λ)² dμ)^½ = ‖(V − λ)x‖/‖x‖: how far x is from an eigenvector for λ = ``place``."""
        return self.mean(lambda s: (s - place) ** 2).sqrt()


def atom(place: float) -> SpectralMeasure:
    """δ_λ, the measure of an eigenvector.

    Example:
        >>> from advdiff.theory import spectral_measure
        >>> float(spectral_measure.atom(0.5).mean(lambda s: s))
        0.5
    """
    return SpectralMeasure(torch.tensor([place], dtype=torch.float64), torch.ones(1, dtype=torch.float64))


def mixture(parts: Sequence[tuple[float, SpectralMeasure]]) -> SpectralMeasure:
    """Σ_j ρ_j μ_j with shares ρ_j ≥ 0, scaled to sum 1: a signal with parts that V keeps apart.

    Example:
        >>> from advdiff.theory.spectral_measure import atom, mixture
        >>> mixture([(3.0, atom(1.0)), (1.0, atom(0.0))]).weights
        tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    total = sum(share for share, _ in parts)
    if not parts or min(share for share, _ in parts) < 0 or total <= 0:
        raise ValueError("the shares of a mixture must not be negative, and one of them must be positive.")
    places = torch.cat([measure.places for _, measure in parts])
    return SpectralMeasure(places, torch.cat([share / total * measure.weights for share, measure in parts]))


def lanczos(V: Velocity, x: Tensor, steps: int = STEPS) -> tuple[Tensor, Tensor]:
    r"""The Jacobi matrix of a signal: V in an orthonormal basis of x, Vx, V²x, …, where it is tridiagonal.

    Returns its diagonal [m] and off-diagonal [m − 1]; m ≤ ``steps``, fewer where the signal spans no more. The first
    entries are α₁ = xᵀVx/‖x‖² and b₁ = ‖(V − α₁)x‖/‖x‖. Every vector is made orthogonal to all before it, twice.

    Args:
        V: symmetric normalisation of an undirected graph.
        x: [N], not zero.
        steps: the largest number of rows.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.theory import spectral_measure
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2, dtype=torch.float64)
        >>> spectral_measure.lanczos(V, torch.tensor([1.0, 0.0], dtype=torch.float64))
        (tensor([0., 0.], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    """
    _check_signal(V, x, steps)
    basis = [x / x.norm()]
    diagonal: list[Tensor] = []
    off: list[Tensor] = []
    for _ in range(min(steps, V.num_nodes)):
        image = V @ basis[-1]
        diagonal.append(basis[-1] @ image)
        Q = torch.stack(basis)
        for _ in range(2):
            image = image - Q.T @ (Q @ image)
        length = image.norm()
        if len(diagonal) == min(steps, V.num_nodes) or float(length) < 100 * torch.finfo(x.dtype).eps:
            break
        off.append(length)
        basis.append(image / length)
    return torch.stack(diagonal), torch.stack(off) if off else x.new_empty(0)


def _check_signal(V: Velocity, x: Tensor, steps: int) -> None:
    if V.kind != "symmetric":
        raise ValueError(f"the velocity is {V.kind!r}; a spectral measure needs the symmetric normalisation.")
    if x.ndim != 1:
        raise ValueError(f"x has the shape {tuple(x.shape)}; pass one signal [N].")
    check_rows("x", x, V.num_nodes)
    check_floating("x", x)
    if steps < 1:
        raise ValueError(f"steps is {steps}; at least one step of Lanczos is needed.")
    if not has_values(x):
        raise ValueError("x lies on the meta device and has no values; move it to a real one.")
    check_finite("x", x)
    if not bool(x.any()):
        raise ValueError("x is zero; only a signal that is not zero has a spectral measure.")


def of_jacobi(diagonal: Tensor, off: Tensor) -> SpectralMeasure:
    """The measure of the first unit vector under a Jacobi matrix: eigenvalues, squared first entries of eigenvectors.

    If the matrix comes from m steps of :func:`lanczos`, ∫ h dμ is exact for polynomials h of degree < 2m: this is
    Gauss' quadrature.

    Example:
        >>> import torch
        >>> from advdiff.theory import spectral_measure
        >>> spectral_measure.of_jacobi(torch.zeros(2), torch.ones(1)).weights
        tensor([0.5000, 0.5000])
    """
    if diagonal.ndim != 1 or off.shape != (diagonal.numel() - 1,):
        raise ValueError("a Jacobi matrix has m entries on its diagonal and m − 1 beside it.")
    matrix = torch.diag(diagonal) + torch.diag(off, 1) + torch.diag(off, -1)
    places, vectors = torch.linalg.eigh(matrix)
    return SpectralMeasure(places, vectors[0] ** 2)


def of_signal(V: Velocity, x: Tensor, steps: int = STEPS) -> SpectralMeasure:
    """The spectral measure of x under V, by ``steps`` steps of :func:`lanczos`.

    Example:
        >>> import torch, advdiff
        >>> from advdiff.theory import spectral_measure
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2, dtype=torch.float64)
        >>> spectral_measure.of_signal(V, torch.tensor([1.0, 0.0], dtype=torch.float64)).places
        tensor([-1.,  1.], dtype=torch.float64)
    """
    return of_jacobi(*lanczos(V, x, steps))


def spiked(place: float, noise: float, steps: int = STEPS) -> SpectralMeasure:
    r"""What random edges make of an atom: the Jacobi matrix with first entry λ, then zeros, and σ beside them.

    Without the spike (λ = 0) it is Wigner's semicircle on [−2σ, 2σ]; with λ > σ an atom stands at λ + σ²/λ, outside it.

    Example:
        >>> from advdiff.theory import spectral_measure
        >>> measure = spectral_measure.spiked(0.6, 0.2)
        >>> round(float(measure.places.max()), 4)  # 0.6 + 0.04 / 0.6
        0.6667
    """
    check_nonnegative("noise", noise)
    diagonal = torch.zeros(steps, dtype=torch.float64)
    diagonal[0] = place
    return of_jacobi(diagonal, torch.full((steps - 1,), noise, dtype=torch.float64))


def edge_noise(environment: Environment, num_nodes: int) -> float:
    r"""σ with σ² = (1/N) ∫∫ W(1 − W)/q², the mean variance of a row of Ã; about 1/√d̄ for sparse graphs.

    Example:
        >>> from advdiff.theory.shifts import environments
        >>> from advdiff.theory.spectral_measure import edge_noise
        >>> round(edge_noise(environments("none")[0], 1000), 3)
        0.182
    """
    _check_edges(environment)
    if num_nodes < 1:
        raise ValueError(f"num_nodes is {num_nodes}; at least one node is needed.")
    b, p, r = environment.blocks, environment.p_within, environment.p_between
    variance = p * (1 - p) / b + r * (1 - r) * (1 - 1 / b)
    return (variance / num_nodes) ** 0.5 / environment.edge_probability


def _check_edges(environment: Environment) -> None:
    if environment.edge_probability == 0.0:
        raise ValueError(f"{environment} has no edges; give it a positive edge probability.")


def of_block_signal(values: Tensor, environment: Environment, num_nodes: int | None = None) -> SpectralMeasure:
    r"""The measure of a signal that is constant on k equal intervals of latents, in the limit or with edge noise.

    The graphon with b blocks takes a function of mean zero to λ times its average over blocks. So there are two parts:
    h̄, the averages, with the eigenvalue λ, and h − h̄ with 0; if b is a multiple of k, the second is empty.

    Args:
        values: [k], the value on each of the k intervals; the mean is taken off.
        environment: of the graph, with its own number b of blocks.
        num_nodes: N; None for the limit N → ∞ (atoms), else each atom is replaced by :func:`spiked` with
            :func:`edge_noise`.

    Example:
        >>> import torch
        >>> from advdiff.theory.shifts import environments
        >>> from advdiff.theory.spectral_measure import of_block_signal
        >>> signal = torch.tensor([1.0, 1.0, 0.0, -1.0, -1.0])
        >>> first, *_, last = environments("block")  # 5 blocks, then 16
        >>> [of_block_signal(signal, e).weights.numpy().round(2).tolist() for e in (first, last)]
        [[1.0, 0.0], [0.96, 0.04]]
    """
    _check_edges(environment)
    cells = environment.blocks * values.numel()  # a refinement of both partitions
    fine = (values.double() - values.double().mean()).repeat_interleave(environment.blocks)
    size = float(fine @ fine)
    if size == 0.0:
        raise ValueError("values are all equal; a block signal needs two different ones.")
    averages = fine.view(environment.blocks, -1).mean(1).repeat_interleave(cells // environment.blocks)
    share = float(averages @ averages) / size
    places = (environment.eigenvalue, 0.0)
    if num_nodes is None:
        parts = [atom(place) for place in places]
    else:
        parts = [spiked(place, edge_noise(environment, num_nodes)) for place in places]
    return mixture([(share, parts[0]), (max(1 - share, 0.0), parts[1])])
