"""advdiff: advective diffusion on graphs, e^{-(I - C - βV)T} Z, from the equation to the trained model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advdiff.lazy import attach

if TYPE_CHECKING:
    from advdiff.checks import set_value_checks
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
        AccuracyWarning,
        FlowOverflowError,
        NearSingularWarning,
        SingularGeneratorError,
        SingularVelocityError,
        Solution,
        Statistics,
        exponential,
        phi,
        powers,
        resolvent,
    )

__all__ = [
    "AccuracyWarning",
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
    "Velocity",
    "as_scipy",
    "divergence",
    "exponential",
    "gradient",
    "normalize_adjacency",
    "phi",
    "powers",
    "resolvent",
    "set_value_checks",
]
__version__ = "0.1.0"
_PROPAGATION = ("Error", "Warning", "Solution", "Statistics", "exponential", "phi", "powers", "resolvent")
_ROOMS = {name: f"advdiff.{'propagation' if name.endswith(_PROPAGATION) else 'operators'}" for name in __all__}
__getattr__ = attach(__name__, {**_ROOMS, "set_value_checks": "advdiff.checks"})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
