r"""What a product with P = C + βV costs in communication: the formula, beside which ``Traffic`` puts the count.

For H heads of width F and attention factors with d + 1 columns, a rank that has s rows to send (each counted once for
every rank that needs it) gives away, per product,

.. math::
    \underbrace{s\, H F}_{\text{halo}} + \underbrace{H (d + 1) F}_{\mathbf W^\top \mathbf Z}
    + \underbrace{H F}_{\text{mean of } \mathbf Z}

numbers. The mean is taken out of Z before the moments, for the sake of single precision, at the price of one more row.
Where the heads still share Z, as in the first product of the series, they also share its rows and its mean: s F and F.
Only the first term grows with the graph.
"""

from __future__ import annotations

from typing import NamedTuple


class Cost(NamedTuple):
    """Bytes that one rank gives to one product: rows for others, and its part of the sums."""

    exchanged: int
    reduced: int


def cost_of_product(
    rows: int, heads: int, width: int, rank: int | None = None, itemsize: int = 4, shared: bool = False
) -> Cost:
    """Bytes of one product.

    Args:
        rows: s, the rows that this rank sends.
        heads: H.
        width: F.
        rank: columns of the attention's factors; default: F + 1, as in the model.
        itemsize: bytes of a number.
        shared: do the heads share Z?

    Example:
        >>> cost_of_product(rows=1000, heads=2, width=64)
        Cost(exchanged=512000, reduced=33792)
    """
    rank = width + 1 if rank is None else rank
    of_state = (1 if shared else heads) * width
    return Cost(rows * of_state * itemsize, (heads * rank * width + of_state) * itemsize)


def cost_of_series(rows: int, heads: int, width: int, order: int, itemsize: int = 4) -> Cost:
    """Bytes of the K products of the series' forward pass, of which the first one shares Z."""
    products = [cost_of_product(rows, heads, width, None, itemsize, shared=k == 0) for k in range(order)]
    return Cost(sum(p.exchanged for p in products), sum(p.reduced for p in products))
