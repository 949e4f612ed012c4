"""Intervals that rest on the debiased squared error over equal-mass bins.

Bins miss what varies within them, so the error over bins is at most the error. The lower
end may do without it. The upper end is taken over bins half as wide, which miss a quarter
as much and are noisier.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from acumen import intervals
from acumen.arrays import Column
from acumen.bregman import BRIER
from acumen.estimators.bins import debiased_square, mass_bins
from acumen.intervals import Interval
from acumen.results import Bins
from acumen.uncertainty import standard_errors
from acumen.uncertainty.standard_errors import Index, Rows


@dataclass(frozen=True, slots=True, eq=False)
class SquaredError:
    """Mean squared gap between accuracy and confidence, debiased, with its interval.

    `gap` is accuracy minus confidence in the bin of each distinct confidence.
    """

    value: float
    interval: Interval
    gap: Column


def halved(rows: Rows, bins: Bins) -> Bins:
    """Equal-mass bins of distinct confidences, twice as many."""
    return mass_bins(rows.ordered, 2 * len(bins.count))


def between(coarse: SquaredError, fine: SquaredError) -> Interval:
    """From the lower end over the wider bins to the upper end over the narrower."""
    low = coarse.interval[0]
    return low, max(low, fine.interval[1])


def squared_error(rows: Rows, bins: Bins, level: float) -> SquaredError:
    r"""Debiased squared error over bins of distinct confidences, and its interval.

    Notes
    -----
    The variance of the estimate has two parts (Sun et al. 2024). One comes from the
    influence :math:`2 g r - g^2` of each row and grows with the error. The other
    remains for a calibrated model: in each bin the square of a mean, less its own
    expectation, has variance :math:`2 v^2`, half of what the first part makes of noise.
    The interval solves for the error, so it holds at 0 too.

    Where rows depend on each other, the noise to subtract from a bin's square is that
    of the sums of its clusters.
    """
    full = bins.count > 0
    count, gap = bins.count[full], (bins.accuracy - bins.confidence)[full]
    place = place_in_bins(rows, bins)
    se = rows.standard_error(standard_errors.of_squared_error(rows.ordered, gap[place]))
    n, size = float(count.sum()), float((count * gap**2).sum() / count.sum())
    if rows.clusters is None:
        value = debiased_square(bins)
        noise = float(bins.variance[full][count > 1].sum() / n)
    else:
        noise = _clustered_noise(rows, gap, place, len(count)) / n
        value = size - noise
    ends = intervals.score(value, se, size, noise, level, intervals.CALIBRATED_BINS)
    seen = rows.ordered.weight, rows.ordered.confidence, rows.ordered.hits
    ends = intervals.with_few_misses(ends, *seen, BRIER.on_unit, level)
    return SquaredError(value, ends, gap[place])


def place_in_bins(rows: Rows, bins: Bins) -> Index:
    """Which of the bins that hold rows each distinct confidence belongs to."""
    count = bins.count[bins.count > 0]
    middle = np.cumsum(rows.ordered.weight)
    middle -= 0.5 * rows.ordered.weight  # half a row is more than round-off
    return np.searchsorted(np.cumsum(count)[:-1], middle)


def _clustered_noise(rows: Rows, gap: Column, place: Index, bins: int) -> float:
    """Sum over bins of the variance of their residual per row, clusters being units."""
    assert rows.clusters is not None
    columns, at = rows.columns, place[rows.place]
    w = np.ones(len(columns)) if columns.weight is None else columns.weight
    deviation = w * (columns.hit - columns.confidence - gap[at])
    pair, inverse = np.unique(rows.clusters * bins + at, return_inverse=True)
    square = np.bincount(inverse, deviation) ** 2
    return float(
        (np.bincount(pair % bins, square, bins) / np.bincount(at, w, bins)).sum()
    )


def root(ends: Interval) -> Interval:
    """Interval of the root of a square."""
    return sqrt(ends[0]), sqrt(ends[1])


def discrimination(
    rows: Rows, error: SquaredError, score: float, uncertainty: float, level: float
) -> Interval:
    """Interval for DSC = score less calibration error, subtracted from uncertainty.

    It is centred at the debiased value; the isotonic one is too high by the noise that
    the fit took for signal.
    """
    value = uncertainty - score + error.value
    se = rows.standard_error(standard_errors.of_discrimination(rows.ordered, error.gap))
    low, high = intervals.normal(value, se, level)
    return max(low, 0.0), max(min(high, uncertainty), 0.0)
