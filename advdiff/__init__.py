"""advdiff: advective diffusion on graphs, e^{-(I - C - βV)T} Z, from the equation to the trained model."""

from advdiff.graph import divergence, gradient, normalize_adjacency
from advdiff.operators import Attention, Generator, Propagator, Velocity
from advdiff.propagation import (
    NearSingularWarning,
    Record,
    SingularGeneratorError,
    SingularVelocityError,
    exponential,
    powers,
    resolvent,
)

__all__ = [
    "Attention",
    "Generator",
    "NearSingularWarning",
    "Propagator",
    "Record",
    "SingularGeneratorError",
    "SingularVelocityError",
    "Velocity",
    "divergence",
    "exponential",
    "gradient",
    "normalize_adjacency",
    "powers",
    "resolvent",
]
__version__ = "0.1.0"
