"""Numbers and tables as plain text, for results that print themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, isinf, isnan
from textwrap import fill

from calibrant._base.records import Decomposition, Estimate


def number(value: float, digits: int = 4) -> str:
    """A number as text: fixed digits, a sign only if one shows, words for the rest.

    Examples
    --------
    >>> number(0.12345), number(-1e-9), number(float("inf")), number(float("nan"))
    ('0.1235', '0.0000', 'inf', 'n/a')
    """
    if isnan(value):
        return "n/a"
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{round(value, digits) + 0.0:.{digits}f}"


def rest_of_sum(
    total: float, parts: Sequence[float], rest: float, digits: int, factor: float = 1
) -> float:
    """The last part of a sum as the printed numbers leave it, so that they add up.

    Where the others are no finite numbers, it is rounded as it is.

    Examples
    --------
    >>> rest_of_sum(0.12344, [0.01236], 0.11108, 4), round(0.11108, 4)
    (0.111, 0.1111)
    """
    whole, *others, own = (
        round(factor * float(x), digits) for x in (total, *parts, rest)
    )
    found = whole - sum(others)
    return round(found, digits) if isfinite(found) else own


def printed_gap(parts: Decomposition, digits: int = 4, factor: float = 1) -> float:
    """The sharpness gap as every view prints it: what d_CAL leaves of the score.

    Examples
    --------
    >>> import calibrant as cal
    >>> ev = cal.evaluate_pairs([1, 0, 1, 1] * 25, [0.8] * 100)
    >>> printed_gap(ev.decomposition), printed_gap(ev.decomposition, 2, factor=100)
    (0.1894, 18.94)
    """
    known = [parts.calibration]
    return rest_of_sum(parts.total, known, parts.sharpness_gap, digits, factor)


def with_interval(value: Estimate, digits: int = 4) -> str:
    """A number with its interval, if it has a finite one."""
    text = number(value, digits)
    if value.interval is None or not all(isfinite(end) for end in value.interval):
        return text
    low, high = (number(end, digits) for end in value.interval)
    return f"{text} [{low}, {high}]"


def aligned(rows: Iterable[Sequence[str]], indent: str = "  ") -> list[str]:
    """Lines of a table: the first column to the left, the others to the right.

    Examples
    --------
    >>> aligned([("group", "n"), ("a", "120")])
    ['  group    n', '  a      120']
    """
    table = [list(row) for row in rows]
    wide = [max(map(len, column)) for column in zip(*table, strict=True)]
    return [
        indent
        + "  ".join(
            f"{text:<{w}}" if place == 0 else f"{text:>{w}}"
            for place, (text, w) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in table
    ]


def wrapped(text: str) -> str:
    """A sentence on lines of print, those after the first set in."""
    return fill(text, 88, subsequent_indent="  ", break_on_hyphens=False)
