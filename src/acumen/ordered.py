"""Distinct confidences in order, with the weight and the hits at each."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.columns import Columns

ROUND_OFF = 64
"""Confidences this many units in the last place apart are one value, written twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Ordered:
    """Rows gathered by equal confidence, in increasing order; ties are never split.

    Attributes
    ----------
    confidence, weight, hits, hits2 : arrays
        The distinct confidences; the total weight, the hits and their squares at each.
    claimed : array
        Weight times confidence: the hits that were claimed.
    """

    confidence: Column
    weight: Column
    hits: Column
    hits2: Column
    claimed: Column = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "claimed", self.weight * self.confidence)

    @property
    def total(self) -> float:
        """Total weight."""
        return float(self.weight.sum())

    @property
    def residual(self) -> Column:
        """Sum of a - h at each distinct confidence."""
        return self.hits - self.claimed

    def without_twins(self) -> Ordered:
        """The same with values that differ only by round-off put together."""
        starts = starts_of_values(self.confidence)
        twins = np.flatnonzero(~starts)
        if not twins.size:
            return self
        value = twins - np.arange(1, len(twins) + 1)  # the value each twin belongs to

        def put_together(x: Column) -> Column:
            kept = x[starts]
            np.add.at(kept, value, x[twins])
            return kept

        weight, claimed = put_together(self.weight), put_together(self.claimed)
        h = self.confidence[starts]
        h[value] = claimed[value] / weight[value]
        hits = put_together(self.hits)
        hits2 = hits if self.hits2 is self.hits else put_together(self.hits2)
        return Ordered(h, weight, hits, hits2)


def starts_of_values(h: Column) -> NDArray[np.bool_]:
    """Which of the sorted confidences start a new value, round-off apart.

    Examples
    --------
    >>> starts_of_values(np.array([0.1, 0.3, 0.1 + 0.2, 0.5]))
    array([ True,  True, False,  True])
    """
    return np.diff(h.view(np.int64), prepend=-ROUND_OFF - 1) > ROUND_OFF


def order(columns: Columns) -> Ordered:
    """Sort the rows by confidence and gather ties."""
    if columns.weight is None and columns.hard:
        return _order_packed(columns)
    index = np.argsort(columns.confidence, kind="stable")
    h = np.abs(columns.confidence[index])  # -0.0 is 0
    w = np.ones(len(h)) if columns.weight is None else columns.weight[index]
    start = np.flatnonzero(np.concatenate([[True], h[1:] != h[:-1]]))
    a = columns.hit[index]
    weight, hits, hits2 = (np.add.reduceat(x, start) for x in (w, w * a, w * a * a))
    return Ordered(h[start], weight, hits, hits2)


def _order_packed(columns: Columns) -> Ordered:
    # Doubles in [0, 1] sort like their bits, which leave the top two free. With the
    # hit as the lowest bit, one sort of integers (many times faster than an argsort)
    # brings both into order.
    key = np.abs(columns.confidence).view(np.int64)  # -0.0 would sort last
    key <<= 1
    key |= columns.hit > 0
    key.sort()
    hit = (key & 1).astype(np.float64)
    key >>= 1
    start = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
    distinct = key[start].view(np.float64)
    if len(start) == len(key):
        return Ordered(distinct, np.ones(len(key)), hit, hit)
    weight = np.diff(start, append=len(key)).astype(np.float64)
    hits = np.add.reduceat(hit, start)
    return Ordered(distinct, weight, hits, hits)
