"""e^{-LT}Z and its approximations, one method per file."""

from advdiff.propagation.errors import NearSingularWarning, SingularGeneratorError, SingularVelocityError
from advdiff.propagation.exponential import exponential
from advdiff.propagation.record import Record
from advdiff.propagation.resolvent import resolvent
from advdiff.propagation.series import powers

__all__ = [
    "NearSingularWarning",
    "Record",
    "SingularGeneratorError",
    "SingularVelocityError",
    "exponential",
    "powers",
    "resolvent",
]
