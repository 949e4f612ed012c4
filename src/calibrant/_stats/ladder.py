"""The ladder: calibration error from pairs of ever closer rows, and its law.

One level compares the residuals of rows that lie close to each other. A coarse level is
sure of itself and blind to what is narrow, a fine one the other way round. Each finer
level is believed as far as it differs from what it would say of a calibrated model, a law
that is known: confidences are given, hits are coins. So it is simulated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column, Index, Table
from calibrant._rows import compiled, engines
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._stats.closed_forms import (
    CALIBRATED_SHARE,
    quantile,
    quantile_of,
    student,
)
from calibrant._stats.neighbours import Groups, Neighbours, merged

COARSE, FINE = 2.0, 0.5
"""Widths of levels, times the root of the (effective) number of rows."""

LEAST_NEAR = 10.0
"""Rows that a neighbourhood of the finest level must hold, on average, for it to exist."""

BEYOND, LEAST_BEYOND = 0.125, 5.0
"""The same of a level that has a say in the upper end only."""

PLACES, PLACES_OF_LAW, REACH = 4, 2, 5
"""Places to a width, fewer in the simulated law; widths beyond which none is near."""

BLOCK = 64

DRAWS, BATCH, SEED = 400, 200, 0
"""Of the law, at a time, and their seed: the result is a function of the sums."""

MOST_SHARED = 1 << 18
"""Random numbers that all laws share: as many as most ever ask for."""

HALF_BELIEVED = 3.0
"""Standard deviations of the law at which half of what a level adds is believed."""


def believed(t: Column) -> Column:
    """Share that is believed of a step of so many standard deviations.

    Examples
    --------
    >>> believed(np.array([0.0, 1.0, 3.0, 9.0])).round(2)
    array([0.  , 0.01, 0.5 , 0.99])
    """
    t = np.minimum(t, 1e6) ** 4
    return t / (t + HALF_BELIEVED**4)


# -- one level ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Level:
    """Cells at one resolution: put together in places, which see each other by a kernel.

    `taps` is the kernel at distances of places, `number` where each is. `start` is the first cell of
    each place, `place` the place of each cell and `weight` its weight.
    """

    width: float
    taps: Column
    number: Index
    start: Index
    place: Index
    weight: Column

    @classmethod
    def of(cls, x: Column, width: float, weight: Column, places: int = PLACES) -> Level:
        """Cells of increasing coordinate `x`, in so many `places` to a width."""
        number = _rounded(x, places / width)
        new = np.ones(len(number), bool)
        new[1:] = number[1:] > number[:-1]
        start, place = np.flatnonzero(new), np.cumsum(new) - 1
        where = number[start].astype(np.int64)
        return cls(width, _taps(places), where, start, place, weight)

    @cached_property
    def near(self) -> Column:
        """Sum of the weights that each cell sees."""
        return self.sums(self.weight[:, None])[:, 0]

    @cached_property
    def blocks(self) -> list[tuple[slice, slice, Table]]:
        """Parts of the kernel's matrix, where places are near enough to meet."""
        taps, number, found = np.append(self.taps, 0.0), self.number, []
        for first in range(0, len(number), BLOCK):
            rows = number[first : first + BLOCK]
            ends = rows[0] - len(taps) + 2, rows[-1] + len(taps) - 1
            seen = slice(*(int(i) for i in np.searchsorted(number, ends)))
            apart = np.minimum(np.abs(rows[:, None] - number[seen]), len(taps) - 1)
            found.append((slice(first, first + BLOCK), seen, taps[apart]))
        return found

    def gather(self, columns: Table) -> Table:
        """Sums of cells over places."""
        return np.add.reduceat(columns, self.start, axis=0)

    def smooth(self, at_places: Table, power: int = 1) -> Table:
        """Kernel sums (of the kernel's square, for a `power` of 2) at the places."""
        out = np.empty_like(at_places)
        for rows, seen, K in self.blocks:
            out[rows] = (K if power == 1 else K * K) @ at_places[seen]
        return out

    def sums(self, columns: Table, power: int = 1) -> Table:
        """The same of cells, at the cells."""
        if engines.wanted():
            given = power, self.taps, self.number, self.place, columns
            return compiled.filled("kernel_sums", columns.shape, *given)
        return self.smooth(self.gather(columns), power)[self.place]

    def means(self, column: Column) -> Column:
        """Kernel mean that each cell sees, of a column of sums over rows."""
        return self.sums(column[:, None])[:, 0] / self.near


@cache
def _taps(places: int) -> Column:
    """The kernel at distances of places, so many of which are a width."""
    return GAUSSIAN.profile(np.arange(REACH * places + 1) / places)


def levels_of(cells: Neighbours, places: int = PLACES) -> list[Level]:
    """From coarse to fine: by rank, by rank and confidence, and that four times as fine."""
    step, how = 1 / sqrt(cells.effective), (cells.weight, places)
    x = cells.coordinate
    found = [Level.of(y, COARSE * step, *how) for y in (cells.rank, x)]
    if 2.5 * FINE / step >= LEAST_NEAR:
        found.append(Level.of(x, FINE * step, *how))
    return found


# -- what a level says -------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Residuals:
    """Sums over the rows of each cell, of w r, w^2 r, w^2 r^2 and w^3 r^2.

    `r` has a column for each data set; the others are its `slopes` times that of the cell,
    and `bases`. In simulated data one row is like another: squares of residuals add up to
    a slope times their sum and a base, since hits are 0 or 1.
    """

    r: Table
    bases: Sequence[Column]
    slopes: Sequence[Column]

    @classmethod
    def of(cls, cells: Neighbours) -> Residuals:
        """Those of one data set, as a column."""
        none = np.zeros_like(cells.r1)
        own = cells.w2r, cells.w2r2, cells.w3r2
        return cls(cells.r1[:, None], own, (none, none, none))

    def agreement(self, importance: Table, near: Column, g: Table) -> Table:
        """Sums of w r g (1 + w / near), with importances of cells."""
        both = (importance * (1 + self.slopes[0] / near)) @ (self.r * g)
        return both + (importance / near * self.bases[0]) @ g

    def squares(self, twice: Table, thrice: Table) -> Table:
        """Sums of w^2 r^2 and w^3 r^2, each with importances of its own."""
        slope = twice * self.slopes[1] + thrice * self.slopes[2]
        return (
            slope @ self.r + (twice @ self.bases[1] + thrice @ self.bases[2])[:, None]
        )


def pairs(
    cells: Neighbours, level: Level, found: Residuals, importance: Table
) -> Table:
    r"""Mean squared distance at one level: (importances, data sets).

    Each row of `importance` has a number for each cell. No product of a row with itself
    is left, so a calibrated model gives 0 on average, and a row far from all others 0.

    Notes
    -----
    With g the kernel mean of residuals, D the weight it is taken over and
    :math:`V = \sum K^2 w^2 r^2 / D^2` its variance, a cell has

    .. math:: 2 (R g - Q / D) - N (g^2 - V) + 2 (R_2 g / D - Q_3 / D^2),

    where R, :math:`R_2`, Q, :math:`Q_3` are sums of :math:`w r, w^2 r, w^2 r^2, w^3 r^2`.
    The sum over cells of N V is one of Q, seen from the other side of the kernel.
    """
    if engines.wanted():
        columns = found.r, level.near, cells.weight, *found.bases, *found.slopes
        kernel = level.taps, level.number, level.place
        given = 1 / cells.n, *kernel, np.ascontiguousarray(importance), *columns
        return compiled.filled("pairs", (len(importance), found.r.shape[1]), *given)
    D, counted = level.near, importance * cells.weight
    g = level.smooth(level.gather(found.r)) / D[level.start, None]
    agreement = found.agreement(importance, D, g[level.place])
    size = level.gather(counted.T).T @ g**2
    variance = level.sums((counted / D**2).T, power=2).T
    own = found.squares(variance - 2 * importance / D, -2 * importance / D**2)
    return (2 * agreement - size + own) / cells.n


def contributions(cells: Neighbours, level: Level) -> Column:
    """What each cell adds to the mean squared distance at one level, times n."""
    D, g = level.near, level.means(cells.r1)
    variance = level.sums(cells.w2r2[:, None], power=2)[:, 0] / D**2
    agreement = cells.r1 * g - cells.w2r2 / D + cells.w2r * g / D - cells.w3r2 / D**2
    return 2 * agreement - cells.weight * (g * g - variance)


def chance_of_pairs(
    cells: Neighbours, level: Level, importance: Column, v: Column
) -> float:
    """Variance of `pairs` if hits have variance v about the confidence."""
    noise = level.sums((cells.w2 * v)[:, None], power=2)[:, 0] / level.near**2
    each = cells.w2 @ (importance**2 * v * noise)
    return 4 * CALIBRATED_SHARE * float(each) / cells.n**2


def at_level(
    cells: Neighbours, level: Level, importance: Column, v: Column
) -> tuple[float, float]:
    """What one level says, and its variance if hits have variance v and nothing is off."""
    if cells.groups is not None:
        table = importance[None, None]
        (between,) = between_groups(cells, cells.groups, [level], table)
        return float(between.sum()), 2 * float((between**2).sum())
    found = pairs(cells, level, Residuals.of(cells), importance[None])
    return float(found[0, 0]), chance_of_pairs(cells, level, importance, v)


def rises_of(values: Column, variances: Column) -> tuple[Column, Column]:
    """How much each level shows beyond the one before, and that in units of chance."""
    own = np.maximum(np.diff(variances, prepend=0.0), 0.25 * variances)
    rises = np.maximum(np.diff(values, prepend=0.0), 0.0)
    return rises, rises / np.sqrt(np.maximum(own, 1e-300))


def trust(cells: Neighbours, level: Level) -> Column:
    """Share of a level in each cell: I / (I + 1) where neighbours expect I events.

    Events are of the rarer kind: hits of small confidences, misses of large ones.
    """
    rare = cells.weight * np.minimum(cells.h, 1 - cells.h)
    expected, squares = level.sums(np.stack([rare, cells.w2], axis=1)).T
    events = expected * level.near / squares
    return events / (events + 1)


def shares(cells: Neighbours, levels: Sequence[Level]) -> Table:
    """Share of every level in every rung, in each cell: (rungs, levels, cells).

    A rung is a level, with coarser ones standing in where it is not trusted.
    """
    found = np.zeros((len(levels), len(levels), len(cells.h)))
    found[0, 0] = 1.0
    for k, level in enumerate(levels[1:], start=1):
        own = trust(cells, level)
        found[k] = (1 - own) * found[k - 1]
        found[k, k] = own
    return found


def rungs_and_surprise(cells: Neighbours, levels: Sequence[Level]) -> Table:
    """Importances of every rung, and of the coarse level divided by twice v = h (1 - h).

    The last one is what a small error is worth in log loss. Where a neighbourhood expects
    less than one event, v is taken to be what would make it one.
    """
    v, near = cells.h * (1 - cells.h), levels[0].near
    found = shares(cells, levels)
    surprise = np.zeros((1, *found.shape[1:]))
    surprise[0, 0] = 0.5 / np.maximum(v, 1 / near)
    return np.concatenate([found, surprise])


def estimates(
    cells: Neighbours, levels: Sequence[Level], found: Residuals, importance: Table
) -> Table:
    """Mean squared distance with an importance of each level: (importances, data sets)."""
    each = (pairs(cells, x, found, importance[:, i]) for i, x in enumerate(levels))
    return sum(each, start=np.zeros((len(importance), found.r.shape[1])))


# -- what it would say of a calibrated model ---------------------------------------


def simulate(cells: Neighbours, dispersion: float = 1.0) -> tuple[Column, Table]:
    """Estimates of `DRAWS` calibrated data sets with the same confidences.

    Cells that no level tells apart are one; first come the estimates of the data
    themselves, seen as coarsely. `dispersion` is how noisy soft hits are.
    """
    step = 1 / sqrt(cells.effective)
    fine, coarse = (PLACES_OF_LAW / (width * step) for width in (FINE, COARSE))
    key = _rounded(cells.coordinate, fine) + _rounded(cells.rank, coarse)
    few = replace(merged(cells, key - key[0]), groups=None)
    levels, chance = levels_of(few, PLACES_OF_LAW), Chance()
    importance = rungs_and_surprise(few, levels)
    seen = estimates(few, levels, Residuals.of(few), importance)[:, 0]
    drawn = (draw(few, BATCH, chance, dispersion) for _ in range(DRAWS // BATCH))
    law = [estimates(few, levels, part, importance) for part in drawn]
    return seen, np.concatenate(law, axis=1)


@cache
def _first_numbers() -> NDArray[np.float32]:
    """Uniform numbers with which every law begins."""
    found = np.random.default_rng(SEED).random(MOST_SHARED, dtype=np.float32)
    found.flags.writeable = False
    return found


class Chance:
    """The random numbers of every law; uniform ones that come first are drawn once for all.

    They are those of a generator of this seed, which is asked once others are wanted.
    """

    def __init__(self) -> None:
        self.used = 0
        self.rest: np.random.Generator | None = None

    def uniform(self, rows: int, draws: int) -> NDArray[np.float32]:
        """From 0 to 1."""
        count = rows * draws
        if self.rest is None and self.used + count <= MOST_SHARED and count % 2 == 0:
            self.used += count
            found = _first_numbers()[self.used - count : self.used]
            return found.reshape(rows, draws)
        return self._rest().random((rows, draws), dtype=np.float32)

    def normal(self, rows: int, draws: int) -> NDArray[np.float32]:
        """Of mean 0 and variance 1."""
        if rows == 0:
            return np.empty((0, draws), np.float32)
        return self._rest().standard_normal((rows, draws), dtype=np.float32)

    def _rest(self) -> np.random.Generator:
        if self.rest is None:  # a step of the generator is two of these numbers
            bits = np.random.PCG64(SEED).advance(self.used // 2)
            self.rest = np.random.Generator(bits)
        return self.rest


def draw(
    cells: Neighbours, draws: int, chance: Chance, dispersion: float = 1.0
) -> Residuals:
    """Residuals of calibrated models, a column each.

    Rows of unequal weight are as noisy as N^2 / W2 rows of equal weight.
    """
    whole = cells.weight**2 / cells.w2
    n = np.maximum(np.ceil(whole * (1 - ROUND_OFF)), 1.0)
    p = np.clip(np.minimum(cells.h, 1 - cells.h), 0.0, 0.5)
    scale = np.sqrt(dispersion * cells.w2 / n) * np.where(cells.h > 0.5, -1.0, 1.0)
    events = binomial_less_mean(n, p, draws, chance, scale)
    w, slope = cells.w2 / cells.weight, (1 - 2 * p) * scale
    base = scale**2 * n * p * (1 - p)
    return Residuals(events, (np.zeros_like(w), base, w * base), (w, slope, w * slope))


ROUND_OFF = 1e-9
"""By so much sums may differ that are the same in exact arithmetic."""

MANY_EVENTS = 12.0


def binomial_less_mean(
    n: Column, p: Column, draws: int, chance: Chance, scale: Column | float = 1.0
) -> Table:
    """Binomial draws less their mean, times `scale`, for each pair of n and p <= 1/2.

    Exact where few events are expected; else normal with the binomial's skewness.
    """
    mean, out = n * p, np.empty((len(n), draws))
    scale = np.broadcast_to(scale, n.shape)[:, None]
    # The order of a mirror image is the same, and round-off has no say in it.
    order = np.argsort(np.round(mean, 9), kind="stable")
    first = int(np.searchsorted(mean[order], MANY_EVENTS - ROUND_OFF))
    few, many = order[:first], order[first:]
    events = _quantiles(n[few], p[few], chance.uniform(len(few), draws))
    events -= mean[few, None]
    events *= scale[few]
    out[few] = events
    skewed = (1 - 2 * p[many, None]) / 6  # times x^2 - 1, whose variance is 2
    sd = np.sqrt((mean * (1 - p))[many, None] - 2 * skewed**2)
    x = chance.normal(len(many), draws)
    out[many] = (sd * x + skewed * (x * x - 1)) * scale[many]
    return out


def _quantiles(n: Column, p: Column, uniform: NDArray[np.float32]) -> Table:
    """Number of events at each probability; means n p are in increasing order."""
    if engines.wanted():
        return compiled.filled("events", uniform.shape, n, p, uniform)
    events = np.zeros(uniform.shape)
    term = (1 - p) ** n
    below, odds, largest, k = term, p / (1 - p), uniform.max(axis=1, initial=0.0), 0
    while (left := (largest > below) & (n > k)).any():
        first = int(left.argmax())
        events[first:] += uniform[first:] > below[first:, None]
        term = term * np.maximum(n - k, 0.0) / (k + 1) * odds
        below, k = below + term, k + 1
    return np.minimum(events, n[:, None])


def _rounded(x: Column, scale: float) -> Column:
    """The place of each x, from the middle outwards: a mirror image has the same places.

    Where x lies between two places, round-off has no say in it.
    """
    return np.rint((x - 0.5) * (scale * (1 - ROUND_OFF)))


# -- groups of clusters ------------------------------------------------------------


def products(
    cells: Neighbours, groups: Groups, level: Level, importance: Table
) -> Table:
    """Products of the residuals of groups: (importances, groups, groups).

    What `pairs` sums over rows, by the groups of the two rows. Only products of different
    groups say something of the accuracy: rows of one group may depend on each other.
    """
    R = groups.residual.T
    S = level.smooth(level.gather(R)) / level.near[level.start, None]
    found = []
    for x in importance:
        P = level.gather(x[:, None] * R).T @ S
        size = level.gather((x * cells.weight)[:, None])
        found.append(P + P.T - S.T @ (size * S))
    return np.stack(found) / cells.n


def between_groups(
    cells: Neighbours, groups: Groups, levels: Sequence[Level], importance: Table
) -> Table:
    """The same over all levels, without products of a group with itself.

    The rest is scaled to stand for them too.
    """
    each = (products(cells, groups, x, importance[:, i]) for i, x in enumerate(levels))
    found = sum(each, start=np.zeros(()))
    found[:, np.arange(len(groups)), np.arange(len(groups))] = 0.0
    share = groups.weight.sum(axis=1) / cells.n
    return found / (1 - float(share @ share))


def with_random_signs(between: Table) -> Table:
    """Sums of products of groups whose residuals are as often of either sign.

    Signs leave sizes as they are, so those of few groups vary too little: as Student's
    law, squared, is wider than the normal.
    """
    groups, rng = between.shape[1], np.random.default_rng(SEED)
    signs = rng.choice([-1.0, 1.0], (groups, DRAWS))
    wider = (student(0.95, groups - 1) / quantile(0.95)) ** 2
    return wider * np.einsum("kgd,gd->kd", between @ signs, signs)


# -- the ladder --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class AgainstChance:
    """A number, and those of simulated data sets.

    Where hardly anything can happen many of these are the same, but for `round_off`.
    """

    found: float
    chance: Column
    round_off: float = 0.0

    def unusual(self, level: float) -> float:
        """What so few by chance exceed that a two-sided interval leaves out 0."""
        return quantile_of(self.chance, 0.5 + level / 2)

    def rejects(self, level: float) -> bool:
        """Whether the number is larger than that."""
        bound = self.unusual(level)
        return self.found > bound + ROUND_OFF * abs(bound) + self.round_off

    @property
    def p_value(self) -> float:
        """Share of numbers as large, this one among them."""
        bound = self.found - ROUND_OFF * abs(self.found) - self.round_off
        larger = int(np.count_nonzero(self.chance >= bound))
        return (1 + larger) / (1 + len(self.chance))


@dataclass(frozen=True, eq=False)
class Ladder:
    """What each rung says, and what it would say of calibrated models.

    `mixing` are the shares of levels in rungs. `law` has a row for each rung, and a last
    one for the surprise: the mean squared distance of the first rung in units of the
    variance of hits; and a column for each simulated data set. `tested` are the same of
    the data, computed as the law was: what is to be compared with it.
    """

    cells: Neighbours
    levels: Sequence[Level]
    mixing: Table
    dispersion: float
    rungs: Column
    tested: Column
    law: Table

    @classmethod
    def of(cls, cells: Neighbours) -> Ladder:
        """Climb it."""
        levels = levels_of(cells)
        importance = rungs_and_surprise(cells, levels)
        accuracy = np.clip(cells.h + levels[1].means(cells.r1), 0.0, 1.0)
        dispersion = cells.dispersion(accuracy)
        if cells.groups is None:
            found = estimates(cells, levels, Residuals.of(cells), importance)[:, 0]
            tested, law = simulate(cells, dispersion)
        else:
            between = between_groups(cells, cells.groups, levels, importance)
            found, law = between.sum(axis=(1, 2)), with_random_signs(between)
            tested = found
        seen = dispersion, found[:-1], tested, law
        return cls(cells, levels, importance[:-1], *seen)

    @property
    def alone(self) -> Table:
        """What each level says by itself, and its variance by chance: (levels, 2)."""
        cells, v = self.cells, self.dispersion * self.cells.h * (1 - self.cells.h)
        return np.array([at_level(cells, x, np.ones_like(v), v) for x in self.levels])

    @property
    def steps(self) -> Column:
        """What each rung adds to the one before."""
        return np.diff(self.rungs)

    @cached_property
    def units(self) -> Column:
        """How large steps are by chance: their deviation, or what skewness makes of it."""
        steps = np.diff(self.law[:-1], axis=0)
        skewed = np.array([quantile_of(x, 0.975) for x in steps]) / quantile(0.95)
        least = 1e-6 * float(self.law[0].std()) + self.round_off
        return np.maximum(steps.std(axis=1), skewed) + least

    @property
    def round_off(self) -> float:
        """What a rung may be off by where terms cancel that are 0 together."""
        return 1e-13 * float(self.cells.w2r2.sum()) / self.cells.n + 1e-30

    @property
    def sizes(self) -> Column:
        """Of the steps upwards, in units of chance; falls are chance."""
        return np.maximum(self.steps, 0.0) / self.units

    @cached_property
    def belief(self) -> Column:
        """Share of each step that is believed."""
        return believed(self.sizes)

    def _combine(self, rungs: Table) -> Column:
        steps = np.diff(rungs, axis=0)
        belief = believed(np.maximum(steps, 0.0) / self.units[:, None])
        return rungs[0] + (belief * steps).sum(axis=0)

    @cached_property
    def bias(self) -> float:
        """Mean of calibrated models' estimates: what is believed only when it rises.

        The rungs themselves have mean 0, so that of the first need not be simulated.
        """
        return float((self._combine(self.law[:-1]) - self.law[0]).mean())

    @cached_property
    def value(self) -> float:
        """The estimate: the first rung and what is believed of the others, less the bias."""
        return float(self._combine(self.rungs[:, None])[0]) - self.bias

    @cached_property
    def chance(self) -> Column:
        """Values of calibrated models."""
        return self._combine(self.law[:-1]) - self.bias

    @cached_property
    def test(self) -> AgainstChance:
        """Whether the error is larger than chance makes it."""
        found = float(self._combine(self.tested[:-1, None])[0]) - self.bias
        return AgainstChance(found, self.chance, self.round_off)

    @cached_property
    def joint_test(self) -> AgainstChance:
        """The same of the larger of error and surprise, in units of chance.

        A model may be far off where it hardly ever errs, which squares hide.
        """
        plain, surprise = self.test, AgainstChance(float(self.tested[-1]), self.law[-1])
        least = self.round_off
        one, two = (max(x.unusual(0.95), least) for x in (plain, surprise))
        found = max(plain.found / one, surprise.found / two)
        chance = np.maximum(plain.chance / one, surprise.chance / two)
        return AgainstChance(found, chance, least / min(one, two))

    @cached_property
    def finest(self) -> Level | None:
        """A level four times as fine, too noisy to be believed; None for few rows."""
        cells, width = self.cells, BEYOND / sqrt(self.cells.effective)
        if 2.5 * width * cells.effective < LEAST_BEYOND:
            return None
        return Level.of(cells.coordinate, width, cells.weight)

    @cached_property
    def beyond(self) -> tuple[float, float]:
        """What the finest level says, and its variance by chance."""
        cells, level, last = self.cells, self.finest, float(self.law[-2].var())
        if level is None:
            return float(self.rungs[-1]), last
        own = trust(cells, level)
        mixing = np.concatenate([self.mixing[-1] * (1 - own), own[None]])[None]
        levels = [*self.levels, level]
        if cells.groups is not None:
            between = between_groups(cells, cells.groups, levels, mixing)
            return float(between.sum()), 2 * float((between**2).sum())
        value = estimates(cells, levels, Residuals.of(cells), mixing)
        rest = last * float(cells.weight @ (1 - own) ** 2) / cells.n
        v = self.dispersion * cells.h * (1 - cells.h)
        return float(value[0, 0]), rest + chance_of_pairs(cells, level, own, v)

    @cached_property
    def means(self) -> Table:
        """Kernel means of residuals that each cell sees: a row for each level."""
        return np.stack([level.means(self.cells.r1) for level in self.levels])

    @cached_property
    def shares(self) -> Table:
        """Of each level in the estimate, in each cell."""
        rungs = -np.diff(self.belief, prepend=1.0, append=0.0)
        return np.tensordot(rungs, self.mixing, axes=1)

    @property
    def contributions(self) -> Column:
        """What each cell adds to the estimate, but for a constant; rows are independent."""
        each = (contributions(self.cells, level) for level in self.levels)
        return (self.shares * np.stack(list(each))).sum(axis=0) / self.cells.n

    @property
    def influence(self) -> tuple[Column, Column]:
        """Slope and level by cell: a row adds slope times its residual less level."""
        means, shares = self.means, self.shares
        return 2 * (shares * means).sum(axis=0), (shares * means**2).sum(axis=0)

    @property
    def resolution(self) -> float:
        """Share of the rows that the finest level which is believed looks at at once."""
        fine = len(self.levels) > 2 and self.belief[1] >= 0.5
        return min(2 * self.levels[2 if fine else 1].width, 1.0)
