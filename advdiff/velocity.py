"""The velocity V: a sparse N×N matrix with products V·Z and Vᵀ·Z on every device.

V[u, v] holds the edge v → u, so ``V @ Z`` gathers at the target what the sources send.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from advdiff.checks import check_finite, check_floating, check_rows, has_values


class _Pattern(NamedTuple):
    """Where the entries of a CSR matrix stand: row pointers, column indices, and the entry to which each edge adds."""

    pointers: Tensor
    columns: Tensor
    entry_of_edge: Tensor

    @classmethod
    def sort(cls, major: Tensor, minor: Tensor, num_nodes: int) -> _Pattern:
        size = max(num_nodes, 1)
        key = major.long() * size + minor.long()
        if has_values(key):
            key, entry_of_edge = torch.unique(key, return_inverse=True)
        else:  # on ``meta`` nothing can be merged: one entry per edge
            entry_of_edge = torch.arange(key.numel(), device=key.device)
        row = torch.div(key, size, rounding_mode="floor")
        counts = torch.zeros(num_nodes + 1, dtype=torch.int64, device=key.device)
        counts.index_add_(0, row + 1, torch.ones_like(row))
        # 32-bit indices halve the index traffic of a product that is bound by memory.
        index = torch.int32 if max(major.numel(), num_nodes) < 2**31 else torch.int64
        return cls(counts.cumsum(0).to(index), (key - row * size).to(index), entry_of_edge)

    def entries(self, value: Tensor) -> Tensor:
        """Values of the entries from those of the edges; duplicate edges add up."""
        return value.new_zeros(self.columns.numel()).index_add_(0, self.entry_of_edge, value)

    def matrix(self, value: Tensor) -> Tensor:
        size = self.pointers.numel() - 1
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*Sparse.*", category=UserWarning)
            return torch.sparse_csr_tensor(
                self.pointers, self.columns, self.entries(value), (size, size), check_invariants=False
            )


@dataclass(frozen=True, eq=False)
class Velocity:
    r"""The velocity matrix V with O(E) products.

    Made by :func:`advdiff.normalize_adjacency`. ``V @ Z`` accepts Z of shape [N], [N, F] or [N, H, F] in either
    precision; ``V.T`` is the transpose and ``V.to_dense()`` the dense oracle for small N.

    Attributes:
        edge_index: the edges [2, E], source → target, in the caller's order.
        exact: V's entry of each edge in the same order, in the precision in which it was computed.
        kind: ``"symmetric"`` or ``"row"``.
        undirected: is the adjacency matrix symmetric? Then the spectrum of V is real, inside [-1, 1].
        skew: √(d_max/d_min) for row normalisation, else 1: how far V is from a symmetric matrix,
            ‖p(V)‖₂ ≤ skew · max over the spectrum of \|p\|.
        dtype: of :meth:`to_dense` and of products with nothing else to go by.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1, 1], [1, 0, 2]]), 3, kind="row")
        >>> V
        Velocity(nodes=3, edges=3, kind='row')
        >>> V @ torch.tensor([1.0, 2.0, 4.0])  # each node reads the mean of those that send to it
        tensor([2., 1., 2.])
        >>> V.T.to_dense()
        tensor([[0., 1., 0.],
                [1., 0., 1.],
                [0., 0., 0.]])
    """

    edge_index: Tensor
    exact: Tensor
    num_nodes: int
    kind: str
    dtype: torch.dtype
    undirected: bool
    skew: float
    _patterns: tuple[_Pattern, _Pattern] = field(repr=False)
    _cache: dict[tuple[torch.dtype, bool], Tensor] = field(default_factory=dict, repr=False)
    _transposed: bool = False

    @classmethod
    def build(
        cls,
        edge_index: Tensor,
        exact: Tensor,
        weight: Tensor,
        num_nodes: int,
        kind: str,
        dtype: torch.dtype,
        skew: float,
    ) -> Velocity:
        """Sort the edges once by target and once by source. ``weight``: the adjacency before normalising."""
        source, target = edge_index
        forward = _Pattern.sort(target, source, num_nodes)
        backward = _Pattern.sort(source, target, num_nodes)
        undirected = (
            has_values(exact)
            and torch.equal(forward.pointers, backward.pointers)
            and torch.equal(forward.columns, backward.columns)
            and torch.allclose(forward.entries(weight), backward.entries(weight), rtol=1e-12, atol=0.0)
        )
        if undirected and kind == "symmetric":
            backward = forward
        return cls(edge_index, exact, num_nodes, kind, dtype, undirected, skew, (forward, backward))

    @property
    def T(self) -> Velocity:
        """The transpose Vᵀ, which shares its edges with V."""
        return replace(self, edge_index=self.edge_index.flip(0), _transposed=not self._transposed)

    @property
    def device(self) -> torch.device:
        return self.exact.device

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)

    def _matrix(self, dtype: torch.dtype) -> Tensor:
        """The CSR matrix in the wanted precision, made on first use and shared with the transpose."""
        same = self._patterns[0] is self._patterns[1]
        key = (dtype, self._transposed and not same)
        if key not in self._cache:
            self._cache[key] = self._patterns[key[1]].matrix(self.exact).to(dtype)
        return self._cache[key]

    def add_product_(self, out: Tensor, Z: Tensor, scale: float = 1.0, keep: float = 1.0) -> Tensor:
        """out ← keep · out + scale · V Z for row-major [N, F] matrices, in place and outside autograd."""
        if self.num_edges == 0 or out.numel() == 0 or scale == 0.0:
            return out.mul_(keep)
        if out.device.type == "meta":
            return out
        if out.device.type in ("cpu", "cuda"):
            return torch.addmm(out, self._matrix(out.dtype), Z, beta=keep, alpha=scale, out=out)
        source, target = self.edge_index  # devices without CSR kernels (mps)
        return out.mul_(keep).index_add_(0, target, Z[source] * self.exact.to(out.dtype)[:, None], alpha=scale)

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """The N×N matrix itself (an oracle for small N)."""
        source, target = self.edge_index
        dense = self.exact.new_zeros(self.num_nodes, self.num_nodes)
        dense.index_put_((target.long(), source.long()), self.exact, accumulate=True)
        return dense.to(dtype or self.dtype)

    def __matmul__(self, Z: Tensor) -> Tensor:
        check_floating("Z", Z)
        check_rows("Z", Z, self.num_nodes)
        check_finite("Z", Z)
        if Z.device != self.device:
            raise ValueError(f"Z lies on {Z.device} and V on {self.device}; move both to one device.")
        out: Tensor = _SparseProduct.apply(Z.flatten(1) if Z.dim() > 1 else Z.unsqueeze(1), self)
        return out.view(Z.shape)

    def __repr__(self) -> str:
        return f"Velocity(nodes={self.num_nodes}, edges={self.num_edges}, kind={self.kind!r})"


class _SparseProduct(torch.autograd.Function):
    """V Z with the backward Vᵀ G; V itself is constant."""

    @staticmethod
    def forward(ctx, Z: Tensor, velocity: Velocity) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.velocity = velocity
        return velocity.add_product_(torch.zeros_like(Z), Z.contiguous())

    @staticmethod
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        return ctx.velocity.T @ grad, None
