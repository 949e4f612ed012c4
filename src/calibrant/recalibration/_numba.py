"""Numba twins of what recalibrators do with every number of the matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from calibrant._inputs.arrays import Column, Index, Matrix
from calibrant._rows.engines import over_ranges
from calibrant._rows.numba_math import (
    exact,
    exp,
    inlined,
    kernel,
    larger,
    reordered,
    where,
)
from calibrant.recalibration import _modes as modes
from calibrant.recalibration._rows import Rows

if TYPE_CHECKING:
    from calibrant.recalibration._isotonic import Curves


def replace(
    probs: Matrix, edges: Column, values: Matrix, absent: Index, out: Matrix
) -> None:
    """As `look_up`, then `modes.divide`, in one go; `values` by bin, then class."""
    probs = _readable(probs)
    replace_rows(probs, probs.dtype.type(edges[1]), edges, values, absent, out)


@kernel
def replace_rows(probs, near, edges, values, absent, out):
    """Nearly all probabilities are in the first bin; `near` is its rounded edge."""
    for i in range(len(probs)):
        row, new = probs[i], out[i]
        _copy(values[0], new)
        for j in range(len(row)):
            if row[j] >= near:
                new[j] = values[_place(np.float64(row[j]), edges), j]
        for c in absent:
            new[c] = row[c]
        total = _sum(new)
        if total == 0:
            _copy(row, new)
            total = _sum(new)
        _divide(new, new.dtype.type(total))


@exact
def _place(p, edges):
    """The bin (a, b] of equal width; a product rounds to one too far at most."""
    last = len(edges) - 2
    at = min(int(p * (last + 1)), last)
    if at > 0 and p <= edges[at]:
        return at - 1
    if at < last and p > edges[at + 1]:
        return at + 1
    return at


@exact
def _copy(source, to):  # much faster than to[:] = source
    for j in range(len(to)):
        to[j] = source[j]


@reordered
def _sum(row):
    total = 0.0
    for j in range(len(row)):
        total += row[j]
    return total


@exact
def _divide(row, total):
    for j in range(len(row)):
        row[j] /= total


# Isotonic regression in one pass, without sorting: the rows of a class put marks on its
# axis of probabilities. Between two marks there are only misses, which all end up on one
# level: weight, least and greatest tell all of them.


class Marks(NamedTuple):
    """Distinct probabilities of their own label, by class and in order, with weights.

    Class c has those from ``starts[c]`` to ``starts[c + 1]``. The first of them is
    ``least[c]``, infinite if there is none.
    """

    probs: Matrix
    weight: Column
    starts: Index
    least: Matrix


class Stretches(NamedTuple):
    """Weight, least and greatest probability of the rows below, at and between marks.

    Class c with m marks has 2 m + 1 stretches from ``2 * starts[c] + c`` on; every
    other one is a mark.
    """

    weight: Column
    low: Matrix
    high: Matrix


def gather(rows: Rows) -> tuple[Stretches, Column, Index]:
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
    own = np.empty(len(rows), rows.work_type)

    def read(part: slice) -> None:
        found = modes.probabilities(rows, part)
        own[part] = found[np.arange(len(found)), rows.y[part]]

    rows.each(read)
    order = np.lexsort((own, rows.y))
    own, y = own[order], rows.y[order]
    begins = np.concatenate([[True], (own[1:] != own[:-1]) | (y[1:] != y[:-1])])
    first = np.flatnonzero(begins)
    probs, weight = own[first], rows.weight_of_each[order]
    starts = np.searchsorted(y[first], np.arange(rows.k + 1))
    least = np.append(probs, np.inf).astype(probs.dtype)[starts[:-1]]
    least[np.diff(starts) == 0] = np.inf
    return Marks(probs, np.add.reduceat(weight, first), starts, least)


def _gather_range(rows: Rows, marks: Marks, start: int, stop: int) -> Stretches:
    k, size = rows.k, 2 * len(marks.probs) + rows.k
    below, all_of_it = _nothing(k, rows.work_type), _nothing(size, rows.work_type)
    for part in rows.parts(start, stop):
        probs = _readable(modes.probabilities(rows, part))
        weight = np.broadcast_to(rows.weights(part), len(probs)).copy()
        add_to_stretches(
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
def add_to_stretches(probs, weight, starts, marks, least, below, stretches):
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


CHUNK = 4096  # entries summed in the precision of the scores; their sums are doubles
COPIED_BYTES = 1 << 18


def add_up(rows: Rows, beta: float, start: int, stop: int) -> Column:
    """Sums over rows of log loss, slope, curvature, weight, and impossible labels.

    The twin of `LogLoss`: exponentials and three sums of a row in one go.
    """
    scores, dtype = rows.scores, rows.work_type
    ready = scores.dtype == dtype and scores.flags.c_contiguous and scores.flags.aligned
    size = stop - start if ready else max(1, COPIED_BYTES // (rows.k * dtype.itemsize))
    total = np.zeros(5)
    for first in range(start, stop, size):
        part = slice(first, min(first + size, stop))
        block = _readable(np.require(scores[part], dtype, ["C", "A"]))
        weight = np.empty(0) if rows.weight is None else rows.weight[part]
        add_losses(block, rows.y[part], weight, beta, total)
    return total


@kernel
def add_losses(scores, labels, weight, beta, total):
    """Add the sums of these rows; no weights is weight 1."""
    far = -1e30
    for i in range(len(scores)):
        row = scores[i]
        top = row[0]
        for j in range(len(row)):
            top = larger(top, row[j])
        s, s1, s2 = _sums(row, top, row.dtype.type(beta))
        own = max(np.float64(row[labels[i]]) - np.float64(top), far)
        w = 1.0 if len(weight) == 0 else weight[i]
        if own == far:
            total[4] += 1.0
            w = 0.0
        mean = s1 / s
        total[0] += w * (np.log(s) - beta * own)
        total[1] += w * (mean - own)
        total[2] += w * (s2 / s - mean * mean)
        total[3] += w


@inlined
def _sums(row, top, beta):
    s, s1, s2 = 0.0, 0.0, 0.0
    for first in range(0, len(row), CHUNK):
        a, b, c = _sums_of_part(row[first : first + CHUNK], top, beta)
        s += a
        s1 += b
        s2 += c
    return s, s1, s2


@reordered
def _sums_of_part(part, top, beta):
    """Sums of e, e d and e d^2 with d = z - top and e = exp(beta d); NaN stays NaN."""
    zero, far = part.dtype.type(0), part.dtype.type(-1e30)
    s, s1, s2 = zero, zero, zero
    for j in range(len(part)):
        d = part[j] - top
        d = where(d < far, far, d)
        e = exp(beta * d)
        ed = e * d
        s += e
        s1 += ed
        s2 += ed * d
    return s, s1, s2
