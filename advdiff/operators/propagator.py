"""The propagator P = C + βV: the one product that every method of the library is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from advdiff.checks import check_finite, check_floating, check_rows, has_values, is_traced
from advdiff.operators.blocks import Blocks
from advdiff.operators.gradients import Gradients, Moments
from advdiff.operators.plain import plain_product, replayed_gradient, with_tensors
from advdiff.operators.precision import HALF, full_precision, widened
from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity


@dataclass(frozen=True, eq=False)
class Propagator:
    """P = U Wᵀ + βV with U, W [N, H, r] thin (or None), V sparse (or None), β one number or one per head.

    ``P @ Z`` is differentiable in U, W, β, V and Z. Z may be [N], [N, F] or, for H heads, [N, H, F]; an operator
    with heads spreads an [N, F] input over them and returns [N, H, F]. ``P.add_product_`` is the raw in-place
    kernel, outside autograd, on [N, H, F].

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> P = advdiff.Generator(advdiff.Attention(torch.ones(2, 1), torch.ones(2, 1)), V, beta=0.5).propagator
        >>> P.to_dense()
        tensor([[0.5000, 1.0000],
                [1.0000, 0.5000]])
        >>> P @ torch.tensor([1.0, 0.0]), P.radius
        (tensor([0.5000, 1.0000]), 1.5)
    """

    left: Tensor | None
    right: Tensor | None
    segments: Segments
    velocity: Velocity | None
    beta: float | Tensor
    multi_head: bool
    #: "rows" if U and W come from an attention whose rows sum to 1 whatever they are, "columns" for its transpose.
    sums_to_one: Literal["rows", "columns"] | None = None
    #: s of the generator L = sI − P.
    shift: float = 1.0
    #: γ of P = UWᵀ + βV + γI.
    identity: float = 0.0
    #: Radius of a disc around 0 that holds ⟨x, Px⟩, ‖x‖ = 1, and its extent along the real axis, if 1 + β is none.
    field: tuple[float, float] | None = None

    @property
    def num_nodes(self) -> int:
        return self.segments.num_nodes

    @property
    def heads(self) -> int:
        if self.left is not None:
            return self.left.size(1)
        return self.beta.numel() if isinstance(self.beta, Tensor) else 1

    @property
    def rank(self) -> int:
        return 0 if self.left is None else self.left.size(2)

    @cached_property
    def beta_value(self) -> float:
        """β as a number, the largest of the heads', 0 without a velocity or edges (1 on ``meta``: no values)."""
        if self.velocity is None or self.velocity.num_edges == 0:
            return 0.0
        if isinstance(self.beta, Tensor):
            return float(self.beta.detach().amax()) if has_values(self.beta) else 1.0
        return float(self.beta)

    @property
    def beta_per_head(self) -> Tensor | None:
        """β as [H, 1] if the heads have their own, else None."""
        is_own = isinstance(self.beta, Tensor) and self.beta.numel() > 1
        return self.beta.view(-1, 1) if is_own else None  # type: ignore[union-attr]

    @cached_property
    def beta_values(self) -> list[float]:
        """β of each head as numbers, one number if they share it."""
        per_head = self.beta_per_head
        if per_head is None or self.beta_value == 0.0:
            return [self.beta_value]
        return per_head.flatten().tolist() if has_values(per_head) else [1.0] * self.heads

    @property
    def radius(self) -> float:
        """1 + β, or β without a coupling; bounds the spectral radius of P for row normalisation, usually for both."""
        if self.field is not None:
            return self.field[0]
        return self.beta_value + (0.0 if self.left is None else 1.0)

    @property
    def has_real_spectrum(self) -> bool:
        """Is the graph undirected? Then the eigenvalues of V, and of P but for the asymmetry of C, are real."""
        if self.field is not None:
            return self.field[0] == self.field[1]
        return self.velocity is None or self.velocity.undirected

    @cached_property
    def growth(self) -> float:
        """ω with ‖e^{tP}‖ ≤ e^{ωt}: 1 + β for V = D⁻¹A, in the norm of row sums; otherwise β + ‖C‖₂, in the 2-norm.

        ‖C‖₂² is at most the largest row sum, 1, times the largest column sum.
        """
        self.norms()
        found: float = self.__dict__["growth"]
        return found

    @cached_property
    def condition(self) -> float:
        """By how many roundings the entries of C are off, N_g/n_u in the mean over rows; n_u is the sum of a row.

        A query that is nearly opposite to its keys has small scores, differences of numbers of size 1.
        """
        self.norms()
        found: float = self.__dict__["condition"]
        return found

    def norms(self, *tensors: Tensor) -> list[float]:
        """Frobenius norms; the same look at the device reads :attr:`growth` and :attr:`condition`."""
        known = self.__dict__
        if "condition" in known:
            return self.segments.norms(*tensors) if tensors else []
        rows, columns = (self.right, self.left) if self.sums_to_one == "columns" else (self.left, self.right)
        if rows is None or columns is None or self.sums_to_one is None or not has_values(rows) or not rows.numel():
            known["growth"], known["condition"] = self.radius if self.field is None else self.field[1], 1.0
            return self.norms(*tensors)
        counts = self.segments.per_node(self.segments.counts.to(rows.dtype)).view(-1, 1)
        column_sums = self.segments.apply(columns, self.segments.sum(rows).unsqueeze(-1))
        *sizes, of_rows, largest = self.segments.reductions.norms(
            *tensors, rows[..., 0] * counts, beside=[column_sums.amax()]
        )
        is_row = self.velocity is not None and self.velocity.kind == "row"
        known["growth"] = self.radius if is_row else self.beta_value + max(1.0, largest) ** 0.5
        known["condition"] = max(1.0, of_rows / (self.segments.all_nodes * self.heads) ** 0.5)
        return sizes

    @property
    def T(self) -> Propagator:
        """The transpose Pᵀ."""
        velocity = None if self.velocity is None else self.velocity.T
        flipped: dict[str | None, Any] = {"rows": "columns", "columns": "rows", None: None}
        return replace(self, left=self.right, right=self.left, velocity=velocity, sums_to_one=flipped[self.sums_to_one])

    def detach(self) -> Propagator:
        """The same operator as constants: its tensors carry no gradient and a single β is a number."""
        left = None if self.left is None else self.left.detach()
        right = None if self.right is None else self.right.detach()
        per_head = self.beta_per_head
        return replace(self, left=left, right=right, beta=self.beta_value if per_head is None else self.beta.detach())  # type: ignore[union-attr]

    # -- the raw kernel -------------------------------------------------------------------------------------

    def add_product_(self, out: Tensor, Z: Tensor, scale: float = 1.0, keep: float = 1.0) -> Tensor:
        """out ← keep · out + scale · P Z in place, for contiguous [N, H, F]."""
        # The advection comes first: of the two it is the one that gains from not having to read ``out``.
        self.add_advection_(out, Z, scale, keep)
        if self.left is not None and self.right is not None:
            self.segments.add_apply_(out, self.left, self.segments.outer(self.right, Z), scale)
        if self.identity:
            out.add_(Z, alpha=scale * self.identity)
        return out

    def add_advection_(self, out: Tensor, Z: Tensor, scale: float = 1.0, keep: float = 1.0) -> Tensor:
        """out ← keep · out + scale · βV Z in place; with ``keep`` = 0, ``out`` may be uninitialised."""
        if self.velocity is None:
            return out.zero_() if keep == 0.0 else out if keep == 1.0 else out.mul_(keep)
        per_head = self.beta_per_head
        if per_head is None:
            scale = scale * self.beta_value
        else:
            Z = Z * per_head.to(Z.dtype)
        rows = max(self.num_nodes, 1)
        flat, Z = out.view(rows, -1) if out.numel() else out, Z.reshape(rows, -1) if Z.numel() else Z
        self.velocity.add_product_(flat, Z, scale, keep)
        return out

    def spread_advection(self, Z: Tensor) -> Tensor:
        """βV Z [N, H, F] for heads that share Z [N, 1, F], with one product."""
        per_head = self.beta_per_head
        if per_head is None:
            return self.add_advection_(torch.empty_like(Z), Z, keep=0.0)
        VZ = replace(self, beta=1.0).add_advection_(torch.empty_like(Z), Z, keep=0.0)
        return VZ * per_head.to(Z.dtype)

    def summed_advection_(self, out: Tensor, Z: Tensor) -> Tensor:
        """out ← Σ_h β_h V Z_h [N, 1, F] for Z [N, H, F], with one product."""
        per_head = self.beta_per_head
        if per_head is None:
            return self.add_advection_(out, Z.sum(1, keepdim=True), keep=0.0)
        return replace(self, beta=1.0).add_advection_(out, (Z * per_head.to(Z.dtype)).sum(1, keepdim=True), keep=0.0)

    def moments(self, Z: Tensor, scratch: Tensor | None = None) -> Moments:
        """What :meth:`add_coupling_` and the gradient need of Z [N, 1 or H, F]; ``scratch``, like Z, is overwritten."""
        assert self.right is not None
        if self.sums_to_one != "rows":
            return Moments(None, self.segments.outer(self.right, Z))
        mean = self.segments.mean(Z)
        centred = torch.sub(Z, self.segments.per_node(mean), out=scratch)
        return Moments(mean, self.segments.outer(self.right, centred))

    def add_coupling_(self, out: Tensor, moments: Moments) -> Tensor:
        """out ← out + C Z in place, from the moments of Z."""
        assert self.left is not None
        S = moments.centred
        if moments.mean is not None:  # Wᵀ Z = Wᵀ(Z − mean) + (Wᵀ1) meanᵀ
            S = S.addcmul(self._right_sums, moments.mean.unsqueeze(2))
        return self.segments.add_apply_(out, self.left, S)

    @cached_property
    def _right_sums(self) -> Tensor:
        """Wᵀ1 per graph and head, [G, H, r, 1]."""
        assert self.right is not None
        return self.segments.sum(self.right).unsqueeze(-1)

    # -- shapes ---------------------------------------------------------------------------------------------

    def spread(self, Z: Tensor, name: str = "Z") -> Tensor:
        """Z as [N, 1, F] (shared by the heads) or [N, H, F], checked against the operator."""
        check_floating(name, Z)
        check_rows(name, Z, self.num_nodes)
        if Z.dtype in HALF:  # the mathematics is done in float32, or in the precision of the attention
            Z = widened(Z) if self.left is None else Z.to(self.left.dtype)
        if self.left is not None and (self.left.dtype != Z.dtype or self.left.device != Z.device):
            raise ValueError(
                f"{name} is {Z.dtype} on {Z.device} but the attention is {self.left.dtype} on {self.left.device}; "
                "make them agree."
            )
        check_finite(name, Z)
        width = Z.numel() // max(self.num_nodes, 1) if self.num_nodes else (Z.size(-1) if Z.dim() > 1 else 1)
        if not self.multi_head:
            return Z.reshape(self.num_nodes, 1, width)
        if Z.dim() > 3:
            raise ValueError(f"{name} has shape {tuple(Z.shape)}; pass [N], [N, F] or [N, {self.heads}, F].")
        if Z.dim() == 3:
            if Z.size(1) != self.heads:
                raise ValueError(
                    f"{name} has {Z.size(1)} heads but the operator has {self.heads}; pass [N, {self.heads}, F]."
                )
            return Z
        return Z.reshape(self.num_nodes, 1, width)

    def restore(self, Y: Tensor, like: Tensor) -> Tensor:
        """The inverse of :meth:`spread` for a result [N, H, F]."""
        Y = Y.to(like.dtype) if like.dtype in HALF else Y
        if not self.multi_head:
            return Y.reshape(like.shape)
        return Y if like.dim() > 1 else Y.squeeze(-1)

    # -- small graphs --------------------------------------------------------------------------------------

    @property
    def has_small_graphs(self) -> bool:
        """Is P better kept as a dense block per graph? So it is if no graph has more nodes than the factors columns."""
        return self.segments.num_graphs > 1 and self.segments.largest <= self.rank

    def blocks(self, dtype: torch.dtype) -> Blocks:
        """P as a dense matrix for each graph and head."""
        matrix: Any = 0.0
        if self.left is not None and self.right is not None:
            matrix = Blocks.of_attention(self.left, self.right, self.segments).matrix.to(dtype)
        if self.velocity is not None:
            beta = self.beta if self.beta_per_head is None else self.beta_per_head.to(dtype).unsqueeze(-1)
            velocity: Any = self.velocity
            if isinstance(velocity, Velocity):
                V = Blocks.of_velocity(velocity, self.segments, dtype).matrix
            else:  # a pair of functions, for one graph
                V = velocity.to_dense(dtype).view(1, 1, self.num_nodes, self.num_nodes)
            matrix = matrix + beta * V
        if self.identity:
            matrix = matrix + self.identity * torch.eye(
                self.segments.largest, dtype=dtype, device=self.segments.counts.device
            )
        return Blocks(self.segments, matrix)

    # -- the differentiable product -------------------------------------------------------------------------

    @full_precision
    def __matmul__(self, Z: Tensor) -> Tensor:
        spread = self.spread(Z).expand(-1, self.heads, -1)
        if is_traced():
            return self.restore(plain_product(self, spread), Z)
        out: Tensor = _Product.apply(*self.tensors, spread, self)
        return self.restore(out, Z)

    @property
    def tensors(self) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None]:
        """U, W, β if it is a tensor, and the entries of V, to which gradients can flow."""
        beta = self.beta if isinstance(self.beta, Tensor) else None
        return self.left, self.right, beta, None if self.velocity is None else self.velocity.entries

    def gradients(self, needs: Sequence[bool]) -> Gradients:
        """Where a backward pass adds up its gradients with respect to U, W, β and the entries of V."""
        return Gradients(self, needs)

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """P as a dense [N, N] or [H, N, N] matrix (an oracle for small N), by default in the precision of C or V."""
        dense: Any = 0.0
        if self.left is not None and self.right is not None:
            dense = torch.einsum("uhr,vhr->huv", self.left, self.right)
            batch = self.segments.batch
            if batch is not None:
                dense = dense * (batch[:, None] == batch[None, :])
        if self.velocity is not None:
            V = self.velocity.to_dense(dtype or (None if self.left is None else self.left.dtype))
            dense = dense + (self.beta if self.beta_per_head is None else self.beta_per_head.unsqueeze(-1)) * V
        if self.identity:
            dense = dense + self.identity * torch.eye(self.num_nodes, device=self.segments.counts.device)
        dense = dense if dtype is None else dense.to(dtype)
        return dense if self.multi_head else dense.reshape(self.num_nodes, self.num_nodes)


class _Product(torch.autograd.Function):
    """P Z; backward: Pᵀ G for Z and rank-r products for U and W."""

    @staticmethod
    def forward(ctx, left, right, beta, entries, Z: Tensor, operator: Propagator) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.operator = operator.detach()
        ctx.beta_shape = None if beta is None else beta.shape
        ctx.inputs = left, right, beta, entries  # the operator holds them anyway
        ctx.save_for_backward(Z)
        Z = Z.contiguous()
        return ctx.operator.add_product_(torch.empty_like(Z), Z, keep=0.0)

    @staticmethod
    @full_precision
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        operator: Propagator = ctx.operator
        if torch.is_grad_enabled():  # somebody differentiates the gradient

            def product(*tensors):  # type: ignore[no-untyped-def]
                return [plain_product(with_tensors(operator, *tensors[:4]), tensors[4])]

            return *replayed_gradient(
                product, (*ctx.inputs, *ctx.saved_tensors), [grad], ctx.needs_input_grad[:5]
            ), None
        Z = ctx.saved_tensors[0].contiguous()
        grad = grad.contiguous()
        gradients = operator.gradients(ctx.needs_input_grad[:4])
        gradients.add(Z, grad)
        grad_Z = None
        if ctx.needs_input_grad[4]:
            grad_Z = operator.T.add_product_(torch.empty_like(grad), grad, keep=0.0)
        return *gradients.tensors(ctx.beta_shape), grad_Z, None
