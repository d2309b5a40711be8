"""How a table is printed: as aligned text, as HTML in a page, and as Markdown."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

MISSING = "–"
_LEFT, _RIGHT = 'style="text-align: left"', 'style="text-align: right"'


@dataclass(frozen=True)
class Entry:
    """A number as it is printed: ``value ± spread``, and a note (what the paper has) on a line of its own in a page.

    Example:
        >>> Entry("62.40", "0.40", note="[62.51 ± 0.07]", best=True)
        62.40 ± 0.40* [62.51 ± 0.07]
    """

    value: str
    spread: str = ""
    note: str = ""
    best: bool = False

    def __repr__(self) -> str:
        number = self.value + (f" ± {self.spread}" if self.spread else "") + "*" * self.best
        return f"{number} {self.note}".rstrip()


@dataclass(frozen=True, repr=False)
class Layout:
    """A table whose numbers stand on their decimal points; prints as text, and as HTML in a notebook.

    Attributes:
        heads: of all columns, those with the labels of the rows first.
        rows: labels, then entries or words. A label like the one above it is not repeated.
        caption: stands above it.
        labels: how many columns hold labels.
        name: id of the table in the page, for links to it.
        remark: stands below it.

    Example:
        >>> Layout(("model", "RMSE"), [("MLP", Entry("0.50", "0.10")), ("GCN", Entry("10.25", "0.08"))], "An example.")
        An example.
        model  RMSE
        ─────  ────────────
        MLP     0.50 ± 0.10
        GCN    10.25 ± 0.08
    """

    heads: Sequence[str]
    rows: Sequence[Sequence[Entry | str]]
    caption: str = ""
    labels: int = 1
    name: str | None = None
    remark: str = ""

    def __repr__(self) -> str:
        columns = [_aligned(list(column)) for column in zip(*self.rows, strict=True)] or [[] for _ in self.heads]
        for column, texts in enumerate(columns[: self.labels]):
            columns[column] = ["" if self._repeats(row, column) else text for row, text in enumerate(texts)]
        widths = [max(map(len, (head, *texts))) for head, texts in zip(self.heads, columns, strict=True)]
        lines = [self.heads, ["─" * width for width in widths], *zip(*columns, strict=True)]
        made = ["  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)) for line in lines]
        if self._marks_best():
            made.append("* best of its column")
        parts = [*([self.caption] if self.caption else []), *made, *([self.remark] if self.remark else [])]
        return "\n".join(line.rstrip() for line in parts)

    def _repr_html_(self) -> str:
        numeric = [any(isinstance(cell, Entry) for cell in column) for column in zip(*self.rows, strict=True)] or [
            False
        ] * len(self.heads)
        heads = "".join(
            f'<th scope="col" {_RIGHT if right else _LEFT}>{html.escape(head)}</th>'
            for head, right in zip(self.heads, numeric, strict=True)
        )
        shapes = [_Shape.of(column) for column in zip(*self.rows, strict=True)]
        body = ""
        for place, row in enumerate(self.rows):
            cells = ""
            for column, (cell, shape) in enumerate(zip(row, shapes, strict=True)):
                if column >= self.labels:
                    text = shape.html(cell) if isinstance(cell, Entry) else html.escape(cell)
                    cells += f"<td {_RIGHT if numeric[column] else _LEFT}>{text}</td>"
                elif not self._repeats(place, column):
                    span = self._span(place, column)
                    scope = f'scope="rowgroup" rowspan="{span}"' if span > 1 else 'scope="row"'
                    cells += f"<th {scope} {_LEFT}>{html.escape(str(cell))}</th>"
            body += f"<tr>{cells}</tr>"
        words = self.caption + (" Best of each column in bold." if self._marks_best() else "")
        caption = f"<caption>{html.escape(words.strip())}</caption>" if words else ""
        remark = f'<p class="remark">{html.escape(self.remark)}</p>' if self.remark else ""
        name = f' id="{html.escape(self.name)}"' if self.name else ""
        about = html.escape(self.caption or "table")
        return (
            f'<div class="numbers"{name} role="region" aria-label="{about}" tabindex="0" style="overflow-x: auto">'
            f'<table class="table">{caption}<thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{remark}</div>'
        )

    def to_markdown(self) -> str:
        """A pipe table under its caption."""
        lines = [self.heads, ["---"] * len(self.heads), *([str(cell) for cell in row] for row in self.rows)]
        parts = [self.caption, ""] if self.caption else []
        parts += ["| " + " | ".join(line) + " |" for line in lines]
        return "\n".join(parts + (["", self.remark] if self.remark else []))

    def _marks_best(self) -> bool:
        return any(isinstance(cell, Entry) and cell.best for row in self.rows for cell in row)

    def _repeats(self, row: int, column: int) -> bool:
        """Whether a label, but the innermost, says what the one above it says."""
        innermost = column == self.labels - 1
        return row > 0 and not innermost and self.rows[row][: column + 1] == self.rows[row - 1][: column + 1]

    def _span(self, row: int, column: int) -> int:
        """How many rows a label stands for."""
        if column == self.labels - 1:
            return 1
        _, group = next(groupby(self.rows[row:], key=lambda each: tuple(each[: column + 1])))
        return len(list(group))


@dataclass(frozen=True)
class _Shape:
    """The widest parts of a column's numbers, before and after the point, which the others are filled up to."""

    whole: int
    fraction: str
    spread_whole: int
    spread: str
    note: str

    @classmethod
    def of(cls, column: Sequence[Entry | str]) -> _Shape:
        entries = [cell for cell in column if isinstance(cell, Entry)]
        values = [_split(entry.value) for entry in entries]
        spreads = [_split(entry.spread) for entry in entries]
        spread_whole = max((len(whole) for whole, _ in spreads), default=0)
        widest = max((whole.rjust(spread_whole, "0") + rest for whole, rest in spreads if whole), key=len, default="")
        return cls(
            max((len(whole) for whole, _ in values), default=0),
            max((rest for _, rest in values), key=len, default=""),
            spread_whole,
            widest,
            max((entry.note for entry in entries), key=len, default=""),
        )

    def text(self, entry: Entry, marked: bool) -> str:
        """As text in a fixed width; ``marked``: the column leaves room for the sign of the best."""
        whole, rest = _split(entry.value)
        number = whole.rjust(self.whole) + rest.ljust(len(self.fraction))
        if self.spread:
            spread_whole, spread_rest = _split(entry.spread)
            filled = f" ± {spread_whole.rjust(self.spread_whole)}{spread_rest}" if entry.spread else ""
            number += filled.ljust(3 + len(self.spread))
        mark = "*" if entry.best else " " if marked else ""
        return f"{number}{mark} {entry.note}".rstrip()

    def html(self, entry: Entry) -> str:
        """As HTML to be set at the right: what a number lacks behind its point is there, but cannot be seen."""
        _, rest = _split(entry.value)
        spread_whole, _ = _split(entry.spread)
        unseen = self.fraction[len(rest) :]
        value = f"<strong>{entry.value}</strong>" if entry.best else entry.value
        spread = ""
        if entry.spread:
            room = "\u2007" * (self.spread_whole - len(spread_whole))  # as wide as a digit
            spread = f'<span class="spread"> ± {room}{entry.spread}</span>'
        elif self.spread:
            unseen += f" ± {self.spread}"
        note = f"<br><small>{entry.note}{_unseen(self.note[len(entry.note) :])}</small>" if entry.note else ""
        return value + _unseen(unseen) + spread + note


def _unseen(text: str) -> str:
    return f'<span aria-hidden="true" style="visibility: hidden">{text}</span>' if text else ""


def _split(number: str) -> tuple[str, str]:
    """Before the decimal point, and the point with what follows."""
    whole, point, rest = number.partition(".")
    return whole, point + rest


def _aligned(column: list[Entry | str]) -> list[str]:
    shape = _Shape.of(column)
    marked = any(isinstance(cell, Entry) and cell.best for cell in column)
    return [shape.text(cell, marked) if isinstance(cell, Entry) else str(cell) for cell in column]
