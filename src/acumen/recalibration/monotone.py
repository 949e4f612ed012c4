"""Isotonic regression of many classes: increasing curves through the shares of hits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix
from acumen.recalibration import onevsrest
from acumen.recalibration.rows import Rows

CLOSE = 1e-15
"""Scores closer than this are one to scikit-learn, and so to netcal."""

STEEPEST = np.finfo(np.float64).max

Curve = tuple[Column, Column]
"""Probabilities and values at the knots of one class."""

Begins = Callable[[Column], NDArray[np.bool_]]
"""Says which of sorted probabilities begin a new value, not tied with the last."""


class Curves:
    """Increasing curves, one per class, linear between knots and constant beyond them.

    Class c has the knots from ``starts[c]`` to ``starts[c + 1]``; without any, it
    gives 0.
    """

    def __init__(self, knots: Column, values: Column, starts: NDArray[np.intp]) -> None:
        self.knots = knots
        self.values = values
        self.starts = starts

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> Curves:
        """Put the curves of all classes together."""
        knots, values = (np.concatenate(part) for part in zip(*curves, strict=True))
        starts = np.cumsum([0, *(len(x) for x, _ in curves)], dtype=np.intp)
        return cls(knots, values, starts)

    @cached_property
    def segments(self) -> NDArray[np.float64]:
        """From each knot on: the knot, its value, the slope, and the value at the end."""
        last = self.starts[1:][np.diff(self.starts) > 0] - 1
        end = np.append(self.values[1:], 0.0)
        width = np.append(np.diff(self.knots), 1.0)
        end[last], width[last] = self.values[last], 1.0
        with np.errstate(over="ignore"):
            slope = np.minimum((end - self.values) / width, STEEPEST)
        return np.stack([self.knots, self.values, slope, end], axis=1)

    @cached_property
    def least(self) -> Column:
        """The least value of each class."""
        there = np.diff(self.starts) > 0
        least = np.zeros(len(there))
        least[there] = self.values[self.starts[:-1][there]]
        return least

    def flat(self, dtype: np.dtype[Any]) -> Matrix:
        """Up to where each class has its least value, in numbers of a type."""
        there = np.diff(self.starts) > 0
        at = self.starts[:-1][there]
        at += self.segments[at, 3] == self.values[at]  # its first level is that wide
        at = np.minimum(at, self.starts[1:][there] - 1)
        flat = np.full(len(there), np.inf)
        flat[there] = self.knots[at]
        rounded = flat.astype(dtype)
        return np.where(rounded > flat, np.nextafter(rounded, dtype.type(0)), rounded)

    def evaluate(self, probs: Matrix, out: Matrix) -> None:
        """Values at probabilities, one column per class."""
        for c, (a, b) in enumerate(pairwise(self.starts)):
            out[:, c] = _on(self.segments[a:b], probs[:, c]) if b > a else 0

    def of_first(self, x: Column) -> Column:
        """Values of the first class."""
        return _on(self.segments[: self.starts[1]], x)


def _on(segments: NDArray[np.float64], p: Matrix) -> Column:
    knot, value, slope, end = segments.T
    x = np.maximum(p.astype(np.float64), knot[0])
    on = np.searchsorted(knot, x, side="right") - 1
    return np.minimum(slope[on] * (x - knot[on]) + value[on], end[on])


def pool(low: Matrix, high: Matrix, hits: Column, weight: Column) -> Curve:
    """Pool adjacent violators; knots are the two ends of each level.

    Parameters
    ----------
    low, high, hits, weight : arrays
        Least and greatest probability, hits and weight of groups of rows, in order.

    Examples
    --------
    >>> x, one = np.array([0.1, 0.2, 0.3, 0.4]), np.ones(4)
    >>> knots, values = pool(x, x, hits=np.array([0.0, 1.0, 0.0, 1.0]), weight=one)
    >>> knots.tolist(), values.tolist()
    ([0.1, 0.2, 0.3, 0.4], [0.0, 0.5, 0.5, 1.0])
    """
    from scipy.optimize import isotonic_regression

    first = isotonic_regression(hits / weight, weights=weight).blocks[:-1]
    while True:  # more than once only if levels differ by round-off
        value = np.add.reduceat(hits, first) / np.add.reduceat(weight, first)
        rises = np.concatenate([[True], value[1:] > value[:-1]])
        if rises.all():
            break
        first = first[rises]
    last = np.concatenate([first[1:], [len(hits)]]) - 1
    knots = np.stack([low[first], high[last]], axis=1).ravel().astype(np.float64)
    chosen = differs(knots)  # a level may be a single point
    return knots[chosen], np.repeat(value, 2)[chosen]


def differs(x: Column) -> NDArray[np.bool_]:
    """Which of sorted numbers are not equal to the one before."""
    return np.concatenate([[True], x[1:] != x[:-1]])


def differs_as_sklearn(x: Column) -> NDArray[np.bool_]:
    """Which of sorted numbers are not close to the first of the group before them.

    Examples
    --------
    >>> differs_as_sklearn(np.array([0.0, 9e-16, 11e-16, 19e-16, 22e-16])).tolist()
    [True, False, True, False, True]
    """
    begins = np.concatenate([[True], np.diff(x) >= CLOSE])
    while True:
        group = np.maximum.accumulate(np.where(begins, np.arange(len(x)), 0))
        far = x - x[group] >= CLOSE
        if not far.any():
            return begins
        begins[1:] |= far[1:] & ~far[:-1]  # the first that is far begins a group


def fit_column(
    p: Matrix, hit: NDArray[np.bool_], weight: Column, begins: Begins
) -> Curve:
    """The curve of one class."""
    order = np.argsort(p)
    x = p[order].astype(np.float64)
    first = np.flatnonzero(begins(x))
    hits = np.add.reduceat((weight * hit)[order], first)
    return pool(x[first], x[first], hits, np.add.reduceat(weight[order], first))


def fit_columns(rows: Rows, begins: Begins, report: Callable[[float], None]) -> Curves:
    """The curves of all classes, each by sorting its column; absent ones have none."""
    weight, nothing = onevsrest.weight_of_rows(rows), (np.empty(0), np.empty(0))
    curves = []
    for c, p in onevsrest.columns(rows):
        hit = rows.y == c
        curves.append(fit_column(p, hit, weight, begins) if hit.any() else nothing)
        report(c / rows.k)
    return Curves.of(curves)


def fit_compiled(rows: Rows) -> Curves:
    """The same without sorting, for equal probabilities being tied."""
    from acumen.recalibration import monotone_numba

    (weight, low, high), hits, starts = monotone_numba.gather(rows)
    nothing, curves = (np.empty(0), np.empty(0)), []
    for a, b in pairwise(starts):
        at = a + np.flatnonzero(low[a:b] <= high[a:b])
        known = low[at], high[at], hits[at], weight[at]
        curves.append(pool(*known) if b > a + 1 else nothing)
    return Curves.of(curves)
