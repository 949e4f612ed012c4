"""Which raw score means 2 %? The inverse of a map of one score."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant._inputs.arrays import Column

Map = Callable[[Column], Column]

REACH, STEPS, GRID = 30.0, 120, 2001
"""Logits are searched from -sinh(30) to sinh(30), about 5e12, as densely everywhere."""

INSIDE = float(np.finfo(float).tiny), 1 - float(np.finfo(float).epsneg)
"""Probabilities that are not certain; certain ones have rules of their own."""

FALL = 1e-9
"""A map that falls by more than this somewhere has no inverse."""


def least_scores(of: Map, wanted: Column, *, probabilities: bool) -> Column:
    """The least scores whose map is at least what is wanted; infinite where none is.

    Where every score means as much, it is the least there is: 0, or minus infinity.

    >>> least_scores(lambda p: p / 2, np.array([0.25, 0.75]), probabilities=True).tolist()
    [0.5, inf]
    """
    spell = np.asarray if probabilities else np.sinh
    low, high = INSIDE if probabilities else (-REACH, REACH)
    grid = spell(np.linspace(low, high, GRID))
    values = of(grid)
    if (np.diff(values) < -FALL).any():
        at = float(grid[int(np.argmin(np.diff(values)))])
        raise ValueError(
            f"inverse needs a map that does not fall, and this one falls after {at:.6g}: "
            "several scores can mean the same. Use a monotone method, such as "
            "IsotonicCalibration or BetaCalibration."
        )
    left, right = np.full(wanted.shape, low), np.full(wanted.shape, high)
    for _ in range(STEPS):
        middle = 0.5 * (left + right)
        enough = of(spell(middle)) >= wanted
        left, right = np.where(enough, left, middle), np.where(enough, middle, right)
    least = 0.0 if probabilities else -np.inf
    found = np.where(values[0] >= wanted, least, spell(right))
    return np.where(values[-1] >= wanted, found, np.inf)
