"""Closed-form intervals: of errors near zero, of means, of shares; no resampling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, hypot, log, log1p, sqrt
from typing import Any

import numpy as np

from calibrant._inputs.arrays import Column
from calibrant._stats.quantiles import gamma_quantile, normal_quantile, student_quantile

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
    return normal_quantile(0.5 + level / 2)


def quantile_of(x: Column, p: float) -> float:
    """Of numbers; NumPy's own take longer to be asked than to answer."""
    at, x = p * (len(x) - 1), np.sort(x)
    below, share = int(at), at % 1
    return float(x[below] + share * (x[min(below + 1, len(x) - 1)] - x[below]))


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


# -- means, and shares -------------------------------------------------------------


def student(level: float, df: float) -> float:
    """Two-sided quantile of Student's law, that of the normal for many rows.

    Examples
    --------
    >>> round(student(0.95, 9), 3), round(student(0.95, 1e9), 3)
    (2.262, 1.96)
    """
    return student_quantile(max(df, 1.0), 0.5 + level / 2)


MANY_SURPRISES = 40.0
"""So many surprises are half as many as leave nothing but Student's interval."""


def share_of_few(surprises: float) -> float:
    """How much of an interval is one for few surprises: all of it if there is none."""
    return 1 / (1 + (surprises / MANY_SURPRISES) ** 2)


@dataclass(frozen=True, slots=True)
class Surprises:
    """What rows that turned out against the odds add to a mean: a weighted Poisson sum.

    `total` is the sum of their costs, `variance` that of the squares, `next` the cost of
    one more, and `most` the cost if all rows were surprises. `telling` is how many clusters
    had such a one, where the `count` of all does not say it.
    """

    total: float
    variance: float
    next: float
    most: float
    telling: float | None = None

    @classmethod
    def of(
        cls,
        chance: Column,
        weight: Column,
        squared: Column,
        seen: Column,
        seen2: Column,
        cost: Column,
        n: float,
    ) -> Surprises:
        """Of cells of rows, each surprising with a `chance` and then dearer by `cost`.

        `seen` and `seen2` are sums of weights and squared weights of surprises, `n` is
        the weight of all rows. Where every row is certain, any may be wrong all the same.
        """
        most = float(weight @ cost)
        chance = chance if (weight * chance) @ cost > 0 else np.ones_like(chance)
        expected = float((weight * chance) @ cost)
        following = float((squared * chance) @ cost**2) / expected if expected else 0.0
        total, square = float(seen @ cost), float(seen2 @ cost**2)
        return cls(total / n, square / n**2, following / n, most / n)

    def together(self, size: float, whole: float) -> Surprises:
        """The same if so many come at once, of few clusters up to a whole one of them."""
        size = min(size, max(self.count, 1.0) / LEAST_COUNT)
        telling = self.count / size if self.telling is None else self.telling
        one = size * float(if_alike(whole / size, telling))
        return replace(self, variance=size * self.variance, next=one * self.next)

    @property
    def count(self) -> float:
        """Number of surprises of equal cost that would vary as much."""
        return self.total**2 / self.variance if self.variance > 0 else 0.0

    def reach(self, level: float) -> Interval:
        """How far the sum may be above, and below, what it should be.

        The gamma interval of Fay and Feuer (1997).

        Examples
        --------
        >>> one_in_100 = Surprises(0.01, 0.0001, 0.01, 1.0)
        >>> [round(x, 5) for x in one_in_100.reach(0.95)]
        [0.00975, 0.04572]
        """
        down = self.total - self._quantile(0.0, 0.5 - level / 2)
        up = min(self._quantile(self.next, 0.5 + level / 2), self.most) - self.total
        return down, max(up, 0.0)

    def _quantile(self, more: float, p: float) -> float:
        """Of a gamma law of this mean and variance, with one more surprise in them."""
        total, variance = self.total + more, self.variance + more**2
        if not (total > 0 and variance > 0):
            return 0.0
        return variance / total * gamma_quantile(total**2 / variance, p)


NOTHING = Surprises(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over rows, its standard error and the degrees of freedom of that.

    Of independent rows, `rises` are the surprises that make it larger and `falls` those
    that make it smaller: where they are few, the error says too little. `whole` is the
    number of rows in a cluster, 0 without clusters, and `alone` the error if they were
    independent, where more than surprises varies.
    """

    value: float
    se: float
    df: float
    rises: Surprises = NOTHING
    falls: Surprises = NOTHING
    whole: float = 0.0
    alone: float = 0.0

    @property
    def share(self) -> float:
        """Share of the gamma interval: 1 without surprises, one half at 40 of them."""
        if not self.rises.most + self.falls.most > 0:
            return 0.0
        return share_of_few(self.rises.count + self.falls.count)

    def in_clusters(self) -> Mean:
        """The same with surprises that come at once where clusters vary more than rows."""
        if not self.whole:
            return self
        poisson, size = self.rises.variance + self.falls.variance, 1.0
        if self.se**2 > poisson > 0:
            size = max(self.se**2 / max(poisson, self.alone**2), 1.0)
        rises, falls = (x.together(size, self.whole) for x in (self.rises, self.falls))
        return replace(self, rises=rises, falls=falls)

    @property
    def method(self) -> str:
        """What to call the interval."""
        name = "gamma" if self.in_clusters().share > 0.5 else "normal"
        return f"{name}, clusters" if self.whole else name


def mean_interval(mean: Mean, level: float) -> Interval:
    r"""Interval of a mean: Student's, or where surprises are few that of their costs.

    With k effective surprises the share :math:`1 / (1 + (k/40)^2)` of each end is the
    gamma interval's. Its distances are drawn in where rows vary less than a Poisson sum.
    Where they vary more, the rest is added in squares; where clusters do, surprises are
    taken to come several at once. Fewer than 20 rows may vary more than they seem to.

    Examples
    --------
    >>> found = mean_interval(Mean(0.5, 0.1, 1e9), 0.95)
    >>> [round(end, 3) for end in found]
    [0.304, 0.696]
    """
    half, mean = student(level, mean.df) * mean.se, mean.in_clusters()
    rises, falls, share = mean.rises, mean.falls, mean.share
    if not share > 0:
        return mean.value - half, mean.value + half
    poisson = rises.variance + falls.variance
    few = min(max(2 - mean.df / 10, 0.0), 1.0)
    wider = 1 + few * (student(level, mean.df) / quantile(level) - 1)
    ratio = min(wider * mean.se / sqrt(poisson), 1.0) if poisson > 0 else 1.0
    rest = 0.0
    known = not (mean.whole and poisson > 0) or mean.alone > 0
    if known and mean.se**2 > max(poisson, 0.0):  # below 0 by round-off
        rest = half * sqrt(1 - poisson / mean.se**2)
    (less, more), (regained, lost) = rises.reach(level), falls.reach(level)
    down = hypot(ratio * hypot(less, lost), rest)
    up = hypot(ratio * hypot(more, regained), rest)
    return (
        mean.value - share * down - (1 - share) * half,
        mean.value + share * up + (1 - share) * half,
    )


def if_alike(ratio: Any, telling: Any) -> Any:
    """How many times fewer rows count as clusters may be alike throughout.

    `ratio` is that number if each cluster counts once. Those in which all rows are alike
    do not tell how much alike they are; some with surprises do, if they are not few.
    """
    return np.maximum(ratio, 1.0) ** (1 / (1 + telling**2))


LEAST_COUNT = 1 / 81
"""Of surprises, however many come at once: a gamma law of less has no numbers left."""


FEW = 3.5
"""Up to this many events, Wilson's interval begins too high (Brown, Cai and DasGupta 2001)."""


def of_share(p: float, n: float, level: float) -> Interval:
    """Interval of a share: Wilson's, with the Poisson law where one to three rows tell.

    Examples
    --------
    >>> [round(300 * end, 2) for end in of_share(1 / 300, 300, 0.95)]
    [0.05, 5.59]
    """
    low, high = wilson_of(p, n, level)
    if 0 < p * n < FEW:
        low = min(low, gamma_quantile(p * n, 1 - level) / n)
    if 0 < (1 - p) * n < FEW:
        high = max(high, 1 - gamma_quantile((1 - p) * n, 1 - level) / n)
    return low, high


def wilson_of(p: float, n: float, level: float) -> Interval:
    """Wilson interval of one share."""
    low, high = wilson(np.array([p]), np.array([n]), level)
    return float(low[0]), float(high[0])


def wilson(p: Column, n: Column, level: float) -> tuple[Column, Column]:
    """Wilson intervals for shares p of (effective) counts n."""
    q = quantile(level) ** 2 / n
    middle = (p + q / 2) / (1 + q)
    half = np.sqrt(np.maximum(q * p * (1 - p) + q * q / 4, 0)) / (1 + q)
    low, high = np.minimum(middle - half, p), np.maximum(middle + half, p)
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


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
