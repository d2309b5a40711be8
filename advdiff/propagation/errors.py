"""What can go wrong, by name: the two singular points of θI + L, overflow, and digits that cannot be had."""

from __future__ import annotations


class SingularVelocityError(ValueError):
    """(1 + θ)I − βV itself is singular or indefinite: θ ≤ β − 1.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> advdiff.resolvent(advdiff.Generator(None, V, beta=3.0), torch.ones(2), theta=1.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        advdiff.propagation.errors.SingularVelocityError: ...
    """


class SingularGeneratorError(ValueError):
    """θI + L is singular or indefinite: the Perron eigenvalue of P = C + βV has reached 1 + θ.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> L = advdiff.Generator(advdiff.Attention(torch.ones(2, 1), torch.ones(2, 1)), V, beta=0.5)
        >>> advdiff.resolvent(L, torch.ones(2), theta=0.5)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        advdiff.propagation.errors.SingularGeneratorError: ...
    """


class NearSingularWarning(UserWarning):
    """θI + L can be inverted, but so badly conditioned that the result is mostly its smallest eigenvector.

    Example:
        >>> import warnings, torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2, dtype=torch.float64)
        >>> ones = torch.ones(2, 1, dtype=torch.float64)
        >>> L = advdiff.Generator(advdiff.Attention(ones, ones), V, beta=0.5)
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     Y = advdiff.resolvent(L, ones, theta=0.5001)  # just above θ* = β
        >>> caught[0].category.__name__
        'NearSingularWarning'
    """


class FlowOverflowError(ValueError):
    """e^{-LT}Z, or its gradient, is larger than the largest number of its precision.

    Example:
        >>> import torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> advdiff.exponential(advdiff.Generator(None, V, beta=3.0), torch.ones(2), 100.0)  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        advdiff.propagation.errors.FlowOverflowError: ...
    """


class AccuracyWarning(UserWarning):
    """The relative error of a result, or of a gradient, may exceed ten times the tolerance that was asked for.

    Example:
        >>> import warnings, torch, advdiff
        >>> V = advdiff.normalize_adjacency(torch.tensor([[0, 1], [1, 0]]), 2)
        >>> with warnings.catch_warnings(record=True) as caught:  # e^{-500}, less than the least number of float32
        ...     Y = advdiff.exponential(advdiff.Generator(None, V, beta=0.0), torch.ones(2), 500.0)
        >>> caught[0].category.__name__
        'AccuracyWarning'
    """
