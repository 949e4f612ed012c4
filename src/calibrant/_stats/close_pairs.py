"""The Brier calibration error from pairs of close rows, with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan, sqrt

import numpy as np

from calibrant._inputs.arrays import Column, Table
from calibrant._inputs.divergences import BRIER, Divergence
from calibrant._stats import closed_forms
from calibrant._stats.closed_forms import Interval, quantile, wilson_of
from calibrant._stats.ladder import Ladder
from calibrant._stats.neighbours import Groups, Neighbours
from calibrant._stats.quantiles import noncentrality_at, noncentrality_near

LEAST_ROWS = 50
"""Below so many effective rows only the Brier error has an interval, and below
`LEAST_FOR_PAIRS` not even that: there is nothing to base it on."""

LEAST_FOR_PAIRS = 20


@dataclass(frozen=True, slots=True)
class DebiasedError:
    """A debiased calibration error: its value is unclipped, so may be slightly negative.

    `se` comes from the influence function. The interval is None for too few rows, and
    `widened` if there is a defect that the estimate smooths away. `resolution` is the share
    of the rows that are looked at together: of finer defects nothing is said. `p_value` is
    how often calibrated models with the same confidences look as bad. `levels` are, for local
    fits, what the fit and then each finer level says, and its variance by chance.
    """

    value: float
    se: float = nan
    interval: Interval | None = None
    resolution: float | None = None
    p_value: float | None = None
    widened: bool = False
    levels: Table | None = None

    @property
    def method(self) -> str:
        """What to call the interval."""
        name = closed_forms.WIDENED + METHOD if self.widened else METHOD
        return closed_forms.named(name, self.interval)


METHOD = "close pairs"


def brier_error(
    cells: Neighbours, level: float = 0.95, ladder: Ladder | None = None
) -> DebiasedError:
    r"""Debiased estimate of :math:`E (m(h) - h)^2`, with mean 0 if the model is calibrated.

    Residuals of pairs of close rows are compared, never a row with itself. They agree in
    sign only if the model is miscalibrated there. How close is close is decided by the
    rungs of a `Ladder`, which is that of the cells if not given.

    Notes
    -----
    The estimate is treated as b times a noncentral chi-square less its degrees of freedom
    :math:`\nu`, whose noncentrality times b is the error. That is exact for one confidence
    and normal for many. b comes from the influence function and :math:`\nu` from the
    variance that calibrated models have. The lower end is above 0 only if the estimate is
    larger than theirs.
    """
    ladder = Ladder.of(cells) if ladder is None else ladder
    value, loss = ladder.value, float(cells.r2.sum()) / cells.n
    noise = Noise.of(ladder)
    likely = noise.soft * (1 - noise.soft)
    se, about = sqrt(noise.variance(likely)), (ladder.resolution, ladder.test.p_value)
    if cells.effective < LEAST_FOR_PAIRS:
        return DebiasedError(min(value, loss), se, None, *about)
    high = _upper_end(ladder, noise, level)
    low = _lower_end(ladder, noise, level)
    off = furthest_mean(cells, BRIER, level)
    value, most = min(value, loss), max(loss, off)
    ends = min(low, loss), min(max(high, off, value, 0.0), most)
    return DebiasedError(value, se, ends, *about)


# -- how sure the estimate is ------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Noise:
    """Influence of a row on the estimate: `slope` times its residual less `level`.

    Each is a number per cell. `soft` is the accuracy nearby, with two hits and two misses
    more (Wilson's), and `plain` without.
    """

    cells: Neighbours
    slope: Column
    level: Column
    soft: Column
    plain: Column
    dispersion: float

    @classmethod
    def of(cls, ladder: Ladder) -> Noise:
        """Of an estimate that mixes levels as the ladder says."""
        cells, fine = ladder.cells, ladder.levels[1]
        squares = fine.sums(cells.w2[:, None], power=2)[:, 0]
        rows, more = fine.near**2 / squares, quantile(0.95) ** 2
        plain = np.clip(cells.h + ladder.means[1], 0.0, 1.0)
        soft = (plain * rows + 0.5 * more) / (rows + more)
        return cls(cells, *ladder.influence, soft, plain, ladder.dispersion)

    def variance(self, of_hits: Column) -> float:
        """Of the estimate, if hits have this variance."""
        if self.cells.groups is not None:
            return self._between_groups(self.cells.groups, of_hits)
        cells, n = self.cells, self.cells.n
        rest = 0.5 * self.slope**2 - self.level
        rest -= float(cells.weight @ rest) / n
        each = self.dispersion * self.slope**2 * of_hits + rest**2
        return float(cells.w2 @ each) / n**2

    def _between_groups(self, groups: Groups, of_hits: Column) -> float:
        sums = groups.residual @ self.slope - groups.weight @ self.level
        var = variance_of_groups(sums, groups, self.cells.n)
        own = self.cells.w2 * self.slope**2
        seen = float(own @ (self.plain * (1 - self.plain)))
        return var * max(float(own @ of_hits) / max(seen, 1e-300), 1.0)

    def unit(self, of_hits: Column) -> float:
        """The variance per four times the error; that of one neighbourhood if there is none.

        Never below a thousandth of that: a sample without misses is not without noise.
        """
        cells, n = self.cells, self.cells.n
        chance = max(float(cells.weight @ (cells.h * (1 - cells.h))) / n, 1e-12)
        chance /= cells.effective
        size = 0.25 * float(cells.weight @ self.slope**2) / n
        if size <= 1e-6 * chance:
            return chance
        return max(self.variance(of_hits) / (4 * size), 1e-3 * chance)

    def scaled(self, s: float) -> Column:
        """Variance of hits if accuracy were s times as far from the confidence."""
        p = np.clip(self.cells.h + 0.5 * s * self.slope, 0.0, 1.0)
        return p * (1 - p)


def variance_of_groups(sums: Column, groups: Groups, n: float) -> float:
    """Variance of a mean over rows, from its sums over groups of clusters."""
    share, count = groups.weight.sum(axis=1) / n, len(groups)
    off = sums - share * sums.sum()
    return float(off @ off) * count / (count - 1) / n**2


def _upper_end(ladder: Ladder, noise: Noise, level: float) -> float:
    """Of what is believed, of finer rungs as far as they are above chance, and of the finest.

    That may be hardly above noise, but smooths least away. An estimate far below 0 is luck,
    and no reason to be surer: it has the end of one that is a standard deviation of a
    calibrated model's below (Cowan et al. 2011).
    """
    unit, variance = noise.unit(noise.soft * (1 - noise.soft)), ladder.chance.var()
    value = max(ladder.value, -sqrt(variance))
    high = upper_end(value, unit, variance, level)
    high = max(high, value + sqrt(variance))
    beyond, chance = ladder.beyond
    rises = np.append(
        np.maximum(ladder.steps, 0.0), max(beyond - ladder.rungs[-1], 0.0)
    )
    finer = upper_end(ladder.rungs[0] + rises.sum(), unit, chance, level)
    own = max(chance - ladder.law[-2].var(), 0.25 * chance, 1e-300)
    sizes = np.append(ladder.sizes, rises[-1] / sqrt(own))
    high += above_chance(sizes) * max(finer - high, 0.0)
    return max(high, upper_end(max(beyond, -sqrt(chance)), unit, chance, level))


def above_chance(sizes: Column) -> float:
    """From 0 to 1 while the largest size goes from half to one standard deviation."""
    return float(np.clip(2 * (sizes.max(initial=0.0) - 0.5), 0.0, 1.0))


STEPS = 4


def _lower_end(ladder: Ladder, noise: Noise, level: float) -> float:
    """0 unless calibrated models have smaller values; else by the noise of the milder truth.

    Where misses are few the sample says little of its own noise. What counts is the noise
    of the error at the lower end, which has more misses.
    """
    value = ladder.value
    if not (value > 0 and ladder.test.rejects(level)):
        return 0.0
    unit = noise.unit(noise.soft * (1 - noise.soft))
    variance = float(ladder.chance.var())
    low = 0.0
    for _ in range(STEPS):
        low = lower_end(value, unit, variance, level)
        unit = noise.unit(noise.scaled(min(sqrt(min(low / value, 1.0)), 0.999)))
    return low


def furthest_mean(cells: Neighbours, divergence: Divergence, level: float) -> float:
    """Error of a model that is off everywhere by as much as the mean accuracy may be."""
    accuracy = min(max(float(cells.hits.sum()) / cells.n, 0.0), 1.0)
    confidence = min(max(float(cells.weight @ cells.h) / cells.n, 0.0), 1.0)
    ends = wilson_of(accuracy, independent_rows(cells, accuracy), level)
    off = divergence.on_unit(np.array(ends), np.full(2, confidence))
    return float(off.max())


def independent_rows(cells: Neighbours, accuracy: float) -> float:
    """How many rows of equal weight tell as much of the accuracy, clusters considered."""
    rows, groups = cells.effective, cells.groups
    if groups is None:
        return rows
    hits = (groups.residual + groups.weight * cells.h).sum(axis=1)
    variance = variance_of_groups(hits, groups, cells.n)
    spread = max(accuracy * (1 - accuracy), 1e-9)
    return min(rows, spread / max(variance, 1e-12))


# -- noncentral chi-square ---------------------------------------------------------

MANY = 2000.0
"""Degrees of freedom, or a value, from which a chi-square is as good as normal."""


def upper_end(value: float, unit: float, chance: float, level: float) -> float:
    """Largest error that an estimate does not contradict; see `brier_error`.

    `chance` is the variance of calibrated models.

    Examples
    --------
    For many degrees of freedom the interval is that of a normal estimate, whose variance
    is `chance` and four units times the error.

    >>> round(upper_end(0.01, 1e-9, 1e-6, 0.95), 5)
    0.01196
    """
    freedom = max(chance / (2 * unit * unit), 1.0)
    return unit * noncentrality(value / unit + freedom, freedom, 0.5 - level / 2)


def lower_end(value: float, unit: float, chance: float, level: float) -> float:
    """Smallest error that an estimate does not contradict."""
    freedom = max(chance / (2 * unit * unit), 1.0)
    return unit * noncentrality(value / unit + freedom, freedom, 0.5 + level / 2)


def noncentrality(value: float, freedom: float, p: float) -> float:
    """At which a noncentral chi-square is below a value with probability p; 0 if none."""
    if not value > 0:
        return 0.0
    if max(value, freedom) > MANY:
        return max(noncentrality_near(value, freedom, p), 0.0)
    return noncentrality_at(value, freedom, p)
