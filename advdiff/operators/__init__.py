"""The operators of the advective diffusion equation: V, C, P = C + βV and the generator L = I − P."""

from advdiff.operators.attention import Attention
from advdiff.operators.generator import Generator
from advdiff.operators.graph import divergence, gradient, normalize_adjacency
from advdiff.operators.linear import LowRank, MatrixFree, Operator, Sparse, as_operator
from advdiff.operators.propagator import Propagator
from advdiff.operators.scipy_view import as_scipy
from advdiff.operators.velocity import Velocity

__all__ = [
    "Attention",
    "Generator",
    "LowRank",
    "MatrixFree",
    "Operator",
    "Propagator",
    "Sparse",
    "Velocity",
    "as_operator",
    "as_scipy",
    "divergence",
    "gradient",
    "normalize_adjacency",
]
