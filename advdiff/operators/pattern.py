"""Where the entries of a sparse matrix stand, apart from their values: a CSR pattern, sorted once for each graph."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import torch
from torch import Tensor

from advdiff.checks import has_values


def overwrites(device: str) -> bool:
    """Do sparse products with β = 0 ignore what they write over? Other kernels multiply it, and 0 · NaN is NaN."""
    return device == "cuda" or (device == "cpu" and torch.backends.mkl.is_available())


_announced = False


def _let_torch_announce_its_csr() -> None:
    """torch says once per process that its CSR tensors are young; to silence it at every matrix would take longer."""
    global _announced
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        index = torch.zeros(1, dtype=torch.int64)
        torch.sparse_csr_tensor(index, index[:0], torch.zeros(0), (0, 0), check_invariants=False)
    _announced = True


class Pattern(NamedTuple):
    """Row pointers, column indices, and the entry to which each edge adds.

    Duplicate edges share an entry. Values are those of the entries, in the pattern's order; :meth:`merge` makes them
    from those of the edges.

    Example:
        >>> import torch
        >>> pattern = Pattern.sort(torch.tensor([1, 0, 1]), torch.tensor([2, 1, 2]), 3)
        >>> pattern.pointers.tolist(), pattern.columns.tolist(), pattern.entry_of_edge.tolist()
        ([0, 1, 2, 2], [1, 2], [1, 0, 1])
        >>> pattern.merge(torch.tensor([1.0, 2.0, 4.0]))
        tensor([2., 5.])
    """

    pointers: Tensor
    columns: Tensor
    entry_of_edge: Tensor
    #: Number of columns; None: as many as rows.
    width: int | None = None

    @classmethod
    def sort(cls, major: Tensor, minor: Tensor, size: int, columns: int | None = None) -> Pattern:
        """The pattern of a matrix of ``size`` rows, and as many or ``columns`` columns, from those of each edge."""
        width = max(size if columns is None else columns, 1)
        key = major.long() * width + minor.long()
        if has_values(key):
            key, entry_of_edge = torch.unique(key, return_inverse=True)
        else:  # on ``meta`` and in recorded code nothing can be merged: one entry per edge
            key, order = torch.sort(key, stable=True)
            entry_of_edge = torch.empty_like(order).scatter(0, order, torch.arange(key.numel(), device=key.device))
        row = torch.div(key, width, rounding_mode="floor")
        counts = torch.zeros(size + 1, dtype=torch.int64, device=key.device)
        counts.index_add_(0, row + 1, torch.ones_like(row))
        # 32-bit indices halve the index traffic of a product that is bound by memory.
        is_small = not torch.compiler.is_compiling() and max(major.numel(), size) < 2**31
        index = torch.int32 if is_small else torch.int64
        return cls(counts.cumsum(0).to(index), (key - row * width).to(index), entry_of_edge, columns)

    def to(self, device: torch.device) -> Pattern:
        """The same on another device."""
        pointers, columns, entry_of_edge = (tensor.to(device) for tensor in self[:3])
        return Pattern(pointers, columns, entry_of_edge, self.width)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.pointers.numel() - 1

    @property
    def rows(self) -> Tensor:
        """The row of each entry (``columns`` has the other index)."""
        numbers = torch.arange(self.size, device=self.pointers.device)
        return torch.repeat_interleave(numbers, self.pointers.diff(), output_size=self.columns.numel())

    def merge(self, value: Tensor) -> Tensor:
        """Values of the entries from those of the edges; duplicate edges add up."""
        return value.new_zeros(self.columns.numel()).index_add_(0, self.entry_of_edge, value)

    def matrix(self, value: Tensor) -> Tensor:
        """The matrix itself as a torch tensor."""
        if not _announced:
            _let_torch_announce_its_csr()
        shape = (self.size, self.size if self.width is None else self.width)
        return torch.sparse_csr_tensor(self.pointers, self.columns, value, shape, check_invariants=False)

    def has_kernels(self, X: Tensor) -> bool:
        """Does torch have sparse products for such tensors? Elsewhere (mps, meta) rows are gathered."""
        return X.device.type in ("cpu", "cuda") and self.columns.numel() > 0 and X.numel() > 0

    def product(self, value: Tensor, Z: Tensor) -> Tensor:
        """out_u = Σ_e value_e z_column(e) over the entries e of row u, [N, F] → [N, F]."""
        if self.has_kernels(Z):
            Z = Z.contiguous()
            out = torch.empty_like(Z)
            if not overwrites(Z.device.type):
                out.zero_()
            return torch.addmm(out, self.matrix(value), Z, beta=0.0, out=out)
        return torch.zeros_like(Z).index_add_(0, self.rows, value[:, None] * Z[self.columns])

    def dot(self, X: Tensor, Y: Tensor) -> Tensor:
        """x_row(e) · y_column(e) for every entry e."""
        if self.has_kernels(X):
            zero = self.matrix(X.new_zeros(self.columns.numel()))
            return torch.sparse.sampled_addmm(zero, X.contiguous(), Y.T).values()
        return (X[self.rows] * Y[self.columns]).sum(1)
