"""The two singular points of θI + L, by name."""

from __future__ import annotations


class SingularVelocityError(ValueError):
    """(1 + θ)I − βV itself is singular or indefinite: θ ≤ β − 1."""


class SingularGeneratorError(ValueError):
    """θI + L is singular or indefinite: the Perron eigenvalue of P = C + βV has reached 1 + θ."""


class NearSingularWarning(UserWarning):
    """θI + L can be inverted, but so badly conditioned that the result is mostly its smallest eigenvector."""
