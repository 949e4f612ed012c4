"""Statistics of a test of calibration, of the data and of redrawn data alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from acumen.arrays import Column
from acumen.calibration_tests.redrawn_rows import Draws, NullRows
from acumen.calibration_tests.walks import (
    distance_tail,
    extremes,
    normal_tail,
    range_tail,
)
from acumen.kernels import GAUSSIAN


@dataclass(frozen=True, slots=True)
class Method:
    """A statistic of draws, how large is extreme, and its law for many rows.

    `spread` is 0 where the statistic cannot vary. `sides` is 2 if far below 0 is as
    extreme as far above. `coarse` says that groups of nearly equal log-odds will do.
    """

    statistic: Callable[[NullRows, Draws], Column]
    spread: Callable[[NullRows], float]
    tail: Callable[[float], float] | None
    law: str
    sides: int = 1
    coarse: bool = False


def _kuiper(null: NullRows, draws: Draws) -> Column:
    low, high = extremes(null, draws)
    return (high - low) / sqrt(_variance(null))


def _ks(null: NullRows, draws: Draws) -> Column:
    low, high = extremes(null, draws)
    return np.maximum(-low, high) / sqrt(_variance(null))


def _variance(null: NullRows) -> float:
    return float(null.variance.sum())


def _spiegelhalter(null: NullRows, draws: Draws) -> Column:
    # The Brier score less its expectation is the sum of (a - h)(1 - 2h). A surprise
    # adds |1 - 2h| to it, whichever way the row points.
    slope = np.abs(1 - 2 * null.h)
    calm = -(null.rows * null.chance * slope).sum()
    excess = calm + draws.sums(draws.surprises * slope[draws.group])
    return excess / sqrt(_spiegelhalter_variance(null))


def _spiegelhalter_variance(null: NullRows) -> float:
    return float((null.variance * (1 - 2 * null.h) ** 2).sum())


def _smooth_square(null: NullRows, draws: Draws) -> Column:
    """Squared kernel mean of residuals, less its variance: 0 on average if calibrated.

    The kernel is the one of `acumen.estimators.adaptive`: Gaussian in (rank + h) / 2, of width
    2 / sqrt(n).
    """
    rows, groups, replicates = null.rows, len(null.h), draws.replicates
    rank = (np.cumsum(rows) - 0.5 * rows) / null.n
    x = 0.5 * (rank + null.h)
    K = GAUSSIAN.profile((x[:, None] - x) * (0.5 * sqrt(null.n)))
    K /= np.maximum(K @ rows, 1.0)[:, None]
    place = draws.group * replicates + draws.replicate
    count = np.bincount(place, draws.surprises, groups * replicates)
    count = count.reshape(groups, replicates)
    g = K @ (null.calm[:, None] + null.flip[:, None] * count)
    # Squared residuals: chance^2 as expected, (1 - chance)^2 in case of surprise.
    noise = rows @ K**2
    expected = noise @ (rows * null.chance**2)
    return (rows @ g**2 - expected - (noise * (1 - 2 * null.chance)) @ count) / null.n


METHODS = {
    "kuiper": Method(_kuiper, _variance, range_tail, "Brownian motion"),
    "ks": Method(_ks, _variance, distance_tail, "Brownian motion"),
    "spiegelhalter": Method(
        _spiegelhalter, _spiegelhalter_variance, normal_tail, "normal", sides=2
    ),
    "bootstrap": Method(_smooth_square, _variance, None, "simulated", coarse=True),
}
