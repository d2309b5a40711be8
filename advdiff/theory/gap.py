r"""The generalisation gap under a topological shift, and the terms that bound it (chapter 6).

A model Γ(X, A) = φ_dec(Z(T; A)) is judged by a loss that is averaged over the nodes. Between two graphs on the *same*
nodes its error changes by at most

.. math::
    \bigl|\, l(\Gamma(X, A'), Y') - l(\Gamma(X, A), Y) \,\bigr| \;\le\;
    L_1 \lVert Z(T; A') - Z(T; A) \rVert_F + L_2 \lVert Y' - Y \rVert_F

with :math:`L_1 = L_\ell L_{dec} / \sqrt N` and :math:`L_2 = L_\ell / \sqrt N`.

The mean over graphs that share their latents is the paper's theorem, with its terms D_ood-model and D_ood-label.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from advdiff.checks import (
    check_choice,
    check_finite,
    check_floating,
    check_nonnegative,
    check_precision,
    check_rows,
    expects,
    has_values,
)

NORMS = ("frobenius", "spectral")


def _matrix(name: str, tensor: Tensor) -> Tensor:
    """[N] or [N, F] as [N, F], checked."""
    if tensor.dim() not in (1, 2) or tensor.size(0) == 0:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}; it must be [N] or [N, F] with at least one node.")
    check_floating(name, tensor)
    check_finite(name, tensor)
    return tensor if tensor.dim() == 2 else tensor.unsqueeze(1)


def _pair(first_name: str, first: Tensor, second_name: str, second: Tensor) -> tuple[Tensor, Tensor]:
    if first.shape != second.shape:
        raise ValueError(
            f"{first_name} has shape {tuple(first.shape)} and {second_name} {tuple(second.shape)}; "
            "both must speak of the same nodes: make the shapes equal."
        )
    return _matrix(first_name, first), _matrix(second_name, second)


@expects
def risk(prediction: Tensor, label: Tensor, bound: float | None = None) -> Tensor:
    r"""The error on one graph, :math:`l(\hat Y, Y) = \frac1N \sum_u \min(\lVert \hat y_u - y_u \rVert_2, B)`.

    The loss of a node is Lipschitz in prediction and label with L_ℓ = 1, and bounded by B.

    Args:
        prediction, label: [N] or [N, F].
        bound: B > 0; None leaves the loss unbounded.

    Example:
        >>> import torch
        >>> from advdiff.theory import gap
        >>> gap.risk(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0]))
        tensor(0.5000)
    """
    prediction, label = _pair("prediction", prediction, "label", label)
    distance = torch.linalg.vector_norm(prediction - label, dim=1)
    if bound is not None:
        if not bound > 0:
            raise ValueError(f"bound is {bound:g}; the largest loss of a node must be positive.")
        distance = distance.clamp(max=bound)
    return distance.mean()


@expects
def lipschitz_constant(
    num_nodes: int, *, loss: float = 1.0, decoder: float = 1.0, norm: str = "frobenius", width: int | None = None
) -> float:
    r"""L₁ = L_ℓ L_dec / √N, the constant of a node-averaged loss; with ``decoder=1`` it is L₂, that of the labels.

    In the spectral norm it is larger by √min(N, d), since ‖M‖_F ≤ √(rank M) ‖M‖₂.

    Args:
        num_nodes: number N of nodes.
        loss: L_ℓ, Lipschitz constant of the loss of one node.
        decoder: L_dec, Lipschitz constant of φ_dec, which acts on nodes.
        norm: ``"frobenius"`` or ``"spectral"``.
        width: d, number of columns of Z; needed for the spectral norm.

    Example:
        >>> from advdiff.theory import gap
        >>> gap.lipschitz_constant(100, decoder=2.0)
        0.2
    """
    check_choice("norm", norm, NORMS)
    check_nonnegative("loss", loss)
    check_nonnegative("decoder", decoder)
    if num_nodes < 1:
        raise ValueError(f"num_nodes is {num_nodes}; an average over nodes needs at least one.")
    constant = loss * decoder / math.sqrt(num_nodes)
    if norm == "frobenius":
        return constant
    if width is None or width < 1:
        raise ValueError(f"width is {width}; the spectral norm needs the number of columns of Z, at least 1.")
    return constant * math.sqrt(min(num_nodes, width))


@expects
def model_term(Z: Tensor, other: Tensor, *, loss: float = 1.0, decoder: float = 1.0, norm: str = "frobenius") -> Tensor:
    r"""L₁ ‖Z(T; A') − Z(T; A)‖ for one pair of graphs; its mean over pairs is D_ood-model.

    Given predictions in place of Z (and ``decoder=1``) it is the same term with the decoder kept inside, never larger.

    Example:
        >>> import torch
        >>> from advdiff.theory import gap
        >>> gap.model_term(torch.zeros(4, 1), torch.ones(4, 1), decoder=2.0)
        tensor(2.)
    """
    Z, other = _pair("Z", Z, "other", other)
    constant = lipschitz_constant(Z.size(0), loss=loss, decoder=decoder, norm=norm, width=max(Z.size(1), 1))
    order = "fro" if norm == "frobenius" else 2
    return constant * torch.linalg.matrix_norm(other - Z, order)


@expects
def label_term(Y: Tensor, other: Tensor, *, loss: float = 1.0) -> Tensor:
    r"""L₂ ‖Y' − Y‖_F with L₂ = L_ℓ/√N for one pair of graphs; its mean over pairs is D_ood-label.

    Example:
        >>> import torch
        >>> from advdiff.theory import gap
        >>> gap.label_term(torch.zeros(4), torch.ones(4))
        tensor(1.)
    """
    return model_term(*_pair("Y", Y, "other", other), loss=loss)


def nodewise_residual(residual: Tensor, other: Tensor) -> Tensor:
    r"""(1/N) Σ_u ‖r'_u − r_u‖₂ for residuals r = Ŷ − Y and r' = Ŷ' − Y' of a pair: the residual bound, node by node.

    \|gap\| is at most this, this at most ``Decomposition.residual`` (which takes the root of a mean square, by
    Cauchy–Schwarz), and at most l(Ŷ, Y) + l(Ŷ', Y') without a largest loss. So where the loss has grown ρ-fold, the
    bound is at most (ρ + 1)/(ρ − 1) times the gap.

    Example:
        >>> import torch
        >>> from advdiff.theory import gap
        >>> gap.nodewise_residual(torch.tensor([0.0, 0.0]), torch.tensor([2.0, 0.0]))
        tensor(1.)
    """
    residual, other = _pair("residual", residual, "other", other)
    return (other - residual).norm(dim=1).mean()


@dataclass(frozen=True)
class Decomposition:
    """What a change of the graph does to the error of a model, and three upper bounds of \\|gap\\|, ever larger.

    Attributes:
        gap: l(Ŷ', Y') − l(Ŷ, Y), with its sign.
        residual: (1/√N) ‖(Ŷ' − Y') − (Ŷ − Y)‖_F: how far the model fails to move with the labels.
        movement: (1/√N) ‖Ŷ' − Ŷ‖_F, the model term with the decoder kept inside.
        model: (L_dec/√N) ‖Z' − Z‖_F, the model term of the theorem.
        label: (1/√N) ‖Y' − Y‖_F, the label term.

    Example:
        >>> import torch
        >>> from advdiff.theory import gap
        >>> terms = gap.Decomposition(*map(torch.tensor, (0.1, 0.2, 0.3, 0.4, 0.5)))
        >>> terms.bound
        tensor(0.9000)
    """

    gap: Tensor
    residual: Tensor
    movement: Tensor
    model: Tensor
    label: Tensor

    @property
    def bound(self) -> Tensor:
        """D_ood-model + D_ood-label of this pair, with \\|gap\\| ≤ residual ≤ movement + label ≤ bound."""
        return self.model + self.label


@expects
def decompose(
    readout: Readout, Z: Tensor, label: Tensor, Z_new: Tensor, label_new: Tensor, bound: float | None = None
) -> Decomposition:
    r"""Gap and terms for a pair of graphs on the same nodes, with the loss of :func:`risk`.

    Both graphs must be drawn from *shared latents*; for other pairs the mean of the terms bounds nothing.

    Example:
        >>> import torch
        >>> from advdiff.theory import gap
        >>> readout = gap.Readout(torch.eye(1), torch.zeros(1))
        >>> Z, Z_new, Y = torch.tensor([[1.0], [1.0]]), torch.tensor([[0.0], [0.0]]), torch.tensor([[1.0], [1.0]])
        >>> terms = gap.decompose(readout, Z, Y, Z_new, Y)  # the representation moves, the labels stay
        >>> [round(float(each), 4) for each in (terms.gap, terms.model, terms.label)]
        [1.0, 1.0, 0.0]
    """
    Z, Z_new = _pair("Z", Z, "Z_new", Z_new)
    label, label_new = _pair("label", label, "label_new", label_new)
    before, after = readout(Z), readout(Z_new)
    return Decomposition(
        gap=risk(after, label_new, bound) - risk(before, label, bound),
        residual=model_term(before - label, after - label_new),
        movement=model_term(before, after),
        model=model_term(Z, Z_new) * readout.lipschitz,
        label=label_term(label, label_new),
    )


@dataclass(frozen=True)
class Readout:
    """A linear decoder φ_dec(z) = Wᵀz + b: ``weight`` [d, F], ``bias`` [F].

    Example:
        >>> import torch
        >>> from advdiff.theory import gap
        >>> gap.Readout(torch.tensor([[3.0], [4.0]]), torch.zeros(1)).lipschitz
        tensor(5.)
    """

    weight: Tensor
    bias: Tensor

    def __call__(self, Z: Tensor) -> Tensor:
        check_rows("weight", self.weight, Z.size(-1))
        check_precision("Z", Z, self.weight)
        return Z @ self.weight + self.bias

    @property
    def lipschitz(self) -> Tensor:
        """L_dec = ‖W‖₂, the largest singular value."""
        return torch.linalg.matrix_norm(self.weight, 2)


@expects
def fit_readout(Z: Tensor, label: Tensor, ridge: float = 1e-3) -> Readout:
    r"""The decoder that fits the labels of one graph best, in closed form.

    .. math::
        \min_{W, b}\; \frac1N \lVert Z W + 1 b^\top - Y \rVert_F^2 + \rho \lVert W \rVert_F^2

    by a QR factorisation of the centred features. ``ridge`` is ρ ≥ 0; with 0 the features must be independent.

    Example:
        >>> import torch
        >>> from advdiff.theory import gap
        >>> Z = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64)
        >>> readout = gap.fit_readout(Z, 2 * Z + 1, ridge=0.0)
        >>> readout.weight, readout.bias
        (tensor([[2.0000]], dtype=torch.float64), tensor([1.0000], dtype=torch.float64))
    """
    check_nonnegative("ridge", ridge)
    Z, label = _matrix("Z", Z), _matrix("label", label)
    check_rows("label", label, Z.size(0))
    check_precision("label", label, Z)
    centre, level = Z.mean(0), label.mean(0)
    penalty = math.sqrt(ridge * Z.size(0)) * torch.eye(Z.size(1), dtype=Z.dtype, device=Z.device)
    Q, R = torch.linalg.qr(torch.cat([Z - centre, penalty]))
    if has_values(R) and ridge == 0:
        pivots = R.diagonal().abs()
        if R.size(0) < Z.size(1) or float(pivots.min()) <= 1e3 * torch.finfo(R.dtype).eps * float(pivots.max()):
            raise ValueError("the features are linearly dependent; choose ridge > 0 or leave some of them out.")
    target = torch.cat([label - level, label.new_zeros(Z.size(1), label.size(1))])
    weight = torch.linalg.solve_triangular(R, Q.T @ target, upper=True)
    return Readout(weight, level - centre @ weight)


@expects
def deviation(num_graphs: int, delta: float = 0.05, bound: float = 1.0) -> float:
    r"""Hoeffding's bound of \|R − R_emp\| for one fixed model, with probability 1 − δ: B √(ln(2/δ) / (2 N_tr)).

    D_in of the theorem is this plus the complexity of the class that the model was chosen from. Needs independent
    *graphs*: with N_tr = 1 it exceeds B, which bounds the difference anyway.

    Example:
        >>> from advdiff.theory import gap
        >>> round(gap.deviation(1), 2), round(gap.deviation(200), 2)
        (1.36, 0.1)
    """
    if num_graphs < 1:
        raise ValueError(f"num_graphs is {num_graphs}; at least one training graph is needed.")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta is {delta:g}; a probability of failure lies strictly between 0 and 1.")
    check_nonnegative("bound", bound)
    return bound * math.sqrt(math.log(2 / delta) / (2 * num_graphs))
