r"""The low-rank part of (sI − C − βV)⁻¹, by the Woodbury identity.

With B = sI − βV and C = U Wᵀ,

.. math::
    (\mathbf B - \mathbf U \mathbf W^\top)^{-1} \mathbf Z = \mathbf B^{-1}\mathbf Z
    + \mathbf B^{-1}\mathbf U\, (\mathbf I - \mathbf W^\top \mathbf B^{-1} \mathbf U)^{-1}\,
    \mathbf W^\top \mathbf B^{-1} \mathbf Z,

so once B⁻¹[Z, U] is known only a capacitance matrix of size d + 1 per graph and head is left to solve.
"""

from __future__ import annotations

import torch
from torch import Tensor

from advdiff.operators.propagator import Propagator
from advdiff.propagation.errors import SingularGeneratorError


def capacitance(operator: Propagator, solved_left: Tensor) -> Tensor:
    """I − Wᵀ B⁻¹U per graph and head: [G, H, r, r]."""
    assert operator.right is not None
    product = operator.segments.outer(operator.right.to(solved_left.dtype), solved_left)
    return torch.eye(operator.rank, dtype=product.dtype, device=product.device) - product


def with_correction(operator: Propagator, solved: Tensor, solved_left: Tensor, coefficients: Tensor) -> Tensor:
    """B⁻¹Z + B⁻¹U S [N, H, F] from B⁻¹Z [N, 1 or H, F], B⁻¹U [N, H, r] and S = M⁻¹ Wᵀ B⁻¹Z [G, H, r, F]."""
    heads = solved.expand(-1, operator.heads, -1)
    return operator.segments.add_apply_(heads.clone(memory_format=torch.contiguous_format), solved_left, coefficients)


def corrected(operator: Propagator, solved: Tensor, solved_left: Tensor) -> Tensor:
    """(B − UWᵀ)⁻¹Z from B⁻¹Z and B⁻¹U; an exactly singular capacitance matrix is an error by name."""
    assert operator.right is not None
    right_side = operator.segments.outer(operator.right.to(solved.dtype), solved)
    coefficients, info = torch.linalg.solve_ex(capacitance(operator, solved_left), right_side)
    if info.device.type != "meta" and bool(info.any()):
        raise SingularGeneratorError(
            "θI + L is exactly singular: the Perron eigenvalue of C + βV equals 1 + θ; choose a larger θ."
        )
    return with_correction(operator, solved, solved_left, coefficients)
