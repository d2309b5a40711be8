r"""Any linear operator A for ``exponential`` and ``resolvent``: sparse, low rank, their sum, or a pair of functions.

The solvers know P and the identity only, A = cI − P. Here c is the centre of an interval around the real parts of the
field of values W(A) = {⟨x, Ax⟩ : ‖x‖ = 1}, and ρ, the radius of a disc around c that holds W(A), replaces 1 + β.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from advdiff.checks import check_finite, check_floating
from advdiff.operators.field_of_values import FieldOfValues, estimated, gershgorin, of_factors
from advdiff.operators.generator import Generator
from advdiff.operators.propagator import Propagator
from advdiff.operators.segments import Segments
from advdiff.operators.velocity import Velocity


class Operator:
    """A = UWᵀ + S with U, W thin and S sparse, or either of them, or a pair of functions.

    Made by :class:`Sparse`, :class:`LowRank`, their sum, or :class:`MatrixFree`. ``A @ Z``, ``A.T`` and, for small N,
    ``A.to_dense()``; ``exponential(A, Z)`` is e^{-AT}Z and ``resolvent(A, Z, theta)`` is (θI + A)⁻¹Z. Differentiable in
    U, W and the entries of S where they require gradients.

    Attributes:
        field_of_values: the rectangle that holds W(A), by which the solvers plan their work.

    Example:
        >>> import torch, advdiff
        >>> A = advdiff.LowRank(torch.ones(3, 1), torch.ones(3, 1) / 3) + advdiff.Sparse(torch.eye(3).to_sparse())
        >>> A @ torch.tensor([3.0, 0.0, 0.0])
        tensor([4., 1., 1.])
        >>> advdiff.exponential(A, torch.ones(3), time=0.5)  # A 1 = 2 · 1
        tensor([0.3679, 0.3679, 0.3679])
    """

    def __init__(
        self,
        num_nodes: int,
        left: Tensor | None,
        right: Tensor | None,
        matrix: Any,
        field_of_values: FieldOfValues,
    ) -> None:
        self.num_nodes, self.left, self.right, self.matrix = num_nodes, left, right, matrix
        self.field_of_values = field_of_values

    @property
    def propagator(self) -> Propagator:
        """P = cI − A, with L = cI − P."""
        device = self.matrix.device if self.left is None else self.left.device
        field = self.field_of_values
        return Propagator(
            None if self.left is None else -self.left.unsqueeze(1),
            None if self.right is None else self.right.unsqueeze(1),
            Segments(self.num_nodes, None, device),
            self.matrix,
            -1.0,
            False,
            None,
            shift=field.centre,
            identity=field.centre,
            field=(field.radius, 0.5 * (field.high - field.low)),
        )

    @property
    def T(self) -> Operator:
        """The transpose Aᵀ."""
        matrix = None if self.matrix is None else self.matrix.T
        return Operator(self.num_nodes, self.right, self.left, matrix, self.field_of_values)

    def __matmul__(self, Z: Tensor) -> Tensor:
        check_floating("Z", Z)
        return self.field_of_values.centre * Z - self.propagator @ Z

    def __add__(self, other: Operator) -> Operator:
        if isinstance(self.matrix, _Functions) or isinstance(other.matrix, _Functions):
            raise ValueError("a pair of functions cannot be added to; write the sum into the functions.")
        if self.num_nodes != other.num_nodes:
            raise ValueError(f"operators of {self.num_nodes} and {other.num_nodes} rows cannot be added.")
        left, right = (
            torch.cat([a, b], dim=1) if a is not None and b is not None else a if b is None else b
            for a, b in ((self.left, other.left), (self.right, other.right))
        )
        matrix = other.matrix if self.matrix is None else self.matrix
        if self.matrix is not None and other.matrix is not None:
            edges = torch.cat([self.matrix.edge_index, other.matrix.edge_index], dim=1)
            matrix = _velocity(edges, torch.cat([self.matrix.entries, other.matrix.entries]), self.num_nodes)
        return Operator(self.num_nodes, left, right, matrix, self.field_of_values + other.field_of_values)

    def to_dense(self) -> Tensor:
        """A itself, [N, N] (an oracle for small N)."""
        like = self.left if self.left is not None else self.matrix.entries
        dtype, device = (torch.get_default_dtype(), self.matrix.device) if like is None else (like.dtype, like.device)
        return self @ torch.eye(self.num_nodes, dtype=dtype, device=device)

    def __repr__(self) -> str:
        parts = [] if self.left is None else [f"rank={self.left.size(1)}"]
        if self.matrix is not None:
            parts.append("functions" if isinstance(self.matrix, _Functions) else f"entries={self.matrix.num_edges}")
        return f"{type(self).__name__}(nodes={self.num_nodes}, {', '.join(parts)})"


class LowRank(Operator):
    """UWᵀ from U, W [N, r]; gradients flow to both.

    Example:
        >>> import torch, advdiff
        >>> advdiff.LowRank(torch.ones(3, 1), torch.ones(3, 1)).field_of_values  # eigenvalues 0 and 3
        FieldOfValues(low=0.0, high=3.0, height=0.0)
    """

    def __init__(self, left: Tensor, right: Tensor) -> None:
        if left.dim() != 2 or left.shape != right.shape or left.dtype != right.dtype or left.device != right.device:
            raise ValueError(
                f"U is {tuple(left.shape)} {left.dtype} and W {tuple(right.shape)} {right.dtype}; both must be [N, r] "
                "in one precision and on one device."
            )
        check_floating("U", left)
        check_finite("U", left)
        check_finite("W", right)
        super().__init__(left.size(0), left, right, None, of_factors(left.detach(), right.detach()))


class Sparse(Operator):
    """A sparse matrix: a torch tensor (COO or CSR, to whose values gradients flow) or one of scipy.sparse.

    Example:
        >>> import torch, advdiff
        >>> advdiff.Sparse(torch.tensor([[2.0, -1.0], [-1.0, 2.0]]).to_sparse()).field_of_values  # by Gershgorin
        FieldOfValues(low=1.0, high=3.0, height=0.0)
    """

    def __init__(self, matrix: Any) -> None:
        if isinstance(matrix, Tensor):
            if matrix.layout == torch.sparse_csr:
                matrix = matrix.to_sparse_coo()
            elif matrix.layout != torch.sparse_coo:
                matrix = matrix.to_sparse()
            matrix = matrix.coalesce()
            index, values, shape = matrix.indices(), matrix.values(), matrix.shape
        elif hasattr(matrix, "tocoo"):
            matrix = matrix.tocoo()
            index, shape = torch.stack([torch.as_tensor(i, dtype=torch.int64) for i in matrix.coords]), matrix.shape
            values = torch.as_tensor(matrix.data)
        else:
            raise ValueError(f"Sparse takes a torch tensor or a scipy.sparse matrix, not {type(matrix).__name__}.")
        if len(shape) != 2 or shape[0] != shape[1]:
            raise ValueError(f"the matrix has shape {tuple(shape)}; it must be square.")
        check_floating("the matrix", values)
        check_finite("the matrix", values)
        num_nodes = int(shape[0])
        velocity = _velocity(index.flip(0), values, num_nodes)
        super().__init__(
            num_nodes, None, None, velocity, gershgorin(index, values.detach(), num_nodes, velocity.undirected)
        )


class MatrixFree(Operator):
    """A given by two functions, Z ↦ AZ and Z ↦ AᵀZ for Z [N, F]; gradients flow to Z and T only.

    Args:
        product: A Z; it must not change Z.
        transposed: Aᵀ Z, for the gradient and for the estimate; None: A is symmetric.
        num_nodes: N.
        field_of_values: (low, high) or (low, high, height), a rectangle that holds W(A); None: estimated by a few steps
            of Lanczos' process on the symmetric and the antisymmetric part.
        dtype, device: of the products with which it is estimated.

    Example:
        >>> import torch, advdiff
        >>> A = advdiff.MatrixFree(lambda Z: 2.0 * Z, None, num_nodes=4, field_of_values=(2.0, 2.0))
        >>> advdiff.exponential(A, torch.ones(4), time=0.5)
        tensor([0.3679, 0.3679, 0.3679, 0.3679])
    """

    def __init__(
        self,
        product: Callable[[Tensor], Tensor],
        transposed: Callable[[Tensor], Tensor] | None,
        num_nodes: int,
        field_of_values: tuple[float, ...] | None = None,
        *,
        dtype: torch.dtype | None = None,
        device: torch.device | str = "cpu",
    ) -> None:
        functions = _Functions(product, transposed or product, num_nodes, torch.device(device), transposed is None)
        if field_of_values is None:
            generator = torch.Generator().manual_seed(0)
            start = torch.randn(num_nodes, generator=generator, dtype=dtype or torch.get_default_dtype()).to(device)
            field = estimated(product, transposed, start)
        else:
            field = FieldOfValues(*field_of_values)
            if not field.low <= field.high or not math.isfinite(field.radius):
                raise ValueError(f"field_of_values is {tuple(field)}; it must be finite, with low ≤ high.")
        super().__init__(num_nodes, None, None, functions, field)


@dataclass(frozen=True, eq=False)
class _Functions:
    """A pair of functions in the place of a sparse matrix."""

    product: Callable[[Tensor], Tensor]
    transposed: Callable[[Tensor], Tensor]
    num_nodes: int
    device: torch.device
    undirected: bool
    entries: Tensor | None = None
    num_edges: int = 1
    skew: float = 1.0
    kind: str = "functions"

    @property
    def T(self) -> _Functions:
        return replace(self, product=self.transposed, transposed=self.product)

    def add_product_(self, out: Tensor, Z: Tensor, scale: float = 1.0, keep: float = 1.0) -> Tensor:
        """out ← keep · out + scale · A Z."""
        product = self.product(Z)
        if product.shape != Z.shape:
            raise ValueError(
                f"the function made {tuple(product.shape)} of a Z of shape {tuple(Z.shape)}; both must agree."
            )
        return torch.mul(product, scale, out=out) if keep == 0.0 else out.mul_(keep).add_(product, alpha=scale)

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """The N×N matrix itself."""
        return self.product(torch.eye(self.num_nodes, dtype=dtype or torch.get_default_dtype(), device=self.device))


def as_operator(L: Any) -> Generator | Operator:
    """L as it is, if it is an operator of the library; a sparse matrix is wrapped."""
    if isinstance(L, Generator | Operator):
        return L
    if isinstance(L, Tensor) or hasattr(L, "tocoo"):
        return Sparse(L)
    raise ValueError(
        f"L is a {type(L).__name__}; pass a Generator, a sparse matrix, LowRank(U, W) + Sparse(A), or "
        "MatrixFree(product, transposed, num_nodes)."
    )


def _velocity(edge_index: Tensor, values: Tensor, num_nodes: int) -> Velocity:
    return Velocity.build(edge_index, values, values, num_nodes, "general", values.dtype, 1.0)
