"""The scalar approximation e^{-x} ≈ α₀ − Σ α_i/(x + θ_i) on [0, ∞) (theory §10)."""

from __future__ import annotations

import numpy as np
import pytest

from advdiff.propagation.methods.caratheodory_fejer import MAX_ORDER, partial_fractions

X = np.concatenate([np.linspace(0.0, 30.0, 30001), np.geomspace(30.0, 1e4, 5000)])
TABLE = {1: 6.8e-2, 2: 7.4e-3, 3: 8.0e-4, 4: 8.7e-5, 6: 1.0e-6, 8: 1.2e-8, 10: 1.4e-10, 14: 4.9e-14}


def expand(order: int) -> tuple[float, np.ndarray, np.ndarray]:
    """α₀, θ, α with the conjugates written out."""
    constant, poles, residues = partial_fractions(order)
    paired = poles.imag > 0
    return (
        constant,
        np.concatenate([poles, poles[paired].conj()]),
        np.concatenate([residues, residues[paired].conj()]),
    )


def largest_error(order: int, constant: bool = True) -> float:
    alpha0, theta, alpha = expand(order)
    value = (alpha0 if constant else 0.0) - (alpha / (X[:, None] + theta)).sum(1)
    assert np.abs(value.imag).max() <= 1e-12
    return float(np.abs(value.real - np.exp(-X)).max())


@pytest.mark.parametrize("order", TABLE)
def test_errors_of_the_table(order: int) -> None:
    assert largest_error(order) <= 1.1 * TABLE[order]


def test_the_error_falls_by_halphens_constant_per_order() -> None:
    orders = np.arange(2, 12)
    rate = np.exp(-np.polyfit(orders, np.log([largest_error(int(r)) for r in orders]), 1)[0])
    assert rate == pytest.approx(9.28903, rel=0.01)


@pytest.mark.parametrize("order", range(1, 12))
def test_without_the_constant_the_error_doubles(order: int) -> None:
    """The paper's formula leaves α₀ out."""
    assert largest_error(order, constant=False) / largest_error(order) == pytest.approx(2.0, rel=0.03)


@pytest.mark.parametrize("order", range(1, MAX_ORDER + 1))
def test_poles_come_in_conjugate_pairs_with_one_real_pole_for_odd_orders(order: int) -> None:
    fractions = partial_fractions(order)
    assert int((fractions.poles.imag == 0).sum()) == order % 2
    assert len(expand(order)[1]) == order
    assert np.all(fractions.poles.imag >= 0)
    # No pole on the half-line itself: x + θ ≠ 0 for x ≥ 0.
    assert np.all((fractions.poles.imag > 0) | (fractions.poles.real > 0))


def test_order_two_by_its_numbers() -> None:
    fractions = partial_fractions(2)
    assert fractions.poles == pytest.approx([0.58505 + 1.18585j], abs=1e-5)
    assert fractions.residues == pytest.approx([0.16915 - 0.8098j], abs=1e-4)
    assert abs(fractions.constant) == pytest.approx(largest_error(2), rel=0.01)


def test_the_function_is_the_sum() -> None:
    for order in (3, 8):
        alpha0, theta, alpha = expand(order)
        points = np.array([0.0, 0.7, 20.0, 1.0 + 2.0j])
        expected = alpha0 - (alpha / (points[:, None] + theta)).sum(1)
        assert partial_fractions(order)(points) == pytest.approx(expected, abs=1e-13)
        assert partial_fractions(order)(points[:3].real) == pytest.approx(expected[:3].real, abs=1e-13)


def test_error_on_a_disc_is_an_upper_bound_inside_it() -> None:
    rng = np.random.default_rng(0)
    for order in (6, 14):
        fractions = partial_fractions(order)
        inside = 2.0 + 2.0 * np.sqrt(rng.random(500)) * np.exp(2j * np.pi * rng.random(500))
        errors = np.abs(fractions(inside) - np.exp(-inside))
        assert errors.max() <= fractions.error_on_disc(2.0, 2.0) * 1.001 + 1e-15


@pytest.mark.parametrize("order", [0, 15, -1])
def test_other_orders_are_refused(order: int) -> None:
    with pytest.raises(ValueError, match=f"order is {order}; .*orders 1 to 14"):
        partial_fractions(order)
