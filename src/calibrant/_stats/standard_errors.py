"""Standard errors from influence: how much each row moves a number.

Averages, AUROC and discrimination move by an amount that is linear in the row's hit,
given its confidence. Their variance is then a sum over distinct confidences, or, where
rows depend on each other, over clusters of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from calibrant._inputs.arrays import Column, Index, Mask
from calibrant._rows.columns import Columns
from calibrant._sketch.ordered import Ordered, order_of
from calibrant._stats.closed_forms import if_alike


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """``constant + slope * hit`` of a row, at each distinct confidence."""

    constant: Column
    slope: Column


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows, in order of their confidence, and how they depend on each other.

    `clusters` numbers the cluster of each row from 0; None if rows are independent.
    """

    columns: Columns
    ordered: Ordered
    clusters: Index | None = None

    def standard_error(self, influence: Influence) -> float:
        """Of a number that rows move by this influence."""
        if self.clusters is None and self.columns.squared is None:
            return independent_error(influence, self.ordered)
        place = self.place
        values = influence.constant[place] + influence.slope[place] * self.columns.hit
        return self.error_of(values)

    def error_of(self, values: Column) -> float:
        """Standard error of the mean of one number per row."""
        columns = self.columns
        return error_of_mean(values, columns.weight, self.clusters, columns.squared)

    @property
    def df(self) -> float:
        """Degrees of freedom of a standard error."""
        return degrees_of_freedom(self.columns, self.clusters)

    @cached_property
    def place(self) -> Index:
        """Number of the distinct confidence of each row."""
        h, known = np.abs(self.columns.confidence), self.ordered.confidence
        order = order_of(h)  # looked up in order, not here and there in memory
        place = np.empty(len(h), np.intp)
        place[order] = np.searchsorted(known, h[order], side="right") - 1
        return np.maximum(place, 0)  # rows that stand for others may lie below

    def effective(self, share: float, influence: Influence) -> float:
        """Number of independent rows that would know this share as well."""
        n, variance = self.ordered.effective, share * (1 - share)
        if self.clusters is None and self.columns.squared is None:
            return n
        if variance > 0:
            n = min(variance / max(self.standard_error(influence) ** 2, 1e-300), n)
        clusters = self.independent(self.columns.weights)
        return n / float(if_alike(n / clusters, n * min(share, 1 - share)))

    @property
    def per_cluster(self) -> float:
        """Number of rows in a cluster that counts once; 0 without clusters."""
        if self.clusters is None:
            return 0.0
        return self.ordered.effective / self.independent(self.columns.weights)

    def independent(self, weight: Column) -> float:
        """Number of rows, or of clusters, of equal weight that would vary as much.

        `weight` is what a row counts, at most its own.
        """
        if self.clusters is not None:
            squares = float((np.bincount(self.clusters, weight) ** 2).sum())
        else:
            squares = float(
                (weight * self.columns.squares / self.columns.weights).sum()
            )
        return float(weight.sum()) ** 2 / max(squares, 1e-300)


def independent_error(influence: Influence, ordered: Ordered) -> float:
    """Standard error of the mean influence of independent rows that only count."""
    c, s, n = influence.constant, influence.slope, ordered.total
    first = (c * ordered.weight + s * ordered.hits).sum() / n
    second = (c * c * ordered.weight + 2 * c * s * ordered.hits).sum()
    second = (second + (s * s * ordered.hits2).sum()) / n
    return sqrt(max(float(second - first * first), 0.0) / n)


def error_of_mean(
    values: Column,
    weight: Column | None,
    clusters: Index | None = None,
    squared: Column | None = None,
) -> float:
    """Standard error of a weighted mean of rows, independent or in clusters.

    `squared` are sums of squared weights, None where weights only count. A row or cluster
    of large weight pulls the mean towards itself; as in the jackknife, that is undone.

    Examples
    --------
    >>> values = np.array([1.0, 1.0, 0.0, 0.0])
    >>> round(error_of_mean(values, None), 4)
    0.25
    >>> round(error_of_mean(values, None, np.array([0, 0, 1, 1])), 4)
    0.5
    """
    squares, _, factor = parts_of_error(values, weight, clusters, squared)
    return sqrt(float(squares.sum()) * factor)


def parts_of_error(
    values: Column,
    weight: Column | None,
    clusters: Index | None,
    squared: Column | None,
) -> tuple[Column, Column, float]:
    """Squares that rows or clusters add to that of an error, how many add each, a factor."""
    w = np.ones(len(values)) if weight is None else weight
    n = float(w.sum())
    centred = values - (w * values).sum() / n
    if clusters is not None:
        share = np.bincount(clusters, w) / n
        sums = np.bincount(clusters, w * centred) / _left(share)
        return (sums / n) ** 2, np.ones(len(sums)), 1 - 1 / len(sums)
    if squared is None:
        return w * (centred / n) ** 2, w, 1.0
    centred /= _left(squared / w / n)
    apart = max(1 - float(squared.sum() / n**2), 0.0)  # below 0 by round-off
    return squared * (centred / n) ** 2, w * w / squared, apart


def _left(share: Column) -> Column:
    """The share of all others; never less than half, lest one row be everything."""
    return np.maximum(1 - share, 0.5)


def degrees_of_freedom(columns: Columns, clusters: Index | None) -> float:
    """Of a standard error: what is left of rows, or clusters, beside the mean."""
    if clusters is not None:
        return float(clusters.max())
    return columns.effective - 1


def of_right(right_if_hit: Mask) -> Influence:
    """Of the share of right rows: those that hit, or those that do not."""
    slope = np.where(right_if_hit, 1.0, -1.0)
    return Influence((1 - slope) / 2, slope)


def of_confidence_gap(ordered: Ordered) -> Influence:
    """Of mean confidence minus accuracy."""
    return Influence(ordered.confidence, np.full_like(ordered.confidence, -1.0))


def of_auroc(ordered: Ordered, value: float) -> Influence:
    """Of the area under the ROC curve (DeLong et al. 1988)."""
    hits, misses = ordered.hits, ordered.weight - ordered.hits
    below = (np.cumsum(misses) - 0.5 * misses) / misses.sum()
    above = 1 - (np.cumsum(hits) - 0.5 * hits) / hits.sum()
    if_hit = (below - value) * (ordered.total / hits.sum())
    if_miss = (above - value) * (ordered.total / misses.sum())
    return Influence(if_miss, if_hit - if_miss)


def of_squared_error(ordered: Ordered, gap: Column) -> Influence:
    """Of the mean squared gap between accuracy and confidence: 2 gap (a - h) - gap^2."""
    return Influence(-gap * (gap + 2 * ordered.confidence), 2 * gap)


def of_discrimination(ordered: Ordered, gap: Column) -> Influence:
    """Of the variance of the accuracy m = h + gap: (a - mean)^2 - (a - m)^2."""
    accuracy = ordered.confidence + gap
    mean = ordered.hits.sum() / ordered.total
    distance = accuracy - mean
    return Influence(-distance * (accuracy + mean), 2 * distance)
