"""The velocity V: a sparse N×N matrix with products V·Z and Vᵀ·Z on every device.

V[u, v] holds the edge v → u, so ``V @ Z`` gathers at the target what the sources send.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from advdiff.checks import check_finite, check_floating, check_rows, has_values
from advdiff.operators.pattern import Pattern, overwrites
from advdiff.operators.precision import full_precision, widened
from advdiff.operators.reductions import WHOLE, Reductions
from advdiff.operators.sparse_ops import spmm, transposed


@dataclass(frozen=True, eq=False)
class Velocity:
    r"""The velocity matrix V with O(E) products.

    Made by :func:`advdiff.normalize_adjacency`. ``V @ Z`` accepts Z of shape [N], [N, F] or [N, H, F] in either
    precision; ``V.T`` is the transpose and ``V.to_dense()`` the dense oracle for small N.

    Attributes:
        edge_index: the edges [2, E], source → target, in the caller's order.
        entries: what each edge adds to its entry of V, in the same order and in the precision in which it was computed;
            gradients with respect to edge weights flow through it.
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
    _cache: dict[tuple[torch.dtype, bool | str], Any] = field(default_factory=dict, repr=False)
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
            kept = weight.detach()
            undirected = (
                has_values(entries)
                and torch.equal(forward.pointers, backward.pointers)
                and torch.equal(forward.columns, backward.columns)
                and torch.allclose(forward.merge(kept), backward.merge(kept), rtol=1e-12, atol=0.0)
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

    def to(self, *args: Any, **kwargs: Any) -> Velocity:
        """V on another device, or for another dtype, called like ``Tensor.to``.

        The entries keep the precision in which they were computed, so that float32 and back loses nothing.
        """
        like = torch.empty(0, dtype=self.dtype, device=self.device).to(*args, **kwargs)
        forward, backward = (pattern.to(like.device) for pattern in self._patterns)
        if self._patterns[0] is self._patterns[1]:
            backward = forward
        entries = self.entries.to(like.device, torch.float32 if like.device.type == "mps" else None)
        edge_index = self.edge_index.to(like.device)
        patterns = (forward, backward)
        return replace(self, edge_index=edge_index, entries=entries, dtype=like.dtype, _patterns=patterns, _cache={})

    def __deepcopy__(self, memo: dict[int, Any]) -> Velocity:
        # Without the cache: torch cannot copy CSR matrices, and they are made anew on first use.
        edge_index, entries = deepcopy(self.edge_index, memo), deepcopy(self.entries, memo)
        return replace(
            self, edge_index=edge_index, entries=entries, _patterns=deepcopy(self._patterns, memo), _cache={}
        )

    def _matrix(self, dtype: torch.dtype) -> Tensor:
        """The CSR matrix in the wanted precision, made on first use and shared with the transpose."""
        same = self._patterns[0] is self._patterns[1]
        turned = self._transposed and not same
        key = (dtype, turned)
        if key not in self._cache:
            pattern = self._patterns[turned]
            self._cache[key] = pattern.matrix(pattern.merge(self.entries.detach())).to(dtype)
        matrix: Tensor = self._cache[key]
        return matrix

    def arrays(self, dtype: torch.dtype) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Entries of V and of Vᵀ, and the structure that they share: see :mod:`advdiff.operators.sparse_ops`."""
        key = (dtype, "arrays")
        if key not in self._cache:
            forward, backward = self._patterns
            value = forward.merge(self.entries).to(dtype)
            order = back_order = forward.entry_of_edge.new_empty(0)
            if self.entries.requires_grad:  # only a gradient with respect to them asks which is which
                order = torch.argsort(forward.columns.long() * self.num_nodes + forward.rows)
                back_order = torch.empty_like(order)
                back_order[order] = torch.arange(order.numel(), device=order.device)
            back_value = value[order] if self.entries.requires_grad else backward.merge(self.entries).to(dtype)
            structure = [forward.pointers, forward.columns, backward.pointers, backward.columns, order, back_order]
            self._cache[key] = (value, back_value, structure)
        value, back_value, structure = self._cache[key]
        return (back_value, value, transposed(structure)) if self._transposed else (value, back_value, structure)

    def product(self, Z: Tensor) -> Tensor:
        """V Z for [N, F], in an operator that torch can differentiate, record and transform."""
        value, back_value, structure = self.arrays(Z.dtype)
        return spmm(value, back_value, Z, structure)

    def add_product_(self, out: Tensor, Z: Tensor, scale: float = 1.0, keep: float = 1.0) -> Tensor:
        """out ← keep · out + scale · V Z for row-major [N, F] matrices, in place and outside autograd.

        With ``keep`` = 0, ``out`` may be uninitialised.
        """
        kind = out.device.type
        if self.num_edges == 0 or out.numel() == 0 or scale == 0.0:
            return out.zero_() if keep == 0.0 else out.mul_(keep)
        if kind == "meta":
            return out
        if keep == 0.0 and not overwrites(kind):
            out.zero_()
        if kind in ("cpu", "cuda"):
            return torch.addmm(out, self._matrix(out.dtype), Z, beta=keep, alpha=scale, out=out)
        source, target = self.edge_index  # devices without CSR kernels (mps)
        return out.mul_(keep).index_add_(
            0, target, Z[source] * self.entries.detach().to(out.dtype)[:, None], alpha=scale
        )

    def edge_products(self, X: Tensor, Y: Tensor) -> Tensor:
        """x_target(e) · y_source(e) for every edge e of the caller, [N, F] → [E]: what ⟨X, V Y⟩ gains per unit of e."""
        if self._transposed:
            X, Y = Y, X
        pattern = self._patterns[0]
        return pattern.dot(X, Y)[pattern.entry_of_edge].to(self.entries.dtype)

    def to_dense(self, dtype: torch.dtype | None = None) -> Tensor:
        """The N×N matrix itself (an oracle for small N)."""
        source, target = self.edge_index
        dense = self.entries.new_zeros(self.num_nodes, self.num_nodes)
        dense.index_put_((target.long(), source.long()), self.entries, accumulate=True)
        return dense.to(dtype or self.dtype)

    @full_precision
    def __matmul__(self, Z: Tensor) -> Tensor:
        check_floating("Z", Z)
        check_rows("Z", Z, self.num_nodes)
        check_finite("Z", Z)
        if Z.device != self.device:
            raise ValueError(f"Z lies on {Z.device} and V on {self.device}; move both to one device.")
        wide = widened(Z)
        out: Tensor = _SparseProduct.apply(wide.flatten(1) if Z.dim() > 1 else wide.unsqueeze(1), self.entries, self)
        return out.view(Z.shape).to(Z.dtype)

    def __repr__(self) -> str:
        return f"Velocity(nodes={self.num_nodes}, edges={self.num_edges}, kind={self.kind!r})"


class _SparseProduct(torch.autograd.Function):
    """V Z as a function of Z and of the entries of V."""

    @staticmethod
    def forward(ctx, Z: Tensor, entries: Tensor, velocity: Velocity) -> Tensor:  # type: ignore[no-untyped-def]
        ctx.velocity = velocity
        Z = Z.contiguous()
        ctx.save_for_backward(entries, *[Z] * ctx.needs_input_grad[1])
        return velocity.add_product_(torch.empty_like(Z), Z, keep=0.0)

    @staticmethod
    @full_precision
    def backward(ctx, grad: Tensor):  # type: ignore[no-untyped-def]
        # Not ``@``, which would look at the values of the gradient.
        entries, *kept = ctx.saved_tensors
        grad_Z = _SparseProduct.apply(grad, entries, ctx.velocity.T) if ctx.needs_input_grad[0] else None
        grad_entries = None
        if kept and torch.is_grad_enabled():  # somebody differentiates the gradient: on the tape
            source, target = ctx.velocity.edge_index
            grad_entries = (grad[target] * kept[0][source]).sum(1).to(entries.dtype)
        elif kept:
            grad_entries = ctx.velocity.edge_products(grad, kept[0])
        return grad_Z, grad_entries, None
