r"""Products with a sparse matrix that torch can differentiate any number of times, record and transform.

.. math::
    \text{spmm}(\mathbf v, \mathbf Z)_u = \sum_{e \in \text{row } u} v_e\, \mathbf z_{\text{column}(e)}, \qquad
    \text{sddmm}(\mathbf X, \mathbf Y)_e = \mathbf x_{\text{row}(e)} \cdot \mathbf y_{\text{column}(e)}

Each is the gradient of the other. ``torch.compile`` and ``torch.export`` record them as the operators
``torch.ops.advdiff.spmm`` and ``sddmm``, registered with fake and backward kernels; ``torch.func`` gets them as
autograd functions with a rule for ``vmap``, because it takes no registered gradients. Where torch does neither, the
library multiplies in place (:meth:`advdiff.Velocity.add_product_`).

A **structure** is what the entries of a matrix and of its transpose have in common, six tensors: row pointers and
columns of the matrix, those of its transpose, for each entry of the transpose its number in the matrix, and the other
way round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from advdiff.operators.pattern import Pattern


def spmm(value: Tensor, back_value: Tensor, Z: Tensor, structure: Sequence[Tensor]) -> Tensor:
    """V Z, [N, F], for the entries of V and, in the order of the transpose, of Vᵀ."""
    if torch.compiler.is_compiling():
        return _spmm_operator(value, back_value, Z, list(structure))
    out: Tensor = _Spmm.apply(value, back_value, Z, *structure)
    return out


def sddmm(X: Tensor, Y: Tensor, structure: Sequence[Tensor]) -> Tensor:
    """x_row(e) · y_column(e) for every entry e, [E]."""
    if torch.compiler.is_compiling():
        return _sddmm_operator(X, Y, list(structure))
    out: Tensor = _Sddmm.apply(X, Y, *structure)
    return out


def transposed(structure: Sequence[Tensor]) -> list[Tensor]:
    """The structure of the transpose."""
    pointers, columns, back_pointers, back_columns, order, back_order = structure
    return [back_pointers, back_columns, pointers, columns, back_order, order]


def _pattern(structure: Sequence[Tensor]) -> Pattern:
    return Pattern(structure[0], structure[1], structure[4])


# -- the gradients, for both ways of telling torch ----------------------------------------------------------------


def _keep_spmm(ctx: Any, value: Tensor, back_value: Tensor, Z: Tensor, structure: Sequence[Tensor]) -> None:
    ctx.save_for_backward(value, back_value, Z if ctx.needs_input_grad[0] else None, *structure)


def _spmm_backward(
    ctx: Any, grad: Tensor, spmm: Callable[..., Tensor], sddmm: Callable[..., Tensor]
) -> tuple[Tensor | None, None, Tensor | None]:
    value, back_value, Z, *structure = ctx.saved_tensors
    grad_Z = spmm(back_value, value, grad, transposed(structure)) if ctx.needs_input_grad[2] else None
    grad_value = sddmm(grad, Z, structure).to(value.dtype) if ctx.needs_input_grad[0] else None
    return grad_value, None, grad_Z


def _sddmm_backward(ctx: Any, grad: Tensor, spmm: Callable[..., Tensor]) -> tuple[Tensor | None, Tensor | None]:
    X, Y, *structure = ctx.saved_tensors
    back_grad = grad[structure[4]]
    grad_X = spmm(grad, back_grad, Y, structure) if ctx.needs_input_grad[0] else None
    grad_Y = spmm(back_grad, grad, X, transposed(structure)) if ctx.needs_input_grad[1] else None
    return grad_X, grad_Y


# -- as registered operators --------------------------------------------------------------------------------------


@torch.library.custom_op("advdiff::spmm", mutates_args=())
def _spmm_operator(value: Tensor, back_value: Tensor, Z: Tensor, structure: Sequence[Tensor]) -> Tensor:
    return _pattern(structure).product(value.to(Z.dtype), Z)


@_spmm_operator.register_fake
def _(value: Tensor, back_value: Tensor, Z: Tensor, structure: Sequence[Tensor]) -> Tensor:
    return torch.empty_like(Z, memory_format=torch.contiguous_format)


@torch.library.custom_op("advdiff::sddmm", mutates_args=())
def _sddmm_operator(X: Tensor, Y: Tensor, structure: Sequence[Tensor]) -> Tensor:
    return _pattern(structure).dot(X, Y)


@_sddmm_operator.register_fake
def _(X: Tensor, Y: Tensor, structure: Sequence[Tensor]) -> Tensor:
    return X.new_empty(structure[1].numel())


_spmm_operator.register_autograd(
    lambda ctx, grad: (*_spmm_backward(ctx, grad, _spmm_operator, _sddmm_operator), [None] * 6),
    setup_context=lambda ctx, inputs, output: _keep_spmm(ctx, *inputs),
)
_sddmm_operator.register_autograd(
    lambda ctx, grad: (*_sddmm_backward(ctx, grad, _spmm_operator), [None] * 6),
    setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0], inputs[1], *inputs[2]),
)


# -- as autograd functions ----------------------------------------------------------------------------------------


class _Spmm(torch.autograd.Function):
    @staticmethod
    def forward(value: Tensor, back_value: Tensor, Z: Tensor, *structure: Tensor) -> Tensor:
        return _pattern(structure).product(value.to(Z.dtype), Z)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        value, back_value, Z, *structure = inputs
        _keep_spmm(ctx, value, back_value, Z, structure)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return *_spmm_backward(ctx, grad, spmm, sddmm), *[None] * 6

    @staticmethod
    def vmap(info: Any, in_dims: tuple, value: Tensor, back_value: Tensor, Z: Tensor, *structure: Tensor) -> tuple:
        if in_dims[0] is None and in_dims[1] is None:  # more columns
            Z = Z.movedim(in_dims[2], -1)
            return spmm(value, back_value, Z.flatten(1), structure).view(Z.shape), Z.dim() - 1
        # Other entries of the same matrix: one product each.
        stacks = [_unstacked(t, d, info) for t, d in zip((value, back_value, Z), in_dims, strict=False)]
        return torch.stack([spmm(v, back, z, structure) for v, back, z in zip(*stacks, strict=True)]), 0


class _Sddmm(torch.autograd.Function):
    @staticmethod
    def forward(X: Tensor, Y: Tensor, *structure: Tensor) -> Tensor:
        return _pattern(structure).dot(X, Y)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        return *_sddmm_backward(ctx, grad, spmm), *[None] * 6

    @staticmethod
    def vmap(info: Any, in_dims: tuple, X: Tensor, Y: Tensor, *structure: Tensor) -> tuple:
        stacks = [_unstacked(t, d, info) for t, d in zip((X, Y), in_dims, strict=False)]
        return torch.stack([sddmm(x, y, structure) for x, y in zip(*stacks, strict=True)]), 0


def _unstacked(tensor: Tensor, dim: int | None, info: Any) -> Sequence[Tensor]:
    return [tensor] * info.batch_size if dim is None else tensor.unbind(dim)
