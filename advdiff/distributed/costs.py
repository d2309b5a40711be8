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

import math
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


def most_rows_at_random(nodes: float, edges: float, parts: int) -> float:
    r"""At most so many rows does a rank send on average, if each node goes to a random rank.

    A node whose edges lead to k others is needed by each of the P − 1 other ranks with probability
    1 − (1 − 1/P)^k, which is concave in k, so that the mean over the nodes is at most its value at the mean degree.

    Example:
        >>> round(most_rows_at_random(nodes=1000, edges=10_000, parts=2))
        500
    """
    return nodes / parts * (parts - 1) * -math.expm1(edges / nodes * math.log1p(-1 / parts)) if parts > 1 else 0.0


class Machine(NamedTuple):
    """What was measured of one process: memory and time that a step of training takes.

    Attributes:
        process: bytes without a graph.
        rows: matrices [n, width] that a step holds at its peak.
        edge: bytes per edge.
        seconds_of_row, seconds_of_edge: of a step, per node and per edge.
        speed: bytes per second between two ranks.
        seconds_of_sum: of one small all-reduce.
    """

    process: float
    rows: float
    edge: float
    seconds_of_row: float
    seconds_of_edge: float
    speed: float
    seconds_of_sum: float


class Step(NamedTuple):
    """What a step of training takes of each rank: bytes held, bytes sent, seconds of computing and of sending."""

    memory: float
    sent: float
    computing: float
    sending: float


def predict_step(
    nodes: float, edges: float, parts: int, rows: float, machine: Machine, *, channels: int, width: int, order: int
) -> Step:
    """A training step of the series with one head on P ranks, each on a machine of its own.

    Forward and backward make K products each. Nothing is said to overlap, so the seconds add up at worst. Two sums go
    with a product, in rounds of which there are log₂ P.

    Args:
        nodes, edges: of the whole graph; every edge in both directions.
        parts: P.
        rows: that a rank sends per product.
        machine: measured where the hidden width and the order were the same.
        channels: of the features.
        width: F, hidden channels.
        order: K.
    """
    n, e = nodes / parts, edges / parts
    sent, reduced = (2 * order * each for each in cost_of_product(1, 1, width))
    memory = machine.process + 4 * n * (channels + machine.rows * width) + machine.edge * e + 2 * rows * 4 * width
    computing = machine.seconds_of_row * n + machine.seconds_of_edge * e
    sums = 4 * order * machine.seconds_of_sum * math.log2(parts)
    return Step(memory, sent * rows + reduced, computing, sent * rows / machine.speed + sums)
