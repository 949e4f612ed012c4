"""`kernel_calibration_error` and `mmce`: calibration without bins, for any number of classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Annotated, Any, Unpack

import numpy as np

from calibrant._base.checks import check_choice, check_number
from calibrant._base.records import OneOf, Positive, Range, Record, Share, Whole
from calibrant._base.views import Printed
from calibrant._inputs.arrays import Column, Index, Mask, Table, to_numpy
from calibrant._inputs.options import FEWEST_OF_A_TEST, Scores, check_rng, takes_scores
from calibrant._inputs.predictions import read_clusters
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import read
from calibrant._verbs.canonical_calibration_error import Vectors, read_vectors
from calibrant._verbs.features import check_rows

MMCE_WIDTH = 0.4
"""Of Kumar et al.: exp(-|h - h'| / 0.4)."""

LEAST_WIDTH, MOST_WIDTH = 0.01, 100.0
FLOOR = 0.05
"""The median distance is taken for at least this: most rows may be next to certain."""

BLOCK, MOST_ROWS = 2000, 20_000
"""Rows whose pairs are all compared, and rows in such blocks that are compared at all."""

RESAMPLES, MOST_RESAMPLES = 199, 10_000
SIGNIFICANT = 0.05


# -- one dimension: all pairs by one pass over the rows in order ----------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """Rows in order of confidence, and the kernel exp(-|h - h'| / width) between them.

    All pairs are summed by one pass: exp(-(h - h') / width) is a product, so the sum over
    the rows before is a running one.
    """

    h: Column
    weight: Column
    clusters: Index | None
    width: float

    @property
    def scale(self) -> Column:
        """exp(h / width), which no width allowed makes infinite."""
        return np.exp(self.h / self.width)[:, None]

    def pairs(self, residual: Table) -> Column:
        """Sum over pairs of distinct rows, both orders, of kernel, weights and residuals."""
        x = residual * self.weight[:, None]
        before = np.cumsum(x * self.scale, axis=0) - x * self.scale
        return 2 * np.sum(x / self.scale * before, axis=0) - self._within(x)

    def _within(self, x: Table) -> Column | float:
        """What pairs of one cluster add to that."""
        if self.clusters is None:
            return 0.0
        order = np.argsort(self.clusters, kind="stable")
        cuts = np.flatnonzero(np.diff(self.clusters[order])) + 1
        total = np.zeros(x.shape[1])
        for rows in np.split(order, cuts):
            if len(rows) > 1:
                own = Line(self.h[rows], np.ones(len(rows)), None, self.width)
                total += own.pairs(x[rows])
        return total

    @property
    def total(self) -> float:
        """The sum of the weights of all pairs of distinct rows."""
        groups = [] if self.clusters is None else [self.clusters]
        return _weight_of_pairs(self.weight, *groups)


def _weight_of_pairs(weight: Column, clusters: Index | None = None) -> float:
    """Sum of products of weights over pairs of rows of different clusters."""
    own = weight if clusters is None else np.bincount(clusters, weight)
    return float(weight.sum() ** 2 - own @ own)


def in_order(
    columns: Columns, clusters: Index | None, width: Any
) -> tuple[Line, Column]:
    """The rows of a problem in order of confidence, and their residuals."""
    order = np.argsort(columns.confidence, kind="stable")
    h, weight = columns.confidence[order], columns.weights[order]
    found = clusters if clusters is None else clusters[order]
    line = Line(h, weight, found, _width(width, h[:, None], np.arange(len(h))))
    return line, (columns.hit - columns.confidence)[order]


def _width(width: Any, points: Table, rows: Index) -> float:
    """A width, or the median distance of about a thousand rows, which labels do not move."""
    if width != "median":
        return float(width)
    some = points[rows[:: max(1, len(rows) // 1000)]]
    distance = _distances(some)[np.triu_indices(len(some), 1)]
    return max(float(np.median(distance)) if distance.size else 0.0, FLOOR)


def _distances(points: Table) -> Table:
    """Euclidean distances of all pairs of rows."""
    square = np.vecdot(points, points)
    gap = square[:, None] + square - 2 * points @ points.T
    return np.sqrt(np.maximum(gap, 0.0))


# -- vectors: blocks of rows, all pairs of each ---------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Rows with all pairs: kernel times weights, 0 for pairs of one row or cluster."""

    p: Table
    kernel: Table
    spread: Table

    @classmethod
    def of(cls, p: Table, weight: Column, clusters: Index, width: float) -> Block:
        """Compare all pairs."""
        kernel = np.exp(-_distances(p) / width) * np.outer(weight, weight)
        kernel[clusters[:, None] == clusters] = 0
        return cls(p, kernel, kernel @ p)

    def pairs(self, y: Index) -> float:
        """Sum over pairs of kernel times the product of residuals, labels being y."""
        same = 0.0
        for c in np.unique(y):
            rows = np.flatnonzero(y == c)
            same += float(self.kernel[np.ix_(rows, rows)].sum())
        own = self.spread[np.arange(len(y)), y].sum()
        return same - 2 * float(own) + float((self.p * self.spread).sum())

    def products(self, y: Index) -> Table:
        """The same for each pair."""
        residual = np.eye(self.p.shape[1])[y] - self.p
        return self.kernel * (residual @ residual.T)

    def draw(self, rng: np.random.Generator) -> Index:
        """Labels as they would be if the forecasts were right."""
        drawn = np.cumsum(self.p, axis=1) > rng.random((len(self.p), 1))
        drawn[:, -1] = True
        return drawn.argmax(axis=1)


@dataclass(frozen=True, slots=True)
class KernelError(Printed, Record):
    """The squared kernel calibration error, and whether chance explains it.

    Attributes
    ----------
    of : str
        ``"vector"``, all classes together, or ``"confidence"``.
    value : float
        The unbiased estimate (SKCE): 0 on average if the model is calibrated, so it may be
        below.
    p_value : float
        Share of data sets of a calibrated model with as large a value.
    threshold : float
        What 95 % of them stay below.
    width : float
        Of the kernel exp(-distance / width).
    k, n, rows_used : int, float, int
        Classes, rows, and those that were compared.
    law : str
        ``"simulated labels"``, exact for any number of rows, or ``"signs of clusters"``.

    Examples
    --------
    >>> import calibrant as cal
    >>> found = cal.kernel_calibration_error([1, 1, 0, 1] * 50, confidence=[0.9] * 200)
    >>> round(found.value, 4), found.p_value < 0.05  # (0.9 - 0.75)^2 = 0.0225
    (0.0216, True)
    """

    of: Annotated[str, OneOf(("vector", "confidence"))]
    value: Annotated[float, Range()]
    p_value: Share
    threshold: Annotated[float, Range()]
    width: Positive
    k: Whole
    n: Positive
    rows_used: Whole
    law: str

    def __str__(self) -> str:
        what = f"all {self.k} classes" if self.of == "vector" else "the confidence"
        verdict = (
            "Miscalibrated"
            if self.p_value <= SIGNIFICANT
            else "No evidence of miscalibration"
        )
        return (
            f"squared kernel calibration error of {what}, {self.n:,.10g} examples: "
            f"{self.value:.6f}; calibrated models stay below {self.threshold:.6f} in 95 % of "
            f"cases. {verdict} (p = {self.p_value:.3g}, {self.law})."
        )


@takes_scores
def kernel_calibration_error(
    y: Any,
    *,
    of: str | None = None,
    width: float | str = "median",
    cluster: Any = None,
    resamples: int = RESAMPLES,
    rng: Any = 0,
    **given: Unpack[Scores],
) -> KernelError:
    r"""Squared kernel calibration error (SKCE), unbiased, with its test.

    Rows of similar forecasts whose residuals point the same way speak against
    calibration. No bin is chosen and nothing is fitted, so it takes any number of
    classes: d_CAL sees the confidence alone, this the whole vector.

    Parameters
    ----------
    of : {"vector", "confidence"}, optional
        Compare whole vectors, or confidences against hits, for any `target`. By default
        vectors, where there are three columns or more and no other target is asked for.
    width : float or "median"
        Of the kernel exp(-distance / width); the median distance, at least 0.05.
    cluster : array_like, optional
        The cluster of each row, if rows depend on each other. Pairs of one cluster are left
        out, and the test turns round the residuals of whole clusters at random.
    resamples : int
        Data sets to simulate for the test.
    rng : int or numpy.random.Generator
        Seed of the simulation, and of blocks of rows where there are more than 2,000 vectors.

    Returns
    -------
    KernelError
        Value, p-value, and what calibrated models stay below.

    Notes
    -----
    .. math:: \frac{1}{n(n-1)} \sum_{i \ne j} e^{-\|p_i - p_j\| / \nu}
              (e_{y_i} - p_i)^\top (e_{y_j} - p_j)

    If the model is calibrated, labels are drawn from the forecasts themselves. The test does
    just that, so its level is exact for any n: authors' bootstraps are so in the limit.
    Vectors are compared in blocks of 2,000 rows, of 20,000 at most, drawn by place: a
    `frequency` gives just what copies one after the other give, while beyond 2,000 rows
    another order of the rows gives other blocks.

    References
    ----------
    D. Widmann, F. Lindsten, D. Zachariah, *Calibration tests in multi-class
    classification*, NeurIPS 2019.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(20), 800)
    >>> y = (p.cumsum(axis=1) > rng.random((800, 1))).argmax(axis=1)
    >>> cal.kernel_calibration_error(y, probs=p).p_value > 0.05
    True
    """
    ends = FEWEST_OF_A_TEST, MOST_RESAMPLES
    check_number(resamples, "resamples", *ends, kind="a whole number")
    if not (isinstance(width, str) and width == "median"):
        check_number(
            width, "width", LEAST_WIDTH, MOST_WIDTH, kind="'median' or a number"
        )
    check_rng(rng)
    seed = np.random.default_rng(rng)
    if _space(of, given) == "vector":
        vectors = read_vectors(y, given, "kernel_calibration_error", cluster)
        _check_hard(vectors.labels.max(axis=1) == 1)
        return _of_vectors(vectors, width, resamples, seed)
    predictions, columns = read(y, given)
    check_rows(y, given, cluster=cluster)
    clusters, _ = read_clusters(cluster, predictions)
    columns, clusters = _spelt_out(columns, clusters)
    _check_hard((columns.hit == 0) | (columns.hit == 1))
    return _of_confidence(columns, clusters, width, resamples, seed)


def _space(of: str | None, given: Scores) -> str:
    """What is compared: as asked, or what the scores are."""
    check_choice(of, "of", (None, "vector", "confidence"))
    name = "logits" if given.get("probs") is None else "probs"
    scores, plainly = given.get(name), given.get("confidence") is None
    shape = () if scores is None else to_numpy(scores, name).shape
    target = given.get("target")
    plain = target is None or (isinstance(target, str) and target == "top-label")
    several = plainly and plain and len(shape) == 2 and shape[1] > 2
    return of or ("vector" if several else "confidence")


def _check_hard(hard: Mask) -> None:
    if not hard.all():
        raise ValueError(
            "kernel_calibration_error needs labels that are classes, not shares: row "
            f"{int(np.argmin(hard))} is a share. Its test draws labels from the forecasts."
        )


def _spelt_out(
    columns: Columns, clusters: Index | None
) -> tuple[Columns, Index | None]:
    """Rows that stand for several, as so many; they are of one cluster as before."""
    count = np.rint(columns.weights**2 / columns.squares).astype(np.intp)
    if (count == 1).all():
        return columns, clusters
    rows = np.repeat(np.arange(len(columns)), count)
    own = columns.take(rows)
    one = own.squares / own.weights
    plain = Columns(own.confidence, own.exact_log_odds, own.hit, weight=one)
    return plain, None if clusters is None else clusters[rows]


def _of_confidence(
    columns: Columns,
    clusters: Index | None,
    width: Any,
    resamples: int,
    rng: np.random.Generator,
) -> KernelError:
    line, residual = in_order(columns, clusters, width)
    total = line.total or 1.0
    value = float(line.pairs(residual[:, None])[0]) / total
    step = max(1, 4_000_000 // len(line.h))
    drawn = []
    for first in range(0, resamples, step):
        many = min(step, resamples - first)
        drawn.append(line.pairs(_null_residuals(line, residual, many, rng)) / total)
    law = "simulated labels" if clusters is None else "signs of clusters"
    about = line.width, 2, columns.total_weight, len(columns), law
    return _tested("confidence", value, np.concatenate(drawn), *about)


def _null_residuals(
    line: Line, residual: Column, many: int, rng: np.random.Generator
) -> Table:
    """Residuals as they would be if the model were calibrated."""
    if line.clusters is not None:
        signs = rng.choice([-1.0, 1.0], (int(line.clusters.max()) + 1, many))
        return residual[:, None] * signs[line.clusters]
    h = line.h[:, None]
    return (rng.random((len(h), many)) < h) - h


def _of_vectors(
    vectors: Vectors, width: Any, resamples: int, rng: np.random.Generator
) -> KernelError:
    count = np.rint(vectors.weight / vectors.worth).astype(np.intp)
    every = np.repeat(np.arange(len(vectors)), count)
    size = _width(width, vectors.probs, every)
    rows = rng.permutation(every)[:MOST_ROWS]
    value, total, drawn = 0.0, 0.0, np.zeros(resamples)
    for weight, clusters, y, block in _blocks(vectors, rows, size):
        value += block.pairs(y)
        total += _weight_of_pairs(weight, clusters)
        if vectors.clusters is None:
            drawn += [block.pairs(block.draw(rng)) for _ in range(resamples)]
        else:
            signs = rng.choice([-1.0, 1.0], (clusters.max() + 1, resamples))[clusters]
            drawn += np.sum(signs * (block.products(y) @ signs), axis=0)
    law = "simulated labels" if vectors.clusters is None else "signs of clusters"
    about = size, vectors.k, float(len(every)), len(rows), law
    return _tested("vector", value / (total or 1.0), drawn / (total or 1.0), *about)


def _blocks(
    vectors: Vectors, rows: Index, width: float
) -> Iterator[tuple[Column, Index, Index, Block]]:
    """Weights, clusters, labels and pairs of blocks of about equal size."""
    for part in np.array_split(rows, -(-len(rows) // BLOCK)):
        own = vectors.take(part)
        names = np.arange(len(part)) if own.clusters is None else own.clusters
        clusters = np.unique(names, return_inverse=True)[1]
        p = own.probs / own.probs.sum(axis=1, keepdims=True)
        block = Block.of(p, own.worth, clusters, width)
        yield own.worth, clusters, own.labels.argmax(axis=1), block


def _tested(of: str, value: float, drawn: Column, *about: Any) -> KernelError:
    """The record, with the share of drawn values that are as large."""
    slack = 1e-12 * max(abs(value), 1e-300)
    p_value = (1 + int(np.sum(drawn >= value - slack))) / (len(drawn) + 1)
    threshold = float(np.quantile(drawn, 1 - SIGNIFICANT))
    return KernelError(of, value, p_value, threshold, *about)


@takes_scores
def mmce(y: Any, *, width: float = MMCE_WIDTH, **given: Unpack[Scores]) -> float:
    r"""Maximum mean calibration error of Kumar et al., for any number of rows.

    The root of :math:`\sum_{ij} w_i w_j (a_i - h_i)(a_j - h_j) e^{-|h_i - h_j| / \nu}` with
    weights that sum to 1, each row paired with itself, too: noise inflates it as it does an
    ECE. `kernel_calibration_error` has no such bias, and a test.

    Parameters
    ----------
    width : float
        The width of the kernel; the authors' is 0.4.

    References
    ----------
    A. Kumar, S. Sarawagi, U. Jain, *Trainable calibration measures for neural networks from
    kernel mean embeddings*, ICML 2018.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.mmce([1, 1, 0, 1], confidence=[0.9] * 4), 3)  # |0.75 - 0.9|
    0.15
    """
    check_number(width, "width", LEAST_WIDTH, MOST_WIDTH)
    _, columns = read(y, given)
    line, residual = in_order(columns, None, width)
    own = float((line.weight * residual) @ (line.weight * residual))
    pairs = float(line.pairs(residual[:, None])[0])
    return sqrt(max(pairs + own, 0.0)) / float(line.weight.sum())
