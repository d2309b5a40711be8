"""The velocity V: a sparse N×N matrix with products V·Z and Vᵀ·Z on every device.

V[u, v] holds the edge v → u, so ``V @ Z`` gathers at the target what the sources send.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from advdiff.checks import check_finite, check_floating, check_rows, has_values
from advdiff.operators.pattern import Pattern
from advdiff.operators.reductions import WHOLE, Reductions


@dataclass(frozen=True, eq=False)
class Velocity:
    r"""The velocity matrix V with O(E) products.

    Made by :func:`advdiff.normalize_adjacency`. ``V @ Z`` accepts Z of shape [N], [N, F] or [N, H, F] in either
    precision; ``V.T`` is the transpose and ``V.to_dense()`` the dense oracle for small N.

    Attributes:
        edge_index: the edges [2, E], source → target, in the caller's order.
        entries: what each edge adds to its entry of V, in the same order and in the precision in which it was computed.
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
    entries: Tensor
    num_nodes: int
    kind: str
    dtype: torch.dtype
    undirected: bool
    skew: float
    _patterns: tuple[Pattern, Pattern] = field(repr=False)
    _cache: dict[tuple[torch.dtype, bool], Tensor] = field(default_factory=dict, repr=False)
    _transposed: bool = False

    @classmethod
    def build(
        cls,
        edge_index: Tensor,
        entries: Tensor,
        weight: Tensor,
        num_nodes: int,
        kind: str,
        dtype: torch.dtype,
        skew: float,
        undirected: bool | None = None,
    ) -> Velocity:
        """Sort the edges once by target and once by source. ``weight``: the adjacency before normalising.

        ``undirected`` is looked for where it is None.
        """
        source, target = edge_index
        forward = Pattern.sort(target, source, num_nodes)
        backward = Pattern.sort(source, target, num_nodes)
        if undirected is None:
            undirected = (
                has_values(entries)
                and torch.equal(forward.pointers, backward.pointers)
                and torch.equal(forward.columns, backward.columns)
                and torch.allclose(forward.merge(weight), backward.merge(weight), rtol=1e-12, atol=0.0)
            )
        if undirected and kind == "symmetric":
            backward = forward
        return cls(edge_index, entries, num_nodes, kind, dtype, undirected, skew, (forward, backward))

    @property
    def T(self) -> Velocity:
        """The transpose Vᵀ, which shares its edges with V."""
        return replace(self, edge_index=self.edge_index.flip(0), _transposed=not self._transposed)

    @property
    def device(self) -> torch.device:
        return self.entries.device

    @property
    def reductions(self) -> Reductions:
        """How sums over the nodes of this process become sums over all of them."""
        return WHOLE

    @property
    def num_edges(self) -> int:
        return self.edge_index.size(1)

    def _matrix(self, dtype: torch.dtype) -> Tensor:
        """The CSR matrix in the wanted precision, made on first use and shared with the transpose."""
        same = self._patterns[0] is self._patterns[1]
        key = (dtype, self._transposed and not same)
        if key not in self._cache:
            pattern = self._patterns[key[1]]
            self._cache[key] = pattern.matrix(pattern.merge(self.entries)).to(dtype)
        return self._cache[key]

    def add_product_(self, out: Tensor, Z: Tensor, scale: float = 1.0, keep: float = 1.0) -> Tensor:
        """out ← keep · out + scale · V Z for row-major [N, F] matrices, in place and outside autograd.

        With ``keep`` = 0, ``out`` may be uninitialised.
        """
        kind = out.device.type
        if self.num_edges == 0 or out.numel() == 0 or scale == 0.0:
            return out.zero_() if keep == 0.0 else out.mul_(keep)
        if kind == "meta":
            return out
        if keep == 0.0 and not (kind == "cuda" or (kind == "cpu" and torch.backends.mkl.is_available())):
            out.zero_()  # other kernels multiply what they find, and 0 · NaN is NaN
        if kind in ("cpu", "cuda"):
            return torch.addmm(out, self._matrix(out.dtype), Z, beta=keep, alpha=scale, out=out)
        source, target = self.edge_index  # devices without CSR kernels (mps)
        return out.mul_(keep).index_add_(0, target, Z[source] * self.entries.to(out.dtype)[:, None], alpha=scale)

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """The N×N matrix itself (an oracle for small N)."""
        source, target = self.edge_index
        dense = self.entries.new_zeros(self.num_nodes, self.num_nodes)
        dense.index_put_((target.long(), source.long()), self.entries, accumulate=True)
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
        Z = Z.contiguous()
        return velocity.add_product_(torch.empty_like(Z), Z, keep=0.0)

    @staticmethod
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        # Not ``@``, which would look at the values of the gradient.
        return _SparseProduct.apply(grad, ctx.velocity.T), None
