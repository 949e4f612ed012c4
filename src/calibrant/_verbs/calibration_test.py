"""`calibration_test`: whether hits like these could come from the stated confidences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, erfc, inf, sqrt
from typing import Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import RowError, as_number, check_choice
from calibrant._base.records import Record
from calibrant._inputs.arrays import Column
from calibrant._inputs.options import Scores, takes_scores, target_of
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import read
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._sketch.ordered import gather, order

ROUGH = 0.008
"""Mean step of a walk, relative to its whole spread, up to which it passes for smooth."""

SIGNIFICANT = 0.05
POINTS_AT_ONCE = 2_000_000

CELLS, REACH = 600, 20.0
"""Cells of log-odds from -20 to 20; one half is an edge between two of them."""


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
    """P(max |B| >= x) of Brownian motion B on [0, 1], by the reflection principle."""
    if x < 0.1:
        return 1.0
    terms = range(ceil(20 / x))
    return min(2 * sum((-1) ** k * normal_tail((2 * k + 1) * x) for k in terms), 1.0)


def range_tail(x: float) -> float:
    """P(max B - min B >= x) of Brownian motion B on [0, 1] (Feller 1951)."""
    if x < 0.2:
        return 1.0
    terms = range(1, ceil(40 / x) + 1)
    return min(4 * sum((-1) ** (k - 1) * k * normal_tail(k * x) for k in terms), 1.0)


class Draws(NamedTuple):
    """Surprises of several data sets: how many in which replicate and group.

    A surprise is a hit where the confidence is below one half, or a miss where it is
    not. Only surprises are drawn, so a model that is mostly sure costs little. Entries
    are in order of replicate, then group, and no pair occurs twice.
    """

    replicates: int
    replicate: NDArray[np.intp]
    group: NDArray[np.intp]
    surprises: Column

    def sums(self, value: Column) -> Column:
        """Sum over each replicate of one number per entry."""
        return np.bincount(self.replicate, value, self.replicates).astype(np.float64)


@dataclass(frozen=True, eq=False)
class NullRows:
    """Rows in groups of equal confidence, in increasing order.

    Attributes
    ----------
    h, rows : arrays
        The distinct confidences, and the rows (or total weight) at each.
    surprises : array
        How many of them turned out against the odds.
    """

    h: Column
    rows: Column
    surprises: Column

    @classmethod
    def of(cls, columns: Columns) -> NullRows:
        """Gather rows whose hits are 0 or 1."""
        found = order(columns).without_twins()
        likely = found.confidence >= 0.5
        surprises = np.where(likely, found.weight - found.hits, found.hits)
        return cls(found.confidence, found.weight, surprises)

    @cached_property
    def chance(self) -> Column:
        """Probability of a surprise, at most one half."""
        return np.minimum(self.h, 1 - self.h)

    @cached_property
    def flip(self) -> Column:
        """What a surprise adds to the sum of hits: 1, or -1 where a hit was likely."""
        return np.where(self.h >= 0.5, -1.0, 1.0)

    @property
    def n(self) -> float:
        """Rows, or total weight."""
        return float(self.rows.sum())

    @cached_property
    def variance(self) -> Column:
        """Variance of the hits in each group, if calibrated."""
        return self.rows * self.h * (1 - self.h)

    @cached_property
    def calm(self) -> Column:
        """Sum of a - h in each group if nothing surprising happens."""
        return -self.flip * self.rows * self.chance

    @property
    def countable(self) -> bool:
        """Whether weights are whole, so that rows can be drawn."""
        return bool(np.all(self.rows == np.round(self.rows)))

    @property
    def contradictions(self) -> float:
        """Rows that turned out otherwise at confidence 0 or 1."""
        return float(self.surprises[self.chance == 0].sum())

    def coarse(self) -> NullRows:
        """The same in at most 600 groups, of equal or nearly equal log-odds."""
        if len(self.h) <= CELLS:
            return self
        with np.errstate(divide="ignore"):
            z = np.clip(np.log(self.h) - np.log1p(-self.h), -REACH, REACH)
        cell = np.floor(z * (CELLS / (2 * REACH)))
        starts = np.diff(cell, prepend=-CELLS) > 0
        sums = self.rows * self.h, self.rows, self.surprises
        claimed, rows, surprises = gather(starts, *sums)
        return NullRows(claimed / rows, rows, surprises)

    def observed(self) -> Draws:
        """The data themselves, as one draw."""
        group = np.flatnonzero(self.surprises)
        return Draws(1, np.zeros_like(group), group, self.surprises[group])

    def redraw(self, replicates: int, rng: np.random.Generator) -> list[Draws]:
        """Data sets of the same confidences whose model is calibrated, in parts."""
        hazard = self.rows * -np.log1p(-self.chance)
        expected = float(hazard.sum())
        few = len(self.h) <= 6 * expected  # a group costs less than a point
        size = len(self.h) if few else expected
        part = max(1, min(replicates, int(POINTS_AT_ONCE / (size + 1))))
        sizes = [part] * (replicates // part)
        sizes += [replicates % part] if replicates % part else []
        draw = self._draw_groups if few else self._draw_rows
        return [draw(size, rng) for size in sizes]

    def _draw_groups(self, replicates: int, rng: np.random.Generator) -> Draws:
        shape = replicates, len(self.h)
        if np.all(self.rows == 1):
            count = (rng.random(shape) < self.chance).astype(float)
        else:
            count = rng.binomial(self.rows.astype(np.int64), self.chance, shape)
        replicate, group = np.nonzero(count)
        return Draws(replicates, replicate, group, count[replicate, group])

    def _draw_rows(self, replicates: int, rng: np.random.Generator) -> Draws:
        # Points of a Poisson process: a row, -log(1 - q) long, holds at least one with
        # probability q, independently of other rows. Replicates are laid end to end.
        length = -np.log1p(-self.chance)
        ends = np.cumsum(self.rows * length)
        whole = ends[-1]
        at = _poisson_points(whole * replicates, rng)
        replicate = np.minimum((at / whole).astype(np.intp), replicates - 1)
        at -= replicate * whole
        group = np.minimum(np.searchsorted(ends, at, side="right"), len(ends) - 1)
        row = np.floor((ends[group] - at) / np.maximum(length[group], 1e-300))
        new = np.ones(len(at), bool)
        new[1:] = (np.diff(replicate) != 0) | (np.diff(group) != 0)
        fresh = new.copy()
        fresh[1:] |= np.diff(row) != 0
        count = np.add.reduceat(fresh, np.flatnonzero(new)) if len(at) else fresh
        return Draws(replicates, replicate[new], group[new], count.astype(float))


def _poisson_points(length: float, rng: np.random.Generator) -> Column:
    """Points of a Poisson process of rate 1 on [0, length), in order."""
    points = np.empty(0)
    reached = 0.0
    while reached < length:
        left = length - reached
        gaps = rng.exponential(size=ceil(left + 4 * left**0.5 + 4))
        more = reached + np.cumsum(gaps)
        points, reached = np.concatenate([points, more]), float(more[-1])
    return points[points < length]


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

    The kernel is that of the second level of `calibrant._stats.ladder`: Gaussian in
    (rank + h) / 2, of width 2 / sqrt(n).
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


def _variance(null: NullRows) -> float:
    return float(null.variance.sum())


METHODS = {
    "kuiper": Method(_kuiper, _variance, range_tail, "Brownian motion"),
    "ks": Method(_ks, _variance, distance_tail, "Brownian motion"),
    "spiegelhalter": Method(
        _spiegelhalter, _spiegelhalter_variance, normal_tail, "normal", sides=2
    ),
    "bootstrap": Method(_smooth_square, _variance, None, "simulated", coarse=True),
}


@dataclass(frozen=True, slots=True)
class CalibrationTest(Record):
    """What a test of calibration found.

    Attributes
    ----------
    statistic, p_value : float
        How far hits are from the confidences, and how often chance alone takes
        calibrated rows as far.
    method : str
        ``"kuiper"``, ``"ks"``, ``"spiegelhalter"`` or ``"bootstrap"``.
    law : str
        Where the p-value is from: ``"normal"``, ``"Brownian motion"`` or
        ``"simulated"``; ``"exact"`` where it must be 0 or 1.
    n, target : float, str
        Rows, or total weight, and what was asked of each row.
    sentence : str
        The same in words.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.calibration_test([1, 1, 0, 1] * 50, confidence=[0.75] * 200)
    >>> found.p_value > 0.5, found.method
    (True, 'kuiper')
    """

    statistic: float
    p_value: float
    method: str
    law: str
    n: float
    target: str
    sentence: str = ""

    def __str__(self) -> str:
        return self.sentence


@takes_scores
def calibration_test(
    y: Any,
    *,
    method: str = "kuiper",
    law: str = "auto",
    resamples: int = 1000,
    rng: Any = 0,
    **given: Unpack[Scores],
) -> CalibrationTest:
    r"""Test whether the hits could come from the stated confidences.

    The null hypothesis is that row i is a hit with probability h_i, independently of
    other rows. No curve is fitted and no bin chosen. Hits must be 0 or 1. Weights count
    rows; where hits are simulated they must be whole.

    Parameters
    ----------
    method : {"kuiper", "ks", "spiegelhalter", "bootstrap"}
        ``"kuiper"`` and ``"ks"`` are the range and the largest absolute value of the
        cumulative differences; ``"spiegelhalter"`` compares the Brier score with the
        one expected of a calibrated model, on both sides; ``"bootstrap"`` redraws the
        debiased squared calibration error of a kernel of adaptive width.
    law : {"auto", "asymptotic", "simulated"}
        Where the p-value comes from. ``"auto"`` simulates where steps of the cumulative
        differences are too coarse for the asymptotic law (few rows, or ties) and weights
        are whole. ``"bootstrap"`` is always simulated.
    resamples : int
        Data sets to simulate; no simulated p-value is below ``1 / (resamples + 1)``.
    rng : int, Generator or None
        Seed of the simulation.

    Returns
    -------
    CalibrationTest
        Statistic, p-value and a sentence.

    Notes
    -----
    Rows are taken in order of confidence, ties in one step, from the origin on. If the
    model is calibrated, the sums :math:`\sum (a_i - h_i)` are a martingale whose
    variance grows by :math:`h_i (1 - h_i)`. On that clock, and divided by the root of
    the whole variance, it tends to Brownian motion B on [0, 1], not to a bridge: nothing
    is estimated from the hits, so nothing ties the end to 0. The p-values are those of
    the largest absolute value of B and of max B - min B.

    A hit at confidence 0 or a miss at 1 is impossible under the null: p = 0. If there
    is nothing else but confidences of 0 and 1 (or, for Spiegelhalter, one half),
    nothing could speak against calibration: p = 1. So it is for the bootstrap of a
    single row, since its statistic compares rows with others.

    References
    ----------
    D. J. Spiegelhalter, *Statistics in Medicine* 5, 1986. I. Arrieta-Ibarra et al.,
    *JMLR* 23, 2022. W. Feller, *Annals of Mathematical Statistics* 22, 1951.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> h = np.linspace(0.5, 1, 400)
    >>> came_true = np.random.default_rng(0).random(400) < h
    >>> cal.calibration_test(came_true, confidence=h).p_value > 0.05
    True
    >>> cal.calibration_test(came_true, confidence=h**3).p_value < 0.001
    True
    """
    check_choice(method, "method", tuple(METHODS))
    check_choice(law, "law", ("auto", "asymptotic", "simulated"))
    if not as_number(resamples) >= 1 or resamples % 1:
        said = f"resamples must be a positive whole number; got {resamples!r}."
        raise ValueError(said)
    predictions, columns = read(y, given)
    found = run_test(columns, method, law, resamples, np.random.default_rng(rng))
    found = replace(found, target=target_of(predictions))
    return replace(found, sentence=in_words(found))


def run_test(
    columns: Columns, method: str, law: str, resamples: int, rng: np.random.Generator
) -> CalibrationTest:
    """Test rows that were reduced to columns."""
    if not columns.hard:
        row = int(np.argmax((columns.hit != 0) & (columns.hit != 1)))
        rule, what = "a test of calibration needs hits of 0 or 1;", columns.hit[row]
        remedy = "Soft labels have another variance than h (1 - h)."
        raise RowError(rule, row, f"is {what:.6g}", remedy=remedy)
    null, kind = NullRows.of(columns), METHODS[method]
    plain = CalibrationTest(0.0, 1.0, method, "exact", null.n, "")
    certain = null.contradictions > 0
    if not kind.spread(null) > 0:
        return replace(plain, statistic=inf if certain else 0.0, p_value=1.0 - certain)
    null = null.coarse() if kind.coarse else null
    statistic = float(kind.statistic(null, null.observed())[0])
    if certain:
        return replace(plain, statistic=statistic, p_value=0.0)
    law = _choose_law(null, kind, law)
    if law == "simulated" or kind.tail is None:
        p = _simulated(null, kind, statistic, null.redraw(resamples, rng))
    else:
        p = kind.tail(abs(statistic))
    return replace(plain, statistic=statistic, p_value=p, law=law)


def _choose_law(null: NullRows, kind: Method, law: str) -> str:
    if kind.tail is None and law == "asymptotic":
        raise ValueError("method='bootstrap' has no asymptotic law; leave law out.")
    must = kind.tail is None or law == "simulated"
    if must and not null.countable:
        raise ValueError(
            "sample_weight must be whole numbers where hits are simulated. Use "
            "law='asymptotic' with method='kuiper', 'ks' or 'spiegelhalter'."
        )
    if must or (law == "auto" and null.countable and not is_smooth(null)):
        return "simulated"
    return kind.law


def _simulated(
    null: NullRows, kind: Method, statistic: float, draws: list[Draws]
) -> float:
    redrawn = np.concatenate([kind.statistic(null, part) for part in draws])
    if kind.sides == 2:
        redrawn, statistic = np.abs(redrawn), abs(statistic)
    slack = 1e-9 * np.abs(redrawn).max()  # equal but for round-off counts as equal
    return float((1 + (redrawn >= statistic - slack).sum()) / (1 + len(redrawn)))


def in_words(found: CalibrationTest) -> str:
    """One sentence that claims no more than the p-value does."""
    size = f"({found.method}, {found.n:,.10g} row{'' if found.n == 1 else 's'})"
    p = found.p_value
    told = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if found.law == "exact" and p == 0:
        said = "p = 0: a confidence of 0 or 1 was contradicted"
    elif found.law == "exact":
        said = "p = 1: nothing here could speak against calibration"
    elif p < SIGNIFICANT:
        said = f"{told}: hits would hardly be so far from the confidences"
        said += " if these were right"
    else:
        said = (
            f"{told}: nothing here speaks against calibration, which is no proof of it"
        )
    return f"{said} {size}."
