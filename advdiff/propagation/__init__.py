"""e^{-LT}Z and its approximations, one method per file."""

from advdiff.propagation.errors import NearSingularWarning, SingularGeneratorError, SingularVelocityError
from advdiff.propagation.exponential import exponential
from advdiff.propagation.powers import powers
from advdiff.propagation.resolvent import resolvent
from advdiff.propagation.solution import Solution, Statistics

__all__ = [
    "NearSingularWarning",
    "SingularGeneratorError",
    "SingularVelocityError",
    "Solution",
    "Statistics",
    "exponential",
    "powers",
    "resolvent",
]
