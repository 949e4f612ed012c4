"""`canonical_calibration_error`: how right whole probability vectors are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isfinite, sqrt
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np

from calibrant._base.checks import check_choice
from calibrant._base.records import (
    SLACK,
    Amount,
    Estimate,
    OneOf,
    Positive,
    Range,
    Record,
    Whole,
)
from calibrant._base.views import Printed
from calibrant._inputs.arrays import Column, Index, Mask, Table
from calibrant._inputs.options import (
    Scores,
    Settings,
    read_given,
    takes_scores,
    with_target,
)
from calibrant._inputs.predictions import read_clusters
from calibrant._rows.losses import log_probabilities
from calibrant._rows.reduce import reduce_to_columns, spell_out
from calibrant._stats import closed_forms
from calibrant._stats.close_pairs import LEAST_ROWS
from calibrant._stats.platt import LARGEST_VARIANCE
from calibrant._stats.standard_errors import error_of_mean
from calibrant._verbs.features import check_rows

FOLDS = 5

LEAST_LOG, LEAST_START = -60.0, -600.0
"""Logarithms are cut here, so that 0 can be tempered, and gives no 0."""

MOST_SLOPE, MOST_STEPS, TOLERANCE = 50.0, 50, 1e-9
LEAST_INFORMATION = 1e-9

PRIOR = 1.0
"""Rows' worth of the start that each neighbourhood is given, for log."""

SQUARES = tuple(0.5 / 2**j for j in range(9))
"""Squares of the widths tried, each half the one before: from 0.71 to 0.044."""

CHOOSING_ROWS = 1000
"""Rows of each half at which widths are compared, with all rows as neighbours."""

LEAST_NEIGHBOURS = 1.0
"""A width is too narrow if half the rows have less kernel weight of others."""

MOST_CLASSES, BLOCK, TILE = 10, 256, 512

MOST_ROWS = 20_000
"""All pairs of rows are compared; of more rows, so many are drawn."""


@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """Logarithms of n x k probabilities, labels as distributions, and weights.

    `weight` and `squared` are as in `Columns`, `clusters` number those of the rows, if any.
    """

    log_probs: Table
    labels: Table
    weight: Column
    squared: Column
    clusters: Index | None = None

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def k(self) -> int:
        """Number of classes."""
        return self.labels.shape[1]

    @property
    def probs(self) -> Table:
        """The probabilities."""
        return np.exp(self.log_probs)

    @property
    def worth(self) -> Column:
        """Importance of one of the rows that each stands for."""
        return self.squared / self.weight

    def take(self, rows: Index | Mask) -> Vectors:
        """Some of the rows."""
        clusters = None if self.clusters is None else self.clusters[rows]
        tables = self.log_probs[rows], self.labels[rows]
        return Vectors(*tables, self.weight[rows], self.squared[rows], clusters)

    def parts(self, count: int, rng: np.random.Generator) -> Index:
        """Number of the part of each row; the rows of a cluster share one."""
        units = len(self) if self.clusters is None else int(self.clusters.max()) + 1
        part = np.empty(units, np.intp)
        part[rng.permutation(units)] = np.arange(units) % count
        return part if self.clusters is None else part[self.clusters]


def read_vectors(y: Any, given: Scores, function: str, cluster: Any = None) -> Vectors:
    """Read and check rows; those of weight 0 are dropped."""
    if given.get("confidence") is not None:
        raise ValueError(
            f"{function} is about whole vectors, not confidence=: pass probs= or logits=."
        )
    predictions = read_given(y, with_target(given, "top-label", function))
    check_rows(y, given, cluster=cluster)
    if predictions.scores.ndim == 1:
        predictions = spell_out(predictions)
    reduce_to_columns(predictions)  # checks every row that counts
    ones = np.ones(len(predictions.scores))
    weight = ones if predictions.weight is None else predictions.weight
    squared = weight if predictions.squared is None else predictions.squared
    counts = weight > 0
    with np.errstate(divide="ignore"):
        log_probs = log_probabilities(predictions.kind, predictions.scores[counts])
    labels = predictions.labels[counts]
    if not predictions.soft:
        labels = np.eye(predictions.k)[labels]
    clusters, _ = read_clusters(cluster, predictions)
    weights = weight[counts], squared[counts]
    return Vectors(log_probs, labels.astype(np.float64), *weights, clusters)


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Logarithms of tempered probabilities, and the standard error of each."""

    log_probs: Table
    error: Table

    def take(self, rows: Index | Mask) -> Start:
        """Some of the rows."""
        return Start(self.log_probs[rows], self.error[rows])


def tempered(vectors: Vectors, rng: np.random.Generator) -> Start:
    """Temper each row by the folds it is not in: where local fits start from.

    What a temperature explains, neighbours, far apart in many dimensions, need not.
    """
    fold = vectors.parts(FOLDS, rng)
    start = Start(*np.zeros((2, *vectors.log_probs.shape)))
    for f in range(FOLDS):
        here = fold == f
        z = np.maximum(vectors.log_probs[here], LEAST_LOG)
        slope, error = fit_slope(vectors.take(~here))
        q = temper(z, slope)
        start.log_probs[here] = np.maximum(q, LEAST_START)
        start.error[here] = error * (z - (np.exp(q) * z).sum(axis=1, keepdims=True))
    return start


def temper(z: Table, slope: float) -> Table:
    """Logarithms of probabilities raised to a power, and divided by their sum."""
    z = slope * z
    z -= z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def fit_slope(vectors: Vectors) -> tuple[float, float]:
    """The inverse temperature of least log loss, and its standard error.

    Newton steps at most double or halve it, from 1 on, and end where nothing depends on
    it; the error is then 0.
    """
    z, w = np.maximum(vectors.log_probs, LEAST_LOG), vectors.weight
    aim = float(w @ (vectors.labels * z).sum(axis=1))
    slope, information = 1.0, 0.0
    for _ in range(MOST_STEPS):
        p = np.exp(temper(z, slope))
        mean = (p * z).sum(axis=1)
        information = float(w @ ((p * z * z).sum(axis=1) - mean * mean))
        if not information > LEAST_INFORMATION:
            return slope, 0.0
        before, step = slope, (aim - float(w @ mean)) / information
        least = max(slope + step, 0.5 * slope, 1 / MOST_SLOPE)
        slope = min(least, 2 * slope, MOST_SLOPE)
        if abs(slope - before) < TOLERANCE * before:
            break
    return slope, _spread(vectors, z, slope, information) / information


def _spread(vectors: Vectors, z: Table, slope: float, information: float) -> float:
    """Standard deviation of the slope of the loss, by rows or by clusters."""
    w, clusters = vectors.weight, vectors.clusters
    if clusters is None:
        return sqrt(information * float(vectors.squared.sum() / w.sum()))
    score = ((vectors.labels - np.exp(temper(z, slope))) * z).sum(axis=1)
    sums = np.bincount(clusters, w * score)
    return sqrt(float(sums @ sums))


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """Weighted sums around some rows, themselves (or their clusters) left out.

    `mass` sums K with the row itself, `others` and `spread` sum K and K^2 without it;
    `hits` and `claims` sum K times labels and start; `noise` sums K^2 times the squared
    length of their difference. Of clusters, it is sums within each that are squared.
    """

    mass: Column
    others: Column
    spread: Column
    hits: Table
    claims: Table
    noise: Column


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What is summed around a row: labels and start of all rows, with their weights."""

    vectors: Vectors
    start: Table

    @cached_property
    def root(self) -> Table:
        """Square roots of probabilities.

        By their distance, Hellinger's, 0.001 and 0.01 are as far apart as 0.5 and 0.57.
        """
        return np.exp(0.5 * self.vectors.log_probs)

    @cached_property
    def columns(self) -> Table:
        """Labels, start and 1, times weights."""
        ones = np.ones((len(self.vectors), 1))
        both = np.concatenate([self.vectors.labels, self.start, ones], axis=1)
        return both * self.vectors.weight[:, None]

    @cached_property
    def lengths(self) -> Column:
        """Squared length of label minus start."""
        return ((self.vectors.labels - self.start) ** 2).sum(axis=1)

    @cached_property
    def squares(self) -> Table:
        """Squared lengths and 1, times squared weights."""
        squared = self.vectors.squared
        return np.stack([squared * self.lengths, squared], axis=1)

    def sums(self, rows: Index, square: float, widths: int) -> list[Near]:
        """Sums around some rows by a kernel of width sqrt(`square`), then halved squares.

        K = exp(-|x - y|^2 / (2 square)), so halving `square` squares K.
        """
        if self.vectors.clusters is None:
            return self._without_rows(rows, square, widths)
        likeness = np.minimum(self.root[rows] @ self.root.T, 1.0)
        K, found = np.exp((likeness - 1) / square), []
        for _ in range(widths):
            found.append(self._without_cluster(K, rows))
            K = K * K
        return found

    def _without_rows(self, rows: Index, square: float, widths: int) -> list[Near]:
        """Neighbours come in tiles whose kernel stays in cache; of K^2, only the noise."""
        plain = np.zeros((widths, len(rows), self.columns.shape[1]))
        noise = np.zeros((widths, len(rows), 2))
        near = self.root[rows] / square
        for first in range(0, len(self.vectors), TILE):
            tile = slice(first, first + TILE)
            K = near @ self.root[tile].T
            K -= 1 / square
            np.exp(np.minimum(K, 0.0, out=K), out=K)
            for j in range(widths):
                plain[j] += K @ self.columns[tile]
                np.multiply(K, K, out=K)
                noise[j] += K @ self.squares[tile]
        both = zip(plain, noise, strict=True)
        return [self._without_row(rows, *found) for found in both]

    def _without_row(self, rows: Index, plain: Table, noise: Table) -> Near:
        v, k, mass = self.vectors, self.vectors.k, plain[:, -1]
        own = v.worth[rows]
        return Near(
            mass,
            mass - own,
            noise[:, 1] - own**2,
            plain[:, :k] - own[:, None] * v.labels[rows],
            plain[:, k:-1] - own[:, None] * self.start[rows],
            noise[:, 0] - own**2 * self.lengths[rows],
        )

    def _without_cluster(self, K: Table, rows: Index) -> Near:
        clusters, k = self.vectors.clusters, self.vectors.k
        assert clusters is not None
        order = np.argsort(clusters, kind="stable")
        first = np.flatnonzero(np.diff(clusters[order], prepend=-1))
        own = np.searchsorted(clusters[order][first], clusters[rows])
        K, columns = K[:, order], self.columns[order]

        def by_cluster(column: Column) -> Table:
            found = np.add.reduceat(K * column, first, axis=1)
            found[np.arange(len(rows)), own] = 0.0
            return found

        mass = by_cluster(columns[:, -1])
        hits, claims = np.empty((2, len(rows), k))
        noise = np.zeros(len(rows))
        for j in range(k):
            hit, claim = by_cluster(columns[:, j]), by_cluster(columns[:, k + j])
            hits[:, j], claims[:, j] = hit.sum(axis=1), claim.sum(axis=1)
            noise += ((hit - claim) ** 2).sum(axis=1)
        others = mass.sum(axis=1)
        return Near(others, others, (mass**2).sum(axis=1), hits, claims, noise)


class Gains(NamedTuple):
    """Per row: the gain held out, the noise in the fit, how far it moves, and others."""

    held_out: Column
    noise: Column
    size: Column
    neighbours: Column


Gain = Callable[[Vectors, Start, Near], Gains]
"""Of some rows, from where they start and the sums around them."""


def brier_gains(vectors: Vectors, start: Start, near: Near) -> Gains:
    r"""Gains of the squared error.

    With q the start and g the kernel mean of e - q without the row itself, the fit moves
    p by :math:`u = q + g - p` and gains :math:`2 (e - p) \cdot u - |u|^2`, whose mean
    misses d_CAL by the variances of g and q (and by the square of what the kernel smooths
    away).
    """
    p, e, q = vectors.probs, vectors.labels, np.exp(start.log_probs)
    share = 1 / np.maximum(near.mass, 1.0)
    g = share[:, None] * (near.hits - near.claims)
    noise = share**2 * near.noise
    noise += ((q * start.error) ** 2).sum(axis=1)
    move = q + g - p
    size = (move**2).sum(axis=1)
    gain = 2 * ((e - p) * move).sum(axis=1) - size
    return Gains(gain, noise, size, near.others)


def log_gains(vectors: Vectors, start: Start, near: Near) -> Gains:
    """Gains of the log loss: the start times observed over expected hits nearby."""
    e, q = vectors.labels, np.exp(start.log_probs)
    hits = np.maximum(near.hits, 0.0) + PRIOR * q
    claims = np.maximum(near.claims, 0.0) + PRIOR * q
    log_m = start.log_probs + np.log(hits) - np.log(claims)
    log_m -= np.log(np.exp(log_m).sum(axis=1, keepdims=True))
    m = np.exp(log_m)
    possible = np.isfinite(vectors.log_probs)
    rise = log_m - vectors.log_probs  # infinite where a class was held impossible
    gain = _times(e, rise)
    size = _times(np.where(possible, m, 0.0), rise)
    # Variance of the logarithm of observed over expected hits.
    others = np.maximum(near.others, 1e-12)
    narrow = np.maximum(near.spread, 0.0) / others
    share = np.minimum(claims / (others + PRIOR)[:, None], 1.0)
    spread = narrow[:, None] * (1 - share) / claims
    spread = np.minimum(spread + start.error**2, LARGEST_VARIANCE)
    noise = 0.5 * (m * spread).sum(axis=1)
    return Gains(gain, noise, size, near.others)


def _times(weight: Table, values: Table) -> Column:
    """Sums over classes, where a weight of 0 counts for nothing."""
    return (weight * np.where(weight > 0, values, 0.0)).sum(axis=1)


GAINS: Mapping[str, Gain] = {"brier": brier_gains, "log": log_gains}


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Rows, where their recalibration starts, and what it gains."""

    vectors: Vectors
    start: Start
    gain: Gain

    def cross_fitted_gains(
        self, rng: np.random.Generator
    ) -> tuple[Gains, tuple[float, float]]:
        """Gains of all rows, each half at the width the other chose; and the widths."""
        first, second = self._halved(rng)
        squares = self.choose_square(second), self.choose_square(first)
        halves = zip((first, second), squares, strict=True)
        parts = [self.gains(half, [square])[0] for half, square in halves]
        back = np.argsort(np.concatenate([first, second]))
        joined = Gains(*(np.concatenate(x)[back] for x in zip(*parts, strict=True)))
        return joined, (sqrt(squares[0]), sqrt(squares[1]))

    def _halved(self, rng: np.random.Generator) -> tuple[Index, Index]:
        """Two halves of the rows in random order; no cluster is in both."""
        order = rng.permutation(len(self.vectors))
        if self.vectors.clusters is None:
            return order[: len(order) // 2], order[len(order) // 2 :]
        half = self.vectors.parts(2, rng)[order]
        return order[half == 0], order[half == 1]

    def choose_square(self, rows: Index) -> float:
        """The squared width of the greatest gain on some of these rows, left out."""
        rows = rows[:CHOOSING_ROWS]
        chosen, most = SQUARES[0], -inf
        if not rows.size:
            return chosen
        for square, found in zip(SQUARES, self.gains(rows, SQUARES), strict=True):
            total = float(self.vectors.weight[rows] @ found.held_out)
            crowded = np.median(found.neighbours) >= LEAST_NEIGHBOURS
            if crowded and total > most:
                chosen, most = square, total
        return chosen

    def gains(self, rows: Index, squares: Sequence[float]) -> list[Gains]:
        """Gains of some rows at widths whose squares halve from one to the next."""
        every, parts = self.vectors, []
        around = Surroundings(every, np.exp(self.start.log_probs))
        for first in range(0, max(len(rows), 1), BLOCK):
            at = rows[first : first + BLOCK]
            known = every.take(at), self.start.take(at)
            near = around.sums(at, squares[0], len(squares))
            parts.append([self.gain(*known, x) for x in near])
        return [
            Gains(*(np.concatenate(x) for x in zip(*one, strict=True)))
            for one in zip(*parts, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class CanonicalError(Printed, Record):
    """The calibration error of whole probability vectors.

    Attributes
    ----------
    divergence : str
        ``"brier"`` (summed over classes) or ``"log"``.
    k, n : int, float
        Number of classes, and how many rows those given stand for.
    rows, rows_used : int
        Rows given, and those compared with each other: all, up to 20,000.
    calibration : Estimate
        The debiased error, unclipped: slightly negative is possible.
    held_out, standard_error : float
        What the local recalibration gains on rows left out of it: lower on average.
    plugin : float
        How far it moves them, which noise inflates.
    bandwidths : pair of float
        Widths of the kernel, each for the half of the rows that had no say in it: a
        distance between square roots of probabilities.

    Examples
    --------
    >>> import calibrant as cal
    >>> p = [[0.5, 0.3, 0.2], [0.2, 0.6, 0.2]] * 30
    >>> found = cal.canonical_calibration_error([0, 1, 2] * 20, probs=p)
    >>> found.rows_used, bool(found.held_out < found.calibration)
    (60, True)
    """

    divergence: Annotated[str, OneOf(("brier", "log"))]
    k: Annotated[int, Range(2, 10)]
    n: Positive
    rows: Whole
    rows_used: Whole
    calibration: Annotated[Estimate, Range()]
    held_out: Annotated[float, Range()]
    plugin: Amount
    standard_error: Amount
    bandwidths: tuple[Positive, Positive]

    def _disagreement(self) -> str | None:
        if self.rows_used <= self.rows <= self.n * (1 + SLACK):
            return None
        return (
            f"must use at most its {self.rows} rows, of which n is at least the number"
        )

    def __str__(self) -> str:
        rows = f"{self.rows:,} examples"
        if self.rows_used < self.rows:
            rows += f", {self.rows_used:,} of them compared"
        text = f"full d_CAL ({self.divergence}, {self.k} classes, {rows})"
        ends = self.calibration.interval
        shown = "" if ends is None else f" [{ends[0]:.5f}, {ends[1]:.5f}]"
        return f"{text}: {self.calibration:.5f}{shown}, held out {self.held_out:.5f}"


@takes_scores
def canonical_calibration_error(
    y: Any,
    *,
    divergence: str = "brier",
    cluster: Any = None,
    level: float = 0.95,
    rng: Any = 0,
    **given: Unpack[Scores],
) -> CanonicalError:
    r"""Calibration error of the whole probability vector, for up to ten classes.

    It asks for the labels of all rows that got the same vector, not just the same
    confidence, and is never less than the confidence calibration error. Scores are
    `probs` or `logits`.

    Parameters
    ----------
    divergence : {"brier", "log"}
        Whose calibration error; Brier is summed over classes.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other. Rows then have neighbours
        in other clusters only, and the interval is as wide as clusters ask for.
    level : float
        Coverage of the interval.
    rng : int or numpy.random.Generator
        Seed of folds, and of the rows drawn where there are more than 20,000.

    Returns
    -------
    CanonicalError
        The debiased error with its interval, and what it is made of.

    Notes
    -----
    Rows are first tempered, by a temperature fitted without their fold. What remains of
    the residual is averaged over other rows with a Gaussian kernel of the Hellinger
    distance, of the width, among nine, that predicts the labels of left-out rows of the
    other half best. The estimate is the loss this saves on left-out rows plus the noise
    it pays for, as in one dimension; a calibrated model gets about 0 on average. What
    the kernel smooths away is missed, and not in the interval: the more classes and the
    fewer rows, the more of what no temperature explains.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(3), 2000)
    >>> true = np.sqrt(p) / np.sqrt(p).sum(axis=1, keepdims=True)
    >>> y = (true.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    >>> found = cal.canonical_calibration_error(y, probs=p)
    >>> low, high = found.calibration.interval
    >>> bool(low < ((true - p) ** 2).sum(axis=1).mean() < high)
    True
    """
    check_choice(divergence, "divergence", tuple(GAINS))
    seed = Settings(divergence=divergence, level=level, rng=rng).checked().rng
    vectors = read_vectors(y, given, "canonical_calibration_error", cluster)
    if vectors.k > MOST_CLASSES:
        raise ValueError(
            f"canonical_calibration_error takes at most {MOST_CLASSES} classes, got "
            f"{vectors.k}: with more, rows have no neighbours. Use target='class-wise'."
        )
    return _error_of_vectors(vectors, divergence, level, np.random.default_rng(seed))


def _error_of_vectors(
    vectors: Vectors, divergence: str, level: float, rng: np.random.Generator
) -> CanonicalError:
    n, rows = float(np.rint(vectors.weight / vectors.worth).sum()), len(vectors)
    if rows > MOST_ROWS:
        vectors = vectors.take(np.sort(rng.choice(rows, MOST_ROWS, replace=False)))
    field = Field(vectors, tempered(vectors, rng), GAINS[divergence])
    found, widths = field.cross_fitted_gains(rng)
    weight = vectors.weight
    held_out, noise, size = (float(weight @ x / weight.sum()) for x in found[:3])
    value, interval, se = held_out + noise, None, np.inf
    if isfinite(held_out):
        kinds = vectors.clusters, vectors.squared
        se = error_of_mean(found.held_out, weight, *kinds)
        if weight.sum() ** 2 / vectors.squared.sum() >= LEAST_ROWS:
            interval = closed_forms.score(value, se, size, noise, level)
    return CanonicalError(
        divergence=divergence,
        k=vectors.k,
        n=n,
        rows=rows,
        rows_used=len(vectors),
        calibration=Estimate(value, interval, closed_forms.named("score", interval)),
        held_out=held_out,
        plugin=size,
        standard_error=se,
        bandwidths=widths,
    )
