"""TODO."""

from __future__ import annotations

from math import nan
from numbers import Real
from typing import Any


def check_choice(value: Any, name: str, choices: tuple[Any, ...]) -> None:
    """Raise one clear error unless `value` is among `choices`."""
    if value not in choices:
        options = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {options}, got {value!r}.")


def as_number(value: Any) -> float:
    """Read an option that should be a number; NaN, which fails every test, if not.

    Examples
    --------
    >>> as_number(2), as_number("2"), as_number(True)
    (2.0, nan, nan)
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return nan
    return float(value)
