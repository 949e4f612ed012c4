"""Distinct confidences in order, with the weight and the hits at each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column
from calibrant._rows import compiled, engines
from calibrant._rows.columns import Columns

ROUND_OFF = 64
"""Confidences this many units in the last place apart are one value, written twice."""

PART = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Rows gathered by equal confidence, in increasing order; ties are never split.

    Attributes
    ----------
    confidence, weight, hits, hits2 : arrays
        The distinct confidences; the total weight, the hits and their squares at each.
    claimed : array
        Weight times confidence: the hits that were claimed.
    squared : array
        Sum of squared weights; the weight itself where weights only count.
    """

    confidence: Column
    weight: Column
    hits: Column
    hits2: Column
    claimed: Column
    squared: Column

    @classmethod
    def of(
        cls,
        confidence: Column,
        weight: Column,
        hits: Column,
        hits2: Column,
        squared: Column | None = None,
    ) -> Ordered:
        """Gathered rows; what was claimed follows from weight and confidence."""
        squared = weight if squared is None else squared
        return cls(confidence, weight, hits, hits2, weight * confidence, squared)

    @property
    def total(self) -> float:
        """Total weight."""
        return float(self.weight.sum())

    @property
    def effective(self) -> float:
        """Number of rows of equal weight that would have as little noise."""
        return self.total**2 / float(self.squared.sum())

    @property
    def residual(self) -> Column:
        """Sum of a - h at each distinct confidence."""
        return self.hits - self.claimed

    def without_twins(self) -> Ordered:
        """The same with values that differ only by round-off put together."""
        starts = starts_of_values(self.confidence)
        if starts.all():
            return self
        weight, hits, claimed = gather(starts, self.weight, self.hits, self.claimed)
        hits2, squared = hits, weight
        if self.hits2 is not self.hits:
            (hits2,) = gather(starts, self.hits2)
        if self.squared is not self.weight:
            (squared,) = gather(starts, self.squared)
        return Ordered(self.confidence[starts], weight, hits, hits2, claimed, squared)


def gather(starts: NDArray[np.bool_], *columns: Column) -> list[Column]:
    """Sum each column over the runs that begin where `starts` says.

    If nearly every entry is a run of its own, only the others are moved.

    Examples
    --------
    >>> gather(np.array([True, False, True]), np.array([1.0, 2.0, 4.0]))
    [array([3., 4.])]
    """
    others = np.flatnonzero(~starts)
    if 8 * len(others) > len(starts):
        first = np.flatnonzero(starts)
        return [np.add.reduceat(x, first) for x in columns]
    run = others - np.arange(1, len(others) + 1)
    sums = [x[starts] for x in columns]
    for x, kept in zip(columns, sums, strict=True):
        np.add.at(kept, run, x[others])
    return sums


def starts_of_values(h: Column) -> NDArray[np.bool_]:
    """Which of the sorted confidences start a new value, round-off apart.

    Examples
    --------
    >>> starts_of_values(np.array([0.1, 0.3, 0.1 + 0.2, 0.5]))
    array([ True,  True, False,  True])
    """
    bits, starts = h.view(np.int64), np.ones(len(h), bool)
    for first in range(0, len(h), PART):  # parts that stay in cache
        part = bits[first : first + PART + 1]
        np.greater(part[1:] - part[:-1], ROUND_OFF, out=starts[first + 1 :][:PART])
    return starts


def order(columns: Columns) -> Ordered:
    """Sort the rows by confidence and gather ties."""
    if columns.weight is None and columns.hard:
        return _order_packed(columns)
    h = np.abs(columns.confidence)  # -0.0 is 0
    index = _order_of(h)
    h = h[index]
    w = np.ones(len(h)) if columns.weight is None else columns.weight[index]
    starts = np.concatenate([[True], h[1:] != h[:-1]])
    a = columns.hit[index]
    sums = [w, w * a, w * a * a]
    if columns.squared is not None:
        sums.append(columns.squared[index])
    return Ordered.of(h[starts], *gather(starts, *sums))


def _in_order(key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Whole numbers from 0 on, sorted; those given are used up."""
    if not engines.wanted():
        key.sort()
        return key
    spare = np.empty_like(key)
    return spare if compiled.loops.sort(key, spare, None, None) else key


def _order_of(h: Column) -> NDArray[np.int64]:
    """Where sorted confidences were; ties stay in order."""
    if not engines.wanted():
        return np.argsort(h, kind="stable")
    key, index = compiled.ready(h).view(np.int64).copy(), np.arange(len(h))
    spare = np.empty_like(key), np.empty_like(index)
    return spare[1] if compiled.loops.sort(key, spare[0], index, spare[1]) else index


def _order_packed(columns: Columns) -> Ordered:
    # Doubles in [0, 1] sort like their bits, which leave the top two free. With the
    # hit as the lowest bit, one sort of integers (many times faster than an argsort)
    # brings both into order.
    key = np.abs(columns.confidence).view(np.int64)  # -0.0 would sort last
    key <<= 1
    key |= columns.hit > 0
    key = _in_order(key)
    hit = np.empty(len(key))
    np.bitwise_and(key, 1, out=hit, casting="unsafe")
    key >>= 1
    starts = np.empty(len(key), bool)
    starts[0] = True
    np.not_equal(key[1:], key[:-1], out=starts[1:])
    weight = np.ones(len(key))
    if starts.all():
        h = key.view(np.float64)
        return Ordered(h, weight, hit, hit, h, weight)  # each row claims its confidence
    weight, hit = gather(starts, weight, hit)
    return Ordered.of(key[starts].view(np.float64), weight, hit, hit)
