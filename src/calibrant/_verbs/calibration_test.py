"""`calibration_test`: whether hits like these could come from the stated confidences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, erfc, inf, sqrt
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import RowError, check_choice, check_number
from calibrant._base.evaluation import Evaluation
from calibrant._base.records import Positive, Range, Record, Share, Target
from calibrant._base.views import Printed
from calibrant._inputs.arrays import Column, Index, Table
from calibrant._inputs.options import (
    FEWEST_OF_A_TEST,
    RESAMPLES,
    Scores,
    check_rng,
    takes_scores,
    target_of,
)
from calibrant._inputs.predictions import read_clusters
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import read
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._sketch.ordered import gather, order
from calibrant._sketch.sketch import Sketch
from calibrant._verbs.features import check_rows
from calibrant._verbs.reading import read_sample

ROUGH = 0.008
"""Mean step of a walk, relative to its whole spread, up to which it passes for smooth."""

SKEWED, DISTINCT = 0.02, 20
"""Squared skewness and excess kurtosis of a sum that passes for normal, at most, and the
number of confidences that make it up, at least."""

SIGNIFICANT, VERY, ROUND_OFF = 0.05, 0.01, 1e-9
POINTS_AT_ONCE = 2_000_000

CELLS, WALK_CELLS, REACH = 600, 2000, 20.0
"""Cells of log-odds from -20 to 20; one half is an edge between two of them. Walks of
rows with weights or clusters have more."""

SIGNS = "signs of clusters"


def extremes(null: NullRows, draws: Draws) -> tuple[Column, Column]:
    """Lowest and highest sum of a - h over rows up to any confidence, origin included.

    Between surprises the walk falls while h < 1/2 and rises after, so it need only be
    looked at beside surprises, at one half and at the end.
    """
    calm = np.cumsum(null.calm)
    before_calm = np.concatenate([[0.0], calm[:-1]])
    step = null.step[draws.group] * draws.surprises
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


def is_normal(null: NullRows) -> bool:
    """Whether Spiegelhalter's sum is skewed and peaked so little that it passes for normal.

    A two-sided p-value near 0.05 is then right to about 0.0005. Where few confidences make
    up the sum it takes few values, and does not pass.
    """
    slope = (1 - 2 * null.h) ** 2
    v = null.variance * slope
    third = np.square((v * slope).sum()) / v.sum() ** 3
    fourth = (v * slope * (1 - 6 * null.h * (1 - null.h))).sum() / v.sum() ** 2
    some = v.sum() ** 2 / np.square(v).sum()
    return bool(third + abs(fourth) <= SKEWED and some >= DISTINCT)


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
        The distinct confidences, and the rows at each.
    surprises : array
        How many of them turned out against the odds.
    worth : array or float
        What a row counts: 1, or what makes groups of rows with weights vary as much as
        so many.
    """

    h: Column
    rows: Column
    surprises: Column
    worth: Column | float = 1.0

    @classmethod
    def of(cls, columns: Columns) -> NullRows:
        """Gather rows whose hits are 0 or 1."""
        found = order(columns).without_twins()
        likely = found.confidence >= 0.5
        seen = np.where(likely, found.weight - found.hits, found.hits)
        return cls.of_sums(found.confidence, found.weight, found.squared, seen)

    @classmethod
    def of_sums(
        cls, h: Column, mass: Column, squared: Column, seen: Column
    ) -> NullRows:
        """Groups of this mass and sum of squared weights; `seen` is that of surprises.

        Surprises are such that the sum of a - h stays what it is.
        """
        if squared is mass:
            return cls(h, mass, seen)
        rows = np.ceil(mass**2 / squared - ROUND_OFF)
        worth = np.sqrt(squared / rows)
        more = rows - mass / worth
        more[np.abs(more) < ROUND_OFF * rows] = 0.0
        return cls(h, rows, seen / worth + more * np.minimum(h, 1 - h), worth)

    @cached_property
    def chance(self) -> Column:
        """Probability of a surprise, at most one half."""
        return np.minimum(self.h, 1 - self.h)

    @cached_property
    def flip(self) -> Column:
        """Direction of a surprise: up, or down where a hit was likely."""
        return np.where(self.h >= 0.5, -1.0, 1.0)

    @cached_property
    def step(self) -> Column:
        """What a surprise adds to the sum of hits."""
        return self.flip * self.worth

    @cached_property
    def mass(self) -> Column:
        """Weight of each group."""
        return self.rows * self.worth

    @property
    def n(self) -> float:
        """Number of rows, or of rows that would vary as much."""
        return float(self.mass.sum() ** 2 / (self.mass * self.worth).sum())

    @property
    def weighted(self) -> bool:
        """Whether rows have weights, and do not just count."""
        return not isinstance(self.worth, float)

    @cached_property
    def variance(self) -> Column:
        """Variance of the hits in each group, if calibrated."""
        return self.mass * self.worth * self.h * (1 - self.h)

    @cached_property
    def calm(self) -> Column:
        """Sum of a - h in each group if nothing surprising happens."""
        return -self.step * self.rows * self.chance

    @property
    def contradictions(self) -> float:
        """Rows that turned out otherwise at confidence 0 or 1."""
        return float(self.surprises[self.chance == 0].sum())

    def coarse(self, cells: int = CELLS) -> NullRows:
        """The same in at most so many groups, of equal or nearly equal log-odds."""
        if len(self.h) <= cells:
            return self
        starts = starts_of_cells(self.h, cells)
        sums = self.mass * self.h, self.mass, self.surprises * self.worth
        claimed, mass, seen = gather(starts, *sums)
        squared = mass
        if self.weighted:
            (squared,) = gather(starts, self.mass * self.worth)
        return NullRows.of_sums(claimed / mass, mass, squared, seen)

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


def starts_of_cells(h: Column, cells: int) -> NDArray[np.bool_]:
    """Which of these confidences, in order, is the first of its cell of log-odds."""
    with np.errstate(divide="ignore"):
        z = np.clip(np.log(h) - np.log1p(-h), -REACH, REACH)
    cell = np.floor(z * (cells / (2 * REACH)))
    return np.diff(cell, prepend=-cells) > 0


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

    `spread` is 0 where the statistic cannot vary, `smooth` says whether rows are many
    enough for the law. `sides` is 2 if far below 0 is as
    extreme as far above. `coarse` says that groups of nearly equal log-odds will do.
    """

    statistic: Callable[[NullRows, Draws], Column]
    spread: Callable[[NullRows], float]
    tail: Callable[[float], float] | None
    law: str
    smooth: Callable[[NullRows], bool] = is_smooth
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
    slope = null.worth * np.abs(1 - 2 * null.h)
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
    mass, groups, replicates = null.mass, len(null.h), draws.replicates
    K, share = kernel_of(null.h, mass, null.n)
    K *= share[:, None]
    place = draws.group * replicates + draws.replicate
    count = np.bincount(place, draws.surprises, groups * replicates)
    count = count.reshape(groups, replicates)
    g = K @ (null.calm[:, None] + null.step[:, None] * count)
    # Squared residuals: chance^2 as expected, (1 - chance)^2 in case of surprise.
    noise = (mass @ K**2) * np.square(null.worth)
    expected = noise @ (null.rows * null.chance**2)
    square = mass @ g**2 - expected - (noise * (1 - 2 * null.chance)) @ count
    return square / mass.sum()


def kernel_of(h: Column, mass: Column, n: float) -> tuple[Table, Column]:
    """Kernel between groups, and one over the mass that it sees around each."""
    rank = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    x = 0.5 * (rank + h)
    K = GAUSSIAN.profile((x[:, None] - x) * (0.5 * sqrt(n)))
    return K, 1 / np.maximum(K @ mass, 1.0)


def _variance(null: NullRows) -> float:
    return float(null.variance.sum())


METHODS = {
    "kuiper": Method(_kuiper, _variance, range_tail, "Brownian motion"),
    "ks": Method(_ks, _variance, distance_tail, "Brownian motion"),
    "spiegelhalter": Method(
        *(_spiegelhalter, _spiegelhalter_variance, normal_tail, "normal", is_normal),
        sides=2,
    ),
    "bootstrap": Method(_smooth_square, _variance, None, "simulated", coarse=True),
}


# -- rows in clusters: nothing is known of how the rows of one depend on each other, but
# if the model is calibrated its residuals are as likely as their opposites -------------


@dataclass(frozen=True, eq=False)
class Walks:
    """Sums of a - h by cluster (or several) and cell, and what the cells are."""

    residual: Table
    h: Column
    mass: Column
    n: float

    @classmethod
    def of(cls, columns: Columns, groups: Index, cells: int) -> Walks:
        """Gather rows; more distinct confidences than `cells` share log-odds cells."""
        h, w = np.abs(columns.confidence), columns.weights
        distinct, place = np.unique(h, return_inverse=True)
        if len(distinct) > cells:
            place = (np.cumsum(starts_of_cells(distinct, cells)) - 1)[place]
        count, size = int(place.max()) + 1, int(groups.max()) + 1
        mass, claimed = (np.bincount(place, x, count) for x in (w, w * h))
        sums = np.bincount(groups * count + place, w * (columns.hit - h), size * count)
        table = sums.reshape(size, count).astype(np.float64)
        return cls(table, claimed / mass, mass.astype(np.float64), columns.effective)

    def statistics(self, method: str, signs: Table) -> Column:
        """What the residuals of each data set of signs give, those of the rows first."""
        if method == "bootstrap":
            return self._squares(signs)
        if method == "spiegelhalter":
            sums = self.residual @ (1 - 2 * self.h)
            return signs @ sums / sqrt(float(sums @ sums) or 1.0)
        walk = np.cumsum(signs @ self.residual, axis=1)
        low, high = np.minimum(walk.min(axis=1), 0), np.maximum(walk.max(axis=1), 0)
        whole = self.residual.sum(axis=1)
        size = high - low if method == "kuiper" else np.maximum(-low, high)
        return size / sqrt(float(whole @ whole) or 1.0)

    def _squares(self, signs: Table) -> Column:
        """Squared kernel mean of residuals, but for products within a group."""
        K, share = kernel_of(self.h, self.mass, self.n)
        smooth = (K @ self.residual.T) * share[:, None]
        alone = self.mass @ (smooth**2).sum(axis=1)
        return (((smooth @ signs.T) ** 2).T @ self.mass - alone) / self.mass.sum()


def _by_signs(
    columns: Columns, clusters: Index, plain: CalibrationTest, resamples: int, rng: Any
) -> CalibrationTest:
    """P-value by turning the residuals of whole clusters round at random."""
    cells = CELLS if METHODS[plain.method].coarse else WALK_CELLS
    walks = Walks.of(columns, _together(clusters), cells)
    signs = rng.choice([-1.0, 1.0], (resamples + 1, len(walks.residual)))
    signs[0] = 1.0
    found = walks.statistics(plain.method, signs)
    size = np.abs(found) if METHODS[plain.method].sides == 2 else found
    slack = ROUND_OFF * np.abs(found).max()
    p = float((size >= size[0] - slack).mean())
    return replace(plain, statistic=float(found[0]), p_value=p, law=SIGNS)


MOST_SIGNS = 1024


def _together(clusters: Index) -> Index:
    """Which clusters are turned round together: if there are many, by order of rows."""
    _, first, number = np.unique(clusters, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number] % MOST_SIGNS


@dataclass(frozen=True, slots=True)
class CalibrationTest(Printed, Record):
    """What a test of calibration found.

    Attributes
    ----------
    statistic, p_value : float
        How far hits are from the confidences, and how often chance alone takes
        calibrated rows as far.
    method : str
        ``"kuiper"``, ``"ks"``, ``"spiegelhalter"`` or ``"bootstrap"``.
    law : str
        Where the p-value is from: ``"normal"``, ``"Brownian motion"``, ``"simulated"`` or
        ``"signs of clusters"``; ``"exact"`` where it must be 0 or 1.
    n, target : float, str
        Rows, and what was asked of each.
    sentence : str
        The same in words.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.calibration_test([1, 1, 0, 1] * 50, confidence=[0.75] * 200)
    >>> found.p_value > 0.5, found.method
    (True, 'kuiper')
    """

    statistic: Annotated[float, Range(infinite=True)]
    p_value: Share
    method: str
    law: str
    n: Positive
    target: Target
    sentence: str = ""

    def _disagreement(self) -> str | None:
        return None if self.method in METHODS else f"has no method {self.method!r}"

    def __str__(self) -> str:
        return self.sentence


@takes_scores
def calibration_test(
    y: Any,
    *,
    method: str = "kuiper",
    law: str = "auto",
    cluster: Any = None,
    resamples: int = 1000,
    rng: Any = 0,
    **given: Unpack[Scores],
) -> CalibrationTest:
    r"""Test whether the hits could come from the stated confidences.

    The null hypothesis is that row i is a hit with probability h_i, independently of
    rows of other clusters. No curve is fitted and no bin chosen. Hits must be 0 or 1.
    ``y`` may be an `Evaluation` of rows that are at hand.

    Parameters
    ----------
    method : {"kuiper", "ks", "spiegelhalter", "bootstrap"}
        ``"kuiper"`` and ``"ks"`` are the range and the largest absolute value of the
        cumulative differences; ``"spiegelhalter"`` compares the Brier score with the
        one expected of a calibrated model, on both sides; ``"bootstrap"`` redraws the
        debiased squared calibration error of a kernel of adaptive width.
    law : {"auto", "asymptotic", "simulated"}
        Where the p-value comes from. ``"auto"`` simulates where rows have weights, and
        where the asymptotic law is too coarse: for the cumulative differences where one
        step is more than 0.8 % of their spread (below about 16,000 rows, or with ties),
        for Spiegelhalter's z where fewer than some hundred surprises are expected, or
        few confidences differ. ``"bootstrap"`` is always simulated. The record's `law`
        says which it was.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other. The p-value then comes
        from turning round the residuals of whole clusters at random. With some tens of
        clusters ``"spiegelhalter"`` then rejects too often, nearly twice; the others keep
        their level (``simulations/clustered_tests.md`` of the source).
    resamples : int
        Data sets to simulate, 20 or more; no simulated p-value is below
        ``1 / (resamples + 1)``.
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
    ends = FEWEST_OF_A_TEST, RESAMPLES[1]
    check_number(resamples, "resamples", *ends, kind="a whole number")
    check_rng(rng)
    if isinstance(y, Sketch):
        raise TypeError(
            "calibration_test takes no Sketch: it needs every example. Give labels and "
            "scores, or an Evaluation of rows that are at hand."
        )
    if isinstance(y, Evaluation):
        sample = read_sample(y, given, cluster, None, 0.95).sample
        columns, target, clusters = sample.columns, sample.target, sample.clusters
    else:
        predictions, columns = read(y, given)
        check_rows(y, given, cluster=cluster)
        clusters, target = (
            read_clusters(cluster, predictions)[0],
            target_of(predictions),
        )
    seed = np.random.default_rng(rng)
    found = run_test(columns, method, law, resamples, seed, clusters)
    found = replace(found, target=target)
    return replace(found, sentence=in_words(found, clustered=clusters is not None))


def run_test(
    columns: Columns,
    method: str,
    law: str,
    resamples: int,
    rng: np.random.Generator,
    clusters: Index | None = None,
) -> CalibrationTest:
    """Test rows that were reduced to columns; `clusters` of rows, if they have any."""
    if not columns.hard:
        row = int(np.argmax((columns.hit != 0) & (columns.hit != 1)))
        rule, what = "a test of calibration needs outcomes of 0 or 1;", columns.hit[row]
        remedy = "Soft labels have another variance than h (1 - h)."
        raise RowError(rule, row, f"is {what:.6g}", remedy=remedy)
    null, kind = NullRows.of(columns), METHODS[method]
    plain = CalibrationTest(0.0, 1.0, method, "exact", columns.count, "")
    certain = null.contradictions > 0
    if not kind.spread(null) > 0:
        return replace(plain, statistic=inf if certain else 0.0, p_value=1.0 - certain)
    cells = CELLS if kind.coarse else WALK_CELLS if null.weighted else len(null.h)
    null = null.coarse(cells)
    statistic = float(kind.statistic(null, null.observed())[0])
    if certain:
        return replace(plain, statistic=statistic, p_value=0.0)
    law = _choose_law(null, kind, law, clustered=clusters is not None)
    if clusters is not None:
        return _by_signs(columns, clusters, plain, resamples, rng)
    if law == "simulated" or kind.tail is None:
        p = _simulated(null, kind, statistic, null.redraw(resamples, rng))
    else:
        p = kind.tail(abs(statistic))
    return replace(plain, statistic=statistic, p_value=p, law=law)


def _choose_law(null: NullRows, kind: Method, law: str, *, clustered: bool) -> str:
    if law == "asymptotic" and kind.tail is None:
        raise ValueError("method='bootstrap' has no asymptotic law; leave law out.")
    if law == "asymptotic" and (clustered or null.weighted):
        what = "cluster" if clustered else "sample_weight"
        raise ValueError(f"law='asymptotic' does not go with {what}=; leave law out.")
    must = kind.tail is None or law == "simulated" or null.weighted
    if must or (law == "auto" and not kind.smooth(null)):
        return "simulated"
    return kind.law


def _simulated(
    null: NullRows, kind: Method, statistic: float, draws: list[Draws]
) -> float:
    redrawn = np.concatenate([kind.statistic(null, part) for part in draws])
    if kind.sides == 2:
        redrawn, statistic = np.abs(redrawn), abs(statistic)
    slack = ROUND_OFF * np.abs(redrawn).max()  # equal but for round-off counts as equal
    return float((1 + (redrawn >= statistic - slack).sum()) / (1 + len(redrawn)))


TITLES = {
    "kuiper": "Kuiper test",
    "ks": "Kolmogorov-Smirnov test",
    "spiegelhalter": "Spiegelhalter's z",
    "bootstrap": "bootstrap test",
}


def in_words(found: CalibrationTest, *, clustered: bool = False) -> str:
    """One sentence that claims no more than the p-value does."""
    p, name = found.p_value, TITLES[found.method]
    told = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    if found.law == "exact" and p == 0:
        told, said = "p = 0", "a confidence of 0 or 1 was contradicted"
    elif found.law == "exact":
        told, said = "p = 1", "these examples could not show miscalibration"
    elif p < SIGNIFICANT:
        very = "very " if p < VERY else ""
        said = f"such a gap is {very}unlikely if the model is calibrated"
    else:
        said = "no evidence of miscalibration (this does not prove calibration)"
    size = f"{found.n:,.10g} example{'' if found.n == 1 else 's'}"
    size += " in clusters" * (clustered or found.law == SIGNS)
    return f"{told} ({name}, {size}): {said}."
