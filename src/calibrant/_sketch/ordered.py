"""Distinct confidences in order, with the weight and the hits at each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column, Index
from calibrant._rows import compiled, engines
from calibrant._rows.columns import Columns

ROUND_OFF = 64
"""Confidences this many units in the last place apart are one value, written twice."""

PART, FEW_TWINS = 1 << 15, 1e-6


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
    def single(self) -> bool:
        """Whether each value is that of one row; its weights are then one 1 for all."""
        return self.weight.strides == (0,)

    @property
    def total(self) -> float:
        """Total weight."""
        return float(len(self.weight) if self.single else self.weight.sum())

    def cut(self, parts: int) -> tuple[Column, Index, Column]:
        """Weights that cut the whole into equal parts; where they are first reached.

        These are numbers of values, and the weights up to them.

        Examples
        --------
        >>> Ordered.of(*np.ones((4, 3))).cut(2)
        (array([1.5]), array([1]), array([2.]))
        """
        if self.single:
            edges = np.arange(1, parts) * float(len(self.weight)) / parts
            index = np.maximum(np.ceil(edges).astype(np.intp) - 1, 0)
            return edges, index, index + 1.0
        before = np.cumsum(self.weight)
        edges = np.arange(1, parts) * before[-1] / parts
        index = np.searchsorted(before, edges)
        return edges, index, before[index]

    def parts(self) -> Iterator[Ordered]:
        """The same, a part at a time that stays in cache."""
        columns = [getattr(self, name) for name in self.__slots__]
        for first in range(0, len(self.hits), PART):
            yield Ordered(*(x[first : first + PART] for x in columns))

    @property
    def effective(self) -> float:
        """Number of rows of equal weight that would have as little noise."""
        if self.squared is self.weight:
            return self.total
        return self.total**2 / float(self.squared.sum())

    @property
    def residual(self) -> Column:
        """Sum of a - h at each distinct confidence."""
        return self.hits - self.claimed

    def without_twins(self) -> Ordered:
        """The same with values that differ only by round-off put together.

        One in a million may stay apart: no number tells, and all would be copied.
        """
        starts = starts_of_values(self.confidence)
        if len(starts) - np.count_nonzero(starts) <= FEW_TWINS * len(starts):
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
    index = order_of(h)
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


def order_of(h: Column) -> NDArray[np.int64]:
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
    weight = np.broadcast_to(np.ones(1), len(key))
    if starts.all():
        h = key.view(np.float64)
        return Ordered(h, weight, hit, hit, h, weight)  # each row claims its confidence
    weight, hit = gather(starts, weight, hit)
    return Ordered.of(key[starts].view(np.float64), weight, hit, hit)


# -- pool adjacent violators: the increasing levels closest to a sequence ---------
#
# Neighbours that do not rise are on one level, whichever are put together first. So whole
# runs are pooled at once, in parts that stay in cache, and then the parts.

MOST_ROUNDS = 64

Levels = tuple[Index, Column, Column]
"""Where the levels start; the sums of values and weights on each."""


def pooled(sums: Column, weight: Column) -> Levels:
    """The levels of the isotonic fit to ``sums / weight``.

    Examples
    --------
    >>> start, sums, weight = pooled(np.array([0.0, 3.0, 1.0, 4.0]), np.ones(4))
    >>> start, sums / weight
    (array([0, 1, 3]), array([0., 2., 4.]))
    """
    if len(sums) <= PART:
        return _pooled(np.arange(len(sums)), sums, weight)
    parts = [
        _pooled(
            np.arange(a, min(a + PART, len(sums))), sums[a:][:PART], weight[a:][:PART]
        )
        for a in range(0, len(sums), PART)
    ]
    start, sums, weight = (np.concatenate(x) for x in zip(*parts, strict=True))
    return _pooled(start, sums, weight)


def _pooled(start: Index, sums: Column, weight: Column) -> Levels:
    """Data need a dozen rounds; what is made to need many goes to SciPy."""
    for _ in range(MOST_ROUNDS):
        level = sums / weight
        rises = np.empty(len(level), bool)
        rises[0] = True
        np.greater(level[1:], level[:-1], out=rises[1:])
        first = np.flatnonzero(rises)
        if len(first) == len(level):
            return start, sums, weight
        start = start[first]
        sums, weight = np.add.reduceat(sums, first), np.add.reduceat(weight, first)
    from scipy.optimize import isotonic_regression

    first = isotonic_regression(sums / weight, weights=weight).blocks[:-1]
    sums, weight = np.add.reduceat(sums, first), np.add.reduceat(weight, first)
    return start[first], sums, weight
