"""advdiff: advective diffusion on graphs, e^{-(I - C - βV)T} Z, from the equation to the trained model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advdiff.lazy import attach

if TYPE_CHECKING:
    from advdiff.operators import (
        Attention,
        Generator,
        LowRank,
        MatrixFree,
        Operator,
        Propagator,
        Sparse,
        Velocity,
        as_scipy,
        divergence,
        gradient,
        normalize_adjacency,
    )
    from advdiff.propagation import (
        FlowOverflowError,
        NearSingularWarning,
        SingularGeneratorError,
        SingularVelocityError,
        Solution,
        Statistics,
        ToleranceWarning,
        exponential,
        phi,
        powers,
        resolvent,
    )

__all__ = [
    "Attention",
    "FlowOverflowError",
    "Generator",
    "LowRank",
    "MatrixFree",
    "NearSingularWarning",
    "Operator",
    "Propagator",
    "SingularGeneratorError",
    "SingularVelocityError",
    "Solution",
    "Sparse",
    "Statistics",
    "ToleranceWarning",
    "Velocity",
    "as_scipy",
    "divergence",
    "exponential",
    "gradient",
    "normalize_adjacency",
    "phi",
    "powers",
    "resolvent",
]
__version__ = "0.1.0"
_PROPAGATION = {
    "FlowOverflowError",
    "NearSingularWarning",
    "SingularGeneratorError",
    "SingularVelocityError",
    "Solution",
    "Statistics",
    "ToleranceWarning",
    "exponential",
    "phi",
    "powers",
    "resolvent",
}
__getattr__ = attach(
    __name__, {name: f"advdiff.{'propagation' if name in _PROPAGATION else 'operators'}" for name in __all__}
)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
