"""Walks of cumulative differences, and the laws of their extremes if calibrated."""

from __future__ import annotations

from math import ceil, erfc, sqrt

import numpy as np

from acumen.arrays import Column
from acumen.calibration_tests.redrawn_rows import Draws, NullRows

ROUGH = 0.008
"""Mean step of a walk, relative to its whole spread, up to which it passes for smooth."""


def extremes(null: NullRows, draws: Draws) -> tuple[Column, Column]:
    """Lowest and highest sum of a - h over rows up to any confidence, origin included.

    Between surprises the walk falls while h < 1/2 and rises after, so it need only be
    looked at beside surprises, at one half and at the end.
    """
    calm = np.cumsum(null.calm)
    before_calm = np.concatenate([[0.0], calm[:-1]])
    step = null.flip[draws.group] * draws.surprises
    after = np.cumsum(step)
    start = np.searchsorted(draws.replicate, np.arange(draws.replicates))
    after -= np.concatenate([[0.0], after])[start][draws.replicate]
    beside = (before_calm[draws.group] + after - step, calm[draws.group] + after)
    low, high = np.zeros((2, draws.replicates))
    for values in beside:
        np.minimum.at(low, draws.replicate, values)
        np.maximum.at(high, draws.replicate, values)
    below = int(np.searchsorted(null.h, 0.5))  # groups below one half
    for groups in (below, len(null.h)):
        if groups:
            here = calm[groups - 1] + draws.sums(step * (draws.group < groups))
            low, high = np.minimum(low, here), np.maximum(high, here)
    return low, high


def is_smooth(null: NullRows) -> bool:
    """Whether steps are so small that the walk passes for Brownian motion.

    A walk in steps passes its highest point by less than Brownian motion does, by about
    half a step; where surprises are rare, by a third of a hit at least.
    """
    v = null.variance
    step = (v * np.sqrt(np.maximum(v, 0.1))).sum() / v.sum()
    return bool(step <= ROUGH * sqrt(v.sum()))


def normal_tail(z: float) -> float:
    """P(|Z| >= z) of a standard normal variable."""
    return erfc(z / sqrt(2))


def distance_tail(x: float) -> float:
    """P(max |B| >= x) of Brownian motion B on [0, 1].

    By the reflection principle, a series in normal tails.

    Examples
    --------
    >>> [round(1 - distance_tail(x), 6) for x in (1.0, 2.0, 3.0)]
    [0.370777, 0.908999, 0.9946]
    """
    if x < 0.1:
        return 1.0
    terms = range(ceil(20 / x))
    return min(2 * sum((-1) ** k * normal_tail((2 * k + 1) * x) for k in terms), 1.0)


def range_tail(x: float) -> float:
    """P(max B - min B >= x) of Brownian motion B on [0, 1] (Feller 1951).

    Examples
    --------
    >>> [round(1 - range_tail(x), 6) for x in (1.0, 2.0, 3.0)]
    [0.063365, 0.818506, 0.989201]
    """
    if x < 0.2:
        return 1.0
    terms = range(1, ceil(40 / x) + 1)
    return min(4 * sum((-1) ** (k - 1) * k * normal_tail(k * x) for k in terms), 1.0)
