"""What a table prints, as frozen records: every format writes the same cells."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from math import inf, isinf, isnan, nan

MISSING, INFINITE, DAGGER = "–", "∞", "†"


@dataclass(frozen=True, slots=True)
class Heading:
    """A column: its name for programs, its label for people, and a short one."""

    key: str
    label: str
    short: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A number as measured and as printed.

    `interval` is the printed interval, if one was asked for and exists; `low` and `high`
    are its ends as measured. `trivial` marks a calibration error that is as low as the
    best or lower, but of a model with (nearly) one confidence for all rows.
    """

    value: float
    text: str
    interval: str = ""
    low: float = nan
    high: float = nan
    best: bool = False
    trivial: bool = False

    @property
    def mark(self) -> str:
        """The sign after the number."""
        return DAGGER if self.trivial else ""


@dataclass(frozen=True, slots=True)
class Row:
    """A model and its cells, in the order of the headings."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence below the table; a finding is about a model, not about conventions."""

    text: str
    mark: str = ""
    finding: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Headings, rows and notes, and what to call the whole."""

    headings: tuple[Heading, ...]
    rows: tuple[Row, ...]
    notes: tuple[Note, ...] = ()
    caption: str = ""
    label: str = ""
    intervals: bool = False

    @property
    def has_best(self) -> bool:
        """Whether any cell is marked as the best of its column."""
        return any(cell.best for row in self.rows for cell in row.cells)


def fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """A number with fixed digits; no sign on zero, signs for what is no number.

    Examples
    --------
    >>> fixed(1.005, 1), fixed(-0.001, 2), fixed(0.5, 1, signed=True), fixed(inf, 2)
    ('1.0', '0.00', '+0.5', '∞')
    """
    if isnan(value):
        return MISSING
    if isinf(value):
        return INFINITE if value > 0 else f"-{INFINITE}"
    text = f"{value:z.{digits}f}"
    return f"+{text}" if signed and float(text) > 0 else text


def printed(text: str) -> float:
    """The number that a cell shows.

    Examples
    --------
    >>> printed("12.30"), printed("+0.5"), printed("-∞"), printed("–"), printed("1,234")
    (12.3, 0.5, -inf, nan, 1234.0)
    """
    words = {MISSING: nan, INFINITE: inf, f"-{INFINITE}": -inf}
    return words[text] if text in words else float(text.replace(",", ""))


def one_line(text: str) -> str:
    r"""Text that stays on its line: control and direction signs become spaces.

    A name must not be able to end a row or to move the cursor of a terminal.

    Examples
    --------
    >>> one_line("two\nlines\x1b[2J")
    'two lines [2J'
    """
    kept = [
        " " if unicodedata.category(sign) in ("Cc", "Zl", "Zp", "Cs") else sign
        for sign in text
        if sign not in _DIRECTIONS
    ]
    return "".join(kept).strip()


_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Signs that turn the direction of what follows, so that it reads as other text."""
