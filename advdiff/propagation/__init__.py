"""e^{-LT}Z and its approximations, one method per file."""

from advdiff.propagation.errors import (
    AccuracyWarning,
    FlowOverflowError,
    NearSingularWarning,
    SingularGeneratorError,
    SingularVelocityError,
)
from advdiff.propagation.exponential import exponential
from advdiff.propagation.phi import phi
from advdiff.propagation.powers import powers
from advdiff.propagation.resolvent import resolvent
from advdiff.propagation.solution import Solution, Statistics

__all__ = [
    "AccuracyWarning",
    "FlowOverflowError",
    "NearSingularWarning",
    "SingularGeneratorError",
    "SingularVelocityError",
    "Solution",
    "Statistics",
    "exponential",
    "phi",
    "powers",
    "resolvent",
]
