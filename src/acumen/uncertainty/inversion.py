"""Intervals for norms of the residual, such as ECE, by inverting tests.

Noise makes a norm larger, hardly ever smaller: a calibrated model has an ECE above 0.
So the question is turned round. If the true residual had the shape that was found, but
were s times as large, how large would the norm of residual plus noise be? The interval holds the sizes for which
the observed norm is not unusual. Sizes too small to be told from 0 are tested on the
upper side only: so the interval of a calibrated model holds 0 as often as it says, and
is never shorter than what such data can tell from 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.intervals import Interval

Table = NDArray[np.float64]
"""One row for each resample."""

Norm = Callable[[Table, Column], tuple[Column, Column]]
"""From residuals and a direction to the size of each, and its growth that way."""

STEPS = 8
"""Of Newton, on functions that are convex and nearly straight."""


def total_size(x: Table, direction: Column) -> tuple[Column, Column]:
    """Sum of absolute values.

    Examples
    --------
    >>> size, growth = total_size(np.array([[1.0, -2.0]]), np.array([1.0, 1.0]))
    >>> float(size[0]), float(growth[0])
    (3.0, 0.0)
    """
    sign = np.sign(x)
    return np.vecdot(sign, x), sign @ direction


def largest_size(x: Table, direction: Column) -> tuple[Column, Column]:
    """Largest absolute value.

    Examples
    --------
    >>> size, growth = largest_size(np.array([[1.0, -2.0]]), np.array([1.0, 1.0]))
    >>> float(size[0]), float(growth[0])
    (2.0, -1.0)
    """
    at = np.abs(x).argmax(axis=1)
    largest = x[np.arange(len(x)), at]
    return np.abs(largest), np.sign(largest) * direction[at]


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Residuals s times a given shape, with each row of noise added."""

    shape: Column
    noise: Table
    norm: Norm

    @property
    def size(self) -> float:
        """The norm of the shape."""
        return size_of(self.shape, self.norm)

    @property
    def null(self) -> Column:
        """Norms of the noise alone."""
        return self.norm(self.noise, self.shape)[0]

    def crossings(self, bound: float, null: Column) -> Column:
        """The factor at which each resample's norm reaches a bound.

        It is 0 for those whose noise alone does. The norm is convex in the factor, so
        Newton's steps go to the crossing from above without passing it.
        """
        scale = (bound + null) / self.size
        for _ in range(STEPS):
            x = scale[:, None] * self.shape
            x += self.noise
            size, growth = self.norm(x, self.shape)
            step = (size - bound) / np.where(growth > 0, growth, inf)
            scale = np.maximum(scale - step, 0.0)
        return np.where(null >= bound, 0.0, scale)


def size_of(residual: Column, norm: Norm) -> float:
    """The norm of one residual."""
    return float(norm(residual[None], residual)[0][0])


def interval(family: Family, value: float, level: float, most: float = inf) -> Interval:
    """Interval for a norm that is at most `most`, given its observed value.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(1000, 1))
    >>> family = Family(np.array([1.0]), noise, total_size)
    >>> low, high = interval(family, 5.0, 0.95)
    >>> round(low), round(high)
    (3, 7)
    """
    size = family.size
    if not size > 0:  # a shape may vanish in a norm, as that of bins
        return 0.0, max(value, float(np.quantile(family.null, level)))
    low, high = scales(family, value, level)
    return min(low * size, most), min(high * size, most)


def scales(family: Family, value: float, level: float) -> Interval:
    """Factors of the shape, whose size is not 0, that the value does not contradict."""
    alpha, null = 1 - level, family.null
    unusual = float(np.quantile(null, level))
    detectable = float(np.median(family.crossings(unusual, null)))
    crossings = family.crossings(value, null)
    two_sided, low, high = np.quantile(crossings, [alpha / 2, alpha, 1 - alpha / 2])
    if low >= detectable:
        low = max(detectable, two_sided)
    return float(low), max(detectable, float(high))


def band(family: Family, value: float, level: float, most: float = inf) -> Interval:
    """Interval for a largest value: as far as noise alone reaches on either side.

    Where two extremes compete, a scaled shape knows too little of the lesser one. This
    asks for no shape, and holds the truth at least as often as `level` says.

    Examples
    --------
    >>> noise = np.random.default_rng(0).normal(size=(1000, 1))
    >>> low, high = band(Family(np.array([1.0]), noise, largest_size), 5.0, 0.95)
    >>> round(low), round(high)
    (3, 7)
    """
    reach = float(np.quantile(family.null, level))
    return max(value - reach, 0.0), min(value + reach, most)
