"""What isotonic regression needs of an n x k matrix, in one pass and without sorting.

The rows of a class put marks on its axis of probabilities. Between two marks there are
only misses, which all end up on one level: weight, least and greatest tell all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix
from acumen.compiled.math_numba import exact, kernel, where
from acumen.compiled.threads import over_ranges
from acumen.recalibration import onevsrest
from acumen.recalibration.rows import Rows

if TYPE_CHECKING:
    from acumen.recalibration.monotone import Curves


class Marks(NamedTuple):
    """Distinct probabilities of their own label, by class and in order, with weights.

    Class c has those from ``starts[c]`` to ``starts[c + 1]``. The first of them is
    ``least[c]``, infinite if there is none.
    """

    probs: Matrix
    weight: Column
    starts: NDArray[np.intp]
    least: Matrix


class Stretches(NamedTuple):
    """Weight, least and greatest probability of the rows below, at and between marks.

    Class c with m marks has 2 m + 1 stretches from ``2 * starts[c] + c`` on; every
    other one is a mark.
    """

    weight: Column
    low: Matrix
    high: Matrix


def gather(rows: Rows) -> tuple[Stretches, Column, NDArray[np.intp]]:
    """Stretches of all classes, the hits on each, and where the classes begin."""
    marks = _find_marks(rows)
    found = over_ranges(
        lambda a, b: _gather_range(rows, marks, a, b), len(rows), rows.scores.size
    )
    weight, low, high = zip(*found, strict=True)
    stretches = Stretches(sum(weight), np.min(low, axis=0), np.max(high, axis=0))
    starts = 2 * marks.starts + np.arange(rows.k + 1)
    hits = np.zeros(starts[-1])
    classes = np.repeat(np.arange(rows.k), np.diff(marks.starts))
    hits[2 * np.arange(len(classes)) + classes + 1] = marks.weight
    return stretches, hits, starts


def _find_marks(rows: Rows) -> Marks:
    own = onevsrest.own_probabilities(rows)
    order = np.lexsort((own, rows.y))
    own, y = own[order], rows.y[order]
    begins = np.concatenate([[True], (own[1:] != own[:-1]) | (y[1:] != y[:-1])])
    first = np.flatnonzero(begins)
    probs, weight = own[first], onevsrest.weight_of_rows(rows)[order]
    starts = np.searchsorted(y[first], np.arange(rows.k + 1))
    least = np.append(probs, np.inf).astype(probs.dtype)[starts[:-1]]
    least[np.diff(starts) == 0] = np.inf
    return Marks(probs, np.add.reduceat(weight, first), starts, least)


def _gather_range(rows: Rows, marks: Marks, start: int, stop: int) -> Stretches:
    k, size = rows.k, 2 * len(marks.probs) + rows.k
    below, all_of_it = _nothing(k, rows.work_type), _nothing(size, rows.work_type)
    for part in rows.parts(start, stop):
        probs = _readable(onevsrest.probabilities(rows, part))
        weight = np.ones(len(probs)) if rows.weight is None else rows.weight[part]
        add_rows(
            probs, weight, marks.starts, marks.probs, marks.least, below, all_of_it
        )
    first = 2 * marks.starts[:-1] + np.arange(k)
    below.low[below.high < 0] = np.inf  # it is the least of all, if nothing is below
    for found, sums in zip(below, all_of_it, strict=True):
        sums[first] = found
    return all_of_it


def _nothing(size: int, dtype: np.dtype[np.floating]) -> Stretches:
    low = np.full(size, np.inf, dtype)
    return Stretches(np.zeros(size), low, -low)


def _readable(probs: Matrix) -> Matrix:
    """The same, read-only as some inputs are: one type to compile."""
    probs = probs.view(np.ndarray)
    probs.flags.writeable = False
    return probs


@kernel
def add_rows(probs, weight, starts, marks, least, below, stretches):
    """Add rows to their stretches, but most are below all marks: those in one go."""
    for i in range(len(probs)):
        row, w = probs[i], weight[i]
        _add_below(row, w, least, below.weight, below.low, below.high)
        for c in range(len(row)):
            p = row[c]
            if p >= least[c]:
                at = _first_not_below(p, marks, starts[c], starts[c + 1])
                tied = at < starts[c + 1] and marks[at] == p
                stretch = 2 * at + c + tied
                stretches.weight[stretch] += w
                stretches.low[stretch] = min(stretches.low[stretch], p)
                stretches.high[stretch] = max(stretches.high[stretch], p)


@exact
def _add_below(row, w, least, weight, low, high):
    for c in range(len(row)):
        p = row[c]
        below = p < least[c]
        weight[c] += where(below, w, 0.0)
        low[c] = where(p < low[c], p, low[c])
        high[c] = where(below & (p > high[c]), p, high[c])


@exact
def _first_not_below(p, marks, start, stop):
    """Binary search without a branch to guess."""
    left = stop - start
    while left > 0:
        half = (left + 1) >> 1
        start += half if marks[start + half - 1] < p else 0
        left -= half
    return start


def evaluate(curves: Curves, flat: Matrix, probs: Matrix, out: Matrix) -> None:
    """As `Curves.evaluate`; `flat` says up to where each class has its least value."""
    known = curves.starts, curves.segments, curves.least, flat
    evaluate_rows(_readable(probs), *known, out)


@kernel
def evaluate_rows(probs, starts, segments, least, flat, out):
    """Nearly all probabilities get the least value of their class."""
    for i in range(len(probs)):
        row, new = probs[i], out[i]
        for c in range(len(row)):
            new[c] = least[c]
        for c in range(len(row)):
            if row[c] > flat[c]:
                x = np.float64(row[c])
                at = _last_not_above(x, segments, starts[c], starts[c + 1])
                rise = segments[at, 2] * (x - segments[at, 0])
                new[c] = min(rise + segments[at, 1], segments[at, 3])


@exact
def _last_not_above(x, segments, start, stop):
    """Binary search as above; the first segment of the class begins below x."""
    left = stop - start - 1
    while left > 0:
        half = (left + 1) >> 1
        start += half if segments[start + half, 0] <= x else 0
        left -= half
    return start
