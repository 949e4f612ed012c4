"""What is checked alike everywhere: choices, numbers, and rows that break a rule."""

from __future__ import annotations

from math import inf, nan
from numbers import Real
from typing import Any, Self

from numpy.typing import NDArray


def check_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Raise one clear error unless `value` is among `choices`."""
    if value not in choices:
        options = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {options}, got {value!r}.")


def check_number(
    value: Any,
    name: str,
    least: float,
    most: float = inf,
    *,
    kind: str = "a number",
    remedy: str = "",
) -> None:
    """Raise one clear error unless `value` is of its kind and in a range."""
    number = as_number(value)
    whole = number % 1 == 0 or "whole" not in kind
    if not (least <= number <= most and whole):
        end = "on" if most == inf else f"to {most:,.10g}"
        rule = f"{name} must be {kind} from {least:g} {end}, got {value!r}."
        raise ValueError(f"{rule} {remedy}".strip())


def check_length(values: NDArray[Any], rows: int, name: str) -> None:
    """Raise one clear error unless there is one value for each row."""
    if values.shape != (rows,):
        raise ValueError(
            f"{name} must have one entry per row: {values.shape} for {rows} rows."
        )


class RowError(ValueError):
    """Rows that break a rule: the first of them, how many there are, and the way out.

    Attributes
    ----------
    rule, remedy : str
        What is asked of every row, and the way out.
    row, what : int, str
        The first row that breaks it, and what that row is or has.
    count, of : int or None
        How many rows break it, among how many; None where they were not counted.
    how : str
        What those rows are, in a word.
    start : int or None
        The row that the rows looked at begin with, if they are part of more.

    Examples
    --------
    >>> error = RowError("y must be in 0..2;", 7, "is 3", 2, 10, "outside")
    >>> str(error)
    'y must be in 0..2; row 7 is 3 (2 of 10 rows are outside).'
    >>> str(error.shifted(100))
    'y must be in 0..2; row 107 is 3 (2 of rows 100 to 109 are outside).'
    """

    def __init__(
        self,
        rule: str,
        row: int,
        what: str,
        count: int | None = None,
        of: int | None = None,
        how: str = "off",
        remedy: str = "",
        start: int | None = None,
    ) -> None:
        super().__init__(rule, row, what, count, of, how, remedy, start)
        self.rule, self.row, self.what, self.remedy = rule, row, what, remedy
        self.count, self.of, self.how, self.start = count, of, how, start

    @classmethod
    def at_first(
        cls,
        rule: str,
        bad: NDArray[Any],
        values: NDArray[Any],
        how: str = "off",
        remedy: str = "",
    ) -> Self:
        """The error of the rows marked bad, which shows the value of the first."""
        row = int(bad.argmax())
        found = f"is {values[row]}", int(bad.sum()), len(bad)
        return cls(rule, row, *found, how, remedy)

    def shifted(self, start: int) -> RowError:
        """The same error where the rows looked at are part of more: from `start` on."""
        rest = self.what, self.count, self.of, self.how, self.remedy
        return RowError(self.rule, self.row + start, *rest, (self.start or 0) + start)

    def __str__(self) -> str:
        said = f"{self.rule} row {self.row} {self.what}"
        if self.count is not None and self.of is not None:
            among, first = f"{self.of} rows", self.start
            if first is not None:
                among = f"rows {first} to {first + self.of - 1}"
            said += f" ({self.count} of {among} are {self.how})"
        return f"{said}. {self.remedy}".strip()


def as_number(value: Any) -> float:
    """Read an option that should be a number; NaN, which fails every test, if not."""
    real = isinstance(value, Real) and not isinstance(value, bool)
    return float(value) if real else nan
