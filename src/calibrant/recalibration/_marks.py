"""Isotonic regression of every class in one pass over the rows, without sorting them.

The rows of a class put marks on its axis of probabilities. Between two marks there are only
misses, which all end up on one level: weight, least and greatest tell all of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from calibrant._inputs.arrays import Column, Index, Matrix
from calibrant._rows import compiled
from calibrant._rows.engines import PARTS, over_ranges
from calibrant.recalibration import _modes as modes
from calibrant.recalibration._rows import Rows


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

    def work(start: int, stop: int) -> Stretches:
        return _gather_range(rows, marks, start, stop)

    found = over_ranges(work, len(rows), rows.scores.size, PARTS)
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
    known = compiled.ready(marks.starts, np.int64), marks.probs, marks.least
    for part in rows.parts(start, stop):
        probs = modes.probabilities(rows, part)
        weight = np.broadcast_to(rows.weights(part), len(probs)).astype(np.float64)
        compiled.loops.stretches(k, probs, weight, *known, *below, *all_of_it)
    first = 2 * marks.starts[:-1] + np.arange(k)
    below.low[below.high < 0] = np.inf  # it is the least of all, if nothing is below
    for found, sums in zip(below, all_of_it, strict=True):
        sums[first] = found
    return all_of_it


def _nothing(size: int, dtype: np.dtype[np.floating]) -> Stretches:
    low = np.full(size, np.inf, dtype)
    return Stretches(np.zeros(size), low, -low)
