"""Measured numbers with the paper's beside them."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

from advdiff.results import names
from advdiff.results.layout import MISSING, Entry, Layout
from advdiff.results.paper import Reported

ABOVE, BELOW = "▲", "▼"


@dataclass(frozen=True)
class Cell:
    """Mean and standard deviation over seeds, and what the paper has there."""

    mean: float | None
    std: float | None
    reported: Reported | None = None
    digits: int = 3
    comparable: bool = True

    @property
    def mark(self) -> str:
        """▲ or ▼ where the measured mean is more than two standard deviations above or below the reported one.

        The deviation is that of the difference of two runs, √(s² + s²) of measured and reported; one seed has none.
        """
        if self.mean is None or self.reported is None or self.reported.mean is None or not self.comparable:
            return ""
        known = [std for std in (self.std, self.reported.std) if std is not None]
        distance = self.mean - self.reported.mean
        if not known or abs(distance) <= 2 * math.hypot(*known):
            return ""
        return ABOVE if distance > 0 else BELOW

    def entry(self) -> Entry:
        """As it is printed, the paper's in brackets."""
        return Entry(
            MISSING if self.mean is None else f"{self.mean:.{self.digits}f}",
            "" if self.std is None else f"{self.std:.{self.digits}f}",
            "" if self.reported is None else f"[{self.reported}]{self.mark}",
        )


@dataclass(frozen=True)
class Line:
    """A model with certain settings."""

    label: str
    model: str
    seeds: int
    cells: dict[str, Cell]
    not_finished: str = ""

    def title(self, named: bool) -> str:
        """The label, and how many of its runs did not finish; ``named``: with the model's name in prose."""
        words = names.MODELS.get(self.model, self.model) + self.label[len(self.model) :] if named else self.label
        return words + (f" ({self.not_finished})" if self.not_finished else "")


@dataclass(frozen=True)
class Section:
    """One data set and profile."""

    title: str
    lines: list[Line]
    caveat: str = ""


@dataclass(frozen=True, repr=False)
class Table:
    """Prints as text, as HTML in a notebook and, by :meth:`to_markdown`, as Markdown.

    Text has models as they are typed, a page has them as they are called.

    Example:
        >>> from advdiff.results import Table
        >>> from advdiff.results.measured import Cell, Line, Section
        >>> line = Line("mlp", "mlp", seeds=5, cells={"valid": Cell(0.5, 0.1)})
        >>> Table("synthetic", "mse", ("valid",), [Section("an example", [line])])
        synthetic: MSE, mean ± standard deviation over seeds.
        <BLANKLINE>
        an example
        model  seeds  valid
        ─────  ─────  ─────────────
        mlp    5      0.500 ± 0.100
    """

    experiment: str
    metric: str
    columns: tuple[str, ...]
    sections: list[Section]
    count_seeds: bool = True  # a column that says how many seeds a line has

    @property
    def caption(self) -> str:
        """What the numbers are."""
        # several, where the sections are of different tasks
        unit = " or ".join(names.METRICS.get(name, name) for name in self.metric.split(" or "))
        text = f"{self.experiment}: {unit}, mean ± standard deviation over seeds."
        if any(cell.reported for section in self.sections for line in section.lines for cell in line.cells.values()):
            text += f" In brackets the paper's; {ABOVE} {BELOW}: more than two standard deviations above or below it."
        if any(line.label.endswith("(earlier)") for section in self.sections for line in section.lines):
            text += " (earlier): run before this baseline was brought nearer to its paper; see the page Baselines."
        return text

    def layouts(self, named: bool = False) -> list[Layout]:
        """One for each section."""
        made = []
        for section in self.sections:
            heads = ("model", *(["seeds"] if self.count_seeds else []), *self.columns)
            rows: list[tuple[str | Entry, ...]] = [
                (
                    line.title(named),
                    *([Entry(str(line.seeds))] if self.count_seeds else []),
                    *(line.cells[column].entry() for column in self.columns),
                )
                for line in section.lines
            ]
            remark = f"({section.caveat})" if section.caveat else ""
            made.append(Layout(heads, rows, section.title, remark=remark))
        return made

    def __repr__(self) -> str:
        if not self.sections:
            return f"{self.experiment}: no records"
        return "\n\n".join([self.caption, *map(repr, self.layouts())])

    def to_markdown(self) -> str:
        """Pipe tables, one per section."""
        return "\n\n".join([self.caption, *(each.to_markdown() for each in self.layouts())])

    def _repr_html_(self) -> str:
        caption = html.escape(self.caption, quote=False)
        return f"<p>{caption}</p>" + "".join(each._repr_html_() for each in self.layouts(named=True))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""

        def cell(each: Cell) -> dict[str, Any]:
            theirs = None if each.reported is None else [each.reported.mean, each.reported.std]
            return {"mean": each.mean, "std": each.std, "reported": theirs, "mark": each.mark}

        sections = [
            {
                "title": section.title,
                "lines": [
                    {
                        "model": line.model,
                        "label": line.label,
                        "seeds": line.seeds,
                        "not_finished": line.not_finished,
                        "cells": {column: cell(each) for column, each in line.cells.items()},
                    }
                    for line in section.lines
                ],
            }
            for section in self.sections
        ]
        return {"experiment": self.experiment, "metric": self.metric, "sections": sections}
