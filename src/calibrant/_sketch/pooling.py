"""Pool adjacent violators: the increasing levels closest to a sequence, in NumPy.

Neighbours that do not rise are on one level, whichever are put together first. So whole
runs are pooled at once, in parts that stay in cache, and then the parts.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column

PART, MOST_ROUNDS = 1 << 15, 64

Levels = tuple[NDArray[np.intp], Column, Column]
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


def _pooled(start: NDArray[np.intp], sums: Column, weight: Column) -> Levels:
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
