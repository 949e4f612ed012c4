"""One-vs-rest: every class has its own curve, then each row is divided by its sum."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column, Matrix
from calibrant._rows import losses as row_losses
from calibrant._rows.engines import over_ranges
from calibrant.recalibration._rows import Kind, Rows

GROUPS = 8
"""A column at a time would read the rows k times; this many parts of the columns are
read one after the other, so that the copy stays small beside the matrix."""


def probabilities(rows: Rows, part: slice) -> Matrix:
    """Probabilities of some rows, not to be written to."""
    return rows.block(part) if rows.kind == "probs" else rows.probabilities(part)


def columns(rows: Rows) -> Iterator[tuple[int, Matrix]]:
    """Each class with its probabilities in all rows, which the next one overwrites."""
    width = -(-rows.k // GROUPS)
    buffer = np.empty((width, len(rows)), rows.work_type)
    for first in range(0, rows.k, width):
        chosen = slice(first, min(first + width, rows.k))

        def read(part: slice, chosen: slice = chosen) -> None:
            found = probabilities(rows, part)[:, chosen].T
            buffer[: len(found), part] = found

        rows.each(read)
        for c in range(chosen.start, chosen.stop):
            yield c, buffer[c - first]


def each_tall(rows: Rows, work: Callable[[slice], None]) -> None:
    """Call ``work(part)`` for parts of all rows with columns worth a call of their own."""
    tall = max(1, len(rows) // (2 * GROUPS))

    def run(start: int, stop: int) -> None:
        for first in range(start, stop, tall):
            work(slice(first, min(first + tall, stop)))

    over_ranges(run, len(rows), rows.scores.size)


def own_probabilities(rows: Rows) -> NDArray[Any]:
    """The probability that each row gives to its label."""
    own = np.empty(len(rows), rows.work_type)

    def read(part: slice) -> None:
        found = probabilities(rows, part)
        own[part] = found[np.arange(len(found)), rows.y[part]]

    rows.each(read)
    return own


def absent_classes(rows: Rows, mode: str, compat: str | None) -> NDArray[np.intp]:
    """Classes of which there is no row, if each has its own curve."""
    if mode == "top-label" or (compat == "netcal" and rows.k == 2):
        return np.empty(0, np.intp)
    return np.flatnonzero(np.bincount(rows.y, minlength=rows.k) == 0)


def describe_absent(absent: NDArray[np.intp], k: int, compat: str | None) -> str:
    """What becomes of the classes of which there is no row."""
    fate = "become impossible, as in netcal" if compat else "keep their own probability"
    return f"{absent.size} of {k} classes have no row to fit on; they {fate}."


def check_compat(compat: Any, **options: tuple[Any, Any]) -> None:
    """Check that all options, given with the only value netcal knows, have that value."""
    for name, (value, only) in options.items():
        if compat == "netcal" and value != only:
            raise ValueError(
                f"compat='netcal' needs {name}={only!r}, got {value!r}: netcal has "
                "nothing else."
            )


def divide(values: Matrix, probs: Matrix, absent: NDArray[np.intp]) -> None:
    """Turn new values into distributions, in place.

    Absent classes get the probability they had, and so do rows whose values are all 0.
    """
    if absent.size:
        values[:, absent] = probs[:, absent]
    total = values.sum(axis=1, keepdims=True, dtype=np.float64)
    lost = total[:, 0] == 0
    if lost.any():
        values[lost] = probs[lost]
        total[lost] = values[lost].sum(axis=1, keepdims=True, dtype=np.float64)
    values /= total.astype(values.dtype)


def divide_as_netcal(values: Matrix) -> None:
    """The same as netcal does it; where it gives NaN, all classes become as likely.

    Of two classes it recalibrates the second alone.
    """
    if values.shape[1] == 2:
        np.subtract(1, values[:, 1], out=values[:, 0])
        return
    total = values.sum(axis=1, keepdims=True)
    lost = total[:, 0] == 0
    if lost.any():
        values[lost] = 1
        total[lost] = values.shape[1]
    values /= total
    values.clip(0, 1, out=values)


# -- Log-odds of each class against all others, exact where probabilities round to 0 or 1.


class Odds(NamedTuple):
    """What the log-odds of any class follow from: one number per row each.

    `best` is the largest entry's column, `top` the entry, `rest` the sum of the others
    (relative to it, for logits), and `log_odds` those of the best class.
    """

    best: NDArray[np.intp]
    top: Column
    rest: Column
    log_odds: Column

    def part(self, part: slice) -> Odds:
        """The same of some rows."""
        return Odds(
            self.best[part], self.top[part], self.rest[part], self.log_odds[part]
        )


def fitted_columns(k: int) -> NDArray[np.intp]:
    """Classes with a map of their own: of two, class 0 is what class 1 is not."""
    return np.arange(1, 2) if k == 2 else np.arange(k)


def read_odds(rows: Rows, part: slice) -> Odds:
    """Read some rows."""
    block = rows.block(part).astype(np.float64)
    others = np.empty_like(block)
    with np.errstate(all="ignore"):  # rows.block has checked; log 0 is meant
        if rows.kind == "logits":
            sums = row_losses.sums_of_logits(block, others)
        else:
            sums = row_losses.sums_of_probs(block, others, inf)
    return Odds(sums.best, sums.top, sums.rest, sums.log_odds)


def log_odds(
    scores: Matrix, kind: Kind, odds: Odds, columns: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Log-odds of some classes against all others; they may be infinite.

    The sum of the others is never a difference of near numbers: for the best class it is
    known, and for any other it holds the best class.
    """
    z = scores[:, columns].astype(np.float64)
    with np.errstate(divide="ignore"):
        if kind == "logits":
            z -= odds.top[:, None]
            others = odds.rest[:, None] - np.exp(z)
            z -= np.log1p(np.maximum(others, 0, out=others), out=others)
        else:
            others = (odds.top + odds.rest)[:, None] - z
            z = np.log(z) - np.log(others)
    return np.where(odds.best[:, None] == columns, odds.log_odds[:, None], z)
