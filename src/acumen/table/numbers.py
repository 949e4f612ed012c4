"""Numbers become cells: scaled, rounded, and the best of each column marked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite

from acumen.comparison import Comparison, Measure, is_trivial
from acumen.results import Estimate
from acumen.table.cells import Cell, fixed, printed
from acumen.table.columns import Column


@dataclass(frozen=True, slots=True)
class Style:
    """How numbers are written: x100 or plain, digits, intervals, best marked or not."""

    percent: bool = True
    digits: int = 2
    intervals: bool = False
    best: bool = True

    @property
    def factor(self) -> int:
        """What scores and errors are multiplied by."""
        return 100 if self.percent else 1

    def checked(self) -> Style:
        """Itself, or one clear error."""
        if type(self.digits) is not int or not 0 <= self.digits <= 15:
            raise ValueError(
                f"digits must be a whole number from 0 to 15, got {self.digits!r}."
            )
        return self


def cells_of(column: Column, comparison: Comparison, style: Style) -> list[Cell]:
    """The cells of one column, marks included."""
    cells = [_cell(column, value, style) for value in column.values(comparison)]
    if column.measure is None:
        return cells
    trivial = [column.measure.calibration and is_trivial(ev) for ev in comparison]
    return _marked(cells, column.measure, trivial, style)


def _cell(column: Column, value: Estimate, style: Style) -> Cell:
    low, high = value.interval or (float("nan"), float("nan"))
    interval = ""
    if style.intervals and isfinite(low) and isfinite(high):
        interval = f"[{_text(column, low, style)}, {_text(column, high, style)}]"
    return Cell(float(value), _text(column, value, style), interval, low, high)


def _text(column: Column, value: float, style: Style) -> str:
    if column.is_share:
        signed = column.key == "accuracy_change"
        return fixed(style.factor * value, style.digits, signed=signed)
    if column.key == "fit_seconds":
        return fixed(value, 2)
    return f"{value:,.10g}" if isfinite(value) else fixed(value, 0)  # a count of rows


def _marked(
    cells: list[Cell], measure: Measure, trivial: list[bool], style: Style
) -> list[Cell]:
    """Mark what is best as printed, so that equal texts get equal marks.

    A trivial model is never best; where it would be, it is marked as trivial instead.
    """
    places = [measure.place(printed(cell.text)) for cell in cells]
    honest = [p for p, flag in zip(places, trivial, strict=True) if not flag]
    least = min(honest, default=inf)
    several = style.best and len(cells) > 1
    return [
        replace(
            cell,
            best=several and not flag and place == least < inf,
            trivial=flag and place <= least and place < inf,
        )
        for cell, place, flag in zip(cells, places, trivial, strict=True)
    ]
