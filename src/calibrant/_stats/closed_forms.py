"""Closed-form intervals: score intervals, near zero too; no resampling."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, log1p, sqrt

import numpy as np

from calibrant._inputs.arrays import Column

Interval = tuple[float, float]

CALIBRATED_SHARE = 0.72
"""Variance of the twicing estimate of a calibrated model, relative to the influence
function's: 2 R(2K - K*K) / 4 R(K) for the Gaussian kernel, R the integral of squares."""

CALIBRATED_BINS = 0.5
"""The same ratio for debiased squares of bins."""

FEW_MISSES = 20.0
ONE_SIDED, WIDENED = "one-sided ", "widened "
"""Words before the name of a method: it begins at 0; it includes what an estimate saw
that is finer than the one in the middle."""


def quantile(level: float) -> float:
    """Two-sided normal quantile: 1.96 for a level of 95 %."""
    from statistics import NormalDist  # slow to load, so only when needed

    return NormalDist().inv_cdf(0.5 + level / 2)


def score(
    d: float,
    se: float,
    size: float,
    noise: float,
    level: float,
    share: float = CALIBRATED_SHARE,
) -> Interval:
    """Score interval for a calibration error d >= 0 whose variance grows with it.

    The model is Var(estimate | d) = kappa (c0 noise + d) / n with kappa = n se^2 / size,
    where `size` is the plain squared size of the estimated error, `noise` the part
    of it that is sampling noise, and c0 is `share`. Solving (estimate - d)^2 = z^2 Var
    for d gives both ends.

    An estimate far below 0 is luck, and no reason to be surer: it has the interval of one
    that is a standard deviation of a calibrated model's below, as the power-constrained
    limits of Cowan et al. (2011) have it. So no interval is empty.

    Examples
    --------
    >>> for d in (3e-3, 0.0, -1e-3, -9e-3):
    ...     low, high = score(d, 1e-3, 2e-3, 2e-3, 0.95)
    ...     print(f"{low:.4f} {high:.4f}")
    0.0009 0.0070
    0.0000 0.0029
    0.0000 0.0015
    0.0000 0.0015
    """
    if not max(size, noise) > 0:
        return max(d, 0.0), max(d, 0.0)
    size, noise = max(size, 0.25 * noise), max(noise, 0.0)  # size is noise and more
    z, chance = quantile(level), se * sqrt(share * noise / size)
    c = z * z * se * se / size
    d = max(d, -chance)
    half = sqrt(max(c * d + 0.25 * c * c + (z * chance) ** 2, 0.0))
    low = max(d + 0.5 * c - half, 0.0) if d > 0 else 0.0
    return low, max(d + 0.5 * c + half, 0.0)


def with_few_misses(
    interval: Interval,
    weight: Column,
    h: Column,
    hits: Column,
    divergence: Callable[[Column, Column], Column],
    level: float,
) -> Interval:
    """The interval of an error, where a calibrated model would hardly ever miss.

    Rows without a miss vary too little to say how sure they are. If noise is hidden, the
    interval begins at 0 unless the mean accuracy contradicts the mean confidence, and
    reaches to the error of a model that is off everywhere by as much as the mean may be.

    Examples
    --------
    >>> def square(x, y):
    ...     return (x - y) ** 2
    >>> rows = np.array([5000.0]), np.array([0.9999]), np.array([5000.0])
    >>> low, high = with_few_misses((1e-8, 1e-8), *rows, square, 0.95)
    >>> low, round(high**0.5, 4)
    (0.0, 0.0007)
    """
    if not noise_is_hidden(weight, h, hits):
        return interval
    n = weight.sum()
    accuracy, confidence = np.clip([hits.sum() / n, weight @ h / n], 0.0, 1.0)
    ends = wilson_of(accuracy, n, level)
    off = float(divergence(np.array(ends), np.full(2, confidence)).max())
    inside = ends[0] <= confidence <= ends[1]
    return 0.0 if inside else interval[0], max(interval[1], off)


def noise_is_hidden(weight: Column, h: Column, hits: Column) -> bool:
    """Whether few misses are expected, below 20, and rows vary no more than that says.

    Of small confidences hits are meant instead.

    Examples
    --------
    >>> n, h = np.array([100.0]), np.array([0.95])
    >>> [noise_is_hidden(n, h, np.array([right])) for right in (100.0, 90.0)]
    [True, False]
    """
    if weight @ np.minimum(h, 1 - h) >= FEW_MISSES:
        return False
    squares = hits * (1 - h) ** 2 + (weight - hits) * h**2
    return bool(squares.sum() <= weight @ (h * (1 - h)))


def named(method: str, interval: Interval | None) -> str:
    """The method's name; one-sided if the interval begins at 0, below which is nothing.

    Such an interval can miss a small error on one side only, so it is less likely to.
    """
    plain = method.removeprefix(ONE_SIDED)
    return ONE_SIDED + plain if interval is not None and interval[0] == 0 else plain


def mean(value: float, mean_square: float, n: float, level: float) -> Interval:
    """Normal interval for the mean of n independent losses, cut at 0."""
    se = sqrt(max(mean_square - value * value, 0.0) / n)
    low, high = normal(value, se, level)
    return max(low, 0.0), high


def wilson_of(p: float, n: float, level: float) -> Interval:
    """Wilson interval of one share."""
    low, high = wilson(np.array([p]), np.array([n]), level)
    return float(low[0]), float(high[0])


def wilson(p: Column, n: Column, level: float) -> tuple[Column, Column]:
    """Wilson intervals for shares p of (effective) counts n."""
    q = quantile(level) ** 2 / n
    middle = (p + q / 2) / (1 + q)
    half = np.sqrt(np.maximum(q * p * (1 - p) + q * q / 4, 0)) / (1 + q)
    return np.minimum(middle - half, p), np.maximum(middle + half, p)


def normal(value: float, se: float, level: float) -> Interval:
    """Value and so many standard errors on each side."""
    half = quantile(level) * se
    return value - half, value + half


def on_log_odds(p: float, se: float, level: float) -> Interval:
    """Normal interval of the log-odds of a number inside (0, 1), mapped back."""
    middle = log(p) - log1p(-p)
    ends = normal(middle, se / (p * (1 - p)), level)
    low, high = (1 / (1 + exp(-x)) if x > 0 else exp(x) / (1 + exp(x)) for x in ends)
    return low, high
