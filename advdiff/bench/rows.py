"""One line of the report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A fast step against a slower one, or a share, or a peak."""

    what: str
    against: str
    nodes: int
    heads: int
    milliseconds: float | None = None
    reference_milliseconds: float | None = None
    figure: float = 0.0
    unit: str = "×"
    bar: float | None = None
    disagreement: float | None = None
    #: What disagrees by so much.
    compared: str = "gradients"

    @property
    def verdict(self) -> str:
        if self.bar is None:
            return ""
        return "met" if (self.figure <= self.bar if self.unit == "GB" else self.figure >= self.bar) else "missed"
