"""A table of measured numbers with the paper's beside them, and the ways in which it prints."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import Any

from advdiff.experiments import metrics
from advdiff.experiments.paper import Reported

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

    def __str__(self) -> str:
        if self.mean is None:
            text = "–"
        else:
            text = f"{self.mean:.{self.digits}f}" + ("" if self.std is None else f" ± {self.std:.{self.digits}f}")
        if self.reported is not None:
            text += f" [{self.reported}]{self.mark}"
        return text


@dataclass(frozen=True)
class Line:
    """A model with certain settings."""

    label: str
    model: str
    seeds: int
    cells: dict[str, Cell]
    trouble: str = ""


@dataclass(frozen=True)
class Section:
    """One data set and profile."""

    title: str
    lines: list[Line]
    caveat: str = ""


@dataclass(frozen=True)
class Table:
    """Prints as text, as HTML in a notebook and, by :meth:`to_markdown`, as Markdown.

    Example:
        >>> from advdiff.experiments import Table
        >>> from advdiff.experiments.layout import Cell, Line, Section
        >>> line = Line("mlp", "mlp", seeds=5, cells={"valid": Cell(0.5, 0.1)})
        >>> print(Table("synthetic", "mse", ("valid",), [Section("an example", [line])]).to_markdown())
        synthetic: mse, mean ± standard deviation over seeds.
        <BLANKLINE>
        **an example**
        <BLANKLINE>
        | model | seeds | valid |
        | --- | --- | --- |
        | mlp | 5 | 0.500 ± 0.100 |
    """

    experiment: str
    metric: str
    columns: tuple[str, ...]
    sections: list[Section]

    @property
    def caption(self) -> str:
        names = self.metric.split(" or ")  # several, where the sections are of different tasks
        unit = " or ".join(f"{name}, per cent" if name in metrics.PERCENT else name for name in names)
        text = f"{self.experiment}: {unit}, mean ± standard deviation over seeds."
        if any(cell.reported for section in self.sections for line in section.lines for cell in line.cells.values()):
            text += f" In brackets the paper's; {ABOVE} {BELOW}: more than two standard deviations above or below it."
        return text

    def _grid(self, section: Section) -> list[list[str]]:
        rows = [["model", "seeds", *self.columns]]
        for line in section.lines:
            cells = [str(line.cells[column]) for column in self.columns]
            rows.append([line.label + (f" ({line.trouble})" if line.trouble else ""), str(line.seeds), *cells])
        return rows

    def __str__(self) -> str:
        parts = [self.caption]
        for section in self.sections:
            rows = self._grid(section)
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            text = ["", section.title]
            for row in rows:
                text.append("  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip())
            text.insert(3, "  ".join("─" * width for width in widths))
            parts += text + ([f"({section.caveat})"] if section.caveat else [])
        return "\n".join(parts if self.sections else [f"{self.experiment}: no records"])

    __repr__ = __str__

    def to_markdown(self) -> str:
        """Pipe tables, one per section."""
        parts = [self.caption]
        for section in self.sections:
            head, *rows = self._grid(section)
            lines = [head, ["---"] * len(head), *rows]
            parts += ["", f"**{section.title}**", ""] + ["| " + " | ".join(line) + " |" for line in lines]
            parts += ["", section.caveat] if section.caveat else []
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [f"<p>{html.escape(self.caption)}</p>"]
        for section in self.sections:
            head, *rows = self._grid(section)
            heads = "".join(f"<th>{html.escape(word)}</th>" for word in head)
            body = "".join("<tr>" + "".join(f"<td>{html.escape(word)}</td>" for word in row) + "</tr>" for row in rows)
            caption = html.escape(section.title + (f" ({section.caveat})" if section.caveat else ""))
            parts.append(
                f'<table class="table"><caption>{caption}</caption>'
                f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
            )
        return "".join(parts)

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
                        "trouble": line.trouble,
                        "cells": {column: cell(each) for column, each in line.cells.items()},
                    }
                    for line in section.lines
                ],
            }
            for section in self.sections
        ]
        return {"experiment": self.experiment, "metric": self.metric, "sections": sections}
