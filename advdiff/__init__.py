"""advdiff: advective diffusion on graphs, e^{-(I - C - βV)T} Z, from the equation to the trained model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advdiff.lazy import attach

if TYPE_CHECKING:
    from advdiff.checks import set_value_checks
    from advdiff.operators import (
        Attention,
        Generator,
        Propagator,
        Velocity,
        divergence,
        gradient,
        normalize_adjacency,
    )
    from advdiff.propagation import (
        NearSingularWarning,
        SingularGeneratorError,
        SingularVelocityError,
        Solution,
        Statistics,
        exponential,
        powers,
        resolvent,
    )

__all__ = [
    "Attention",
    "Generator",
    "NearSingularWarning",
    "Propagator",
    "SingularGeneratorError",
    "SingularVelocityError",
    "Solution",
    "Statistics",
    "Velocity",
    "divergence",
    "exponential",
    "gradient",
    "normalize_adjacency",
    "powers",
    "resolvent",
    "set_value_checks",
]
__version__ = "0.1.0"
_OPERATORS = ("Attention", "Generator", "Propagator", "Velocity", "divergence", "gradient", "normalize_adjacency")
_ROOMS = {name: f"advdiff.{'operators' if name in _OPERATORS else 'propagation'}" for name in __all__}
__getattr__ = attach(__name__, {**_ROOMS, "set_value_checks": "advdiff.checks"})


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
