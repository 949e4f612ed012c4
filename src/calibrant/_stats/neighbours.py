"""Cells of equal confidence, and the coordinate in which they are neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from calibrant._inputs.arrays import Column, Index, Table
from calibrant._inputs.divergences import BUILT_IN, Divergence
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import CELL_SUMS, Cells
from calibrant._sketch.clusters import ClusterSums, cell_of_log_odds
from calibrant._sketch.grid import LOG_ODDS_CELLS, LOG_ODDS_REACH
from calibrant._sketch.ordered import starts_of_values


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Weight and residual of each cell by group of clusters: tables of groups x cells."""

    weight: Table
    residual: Table

    def __len__(self) -> int:
        return len(self.weight)

    def about(self, shift: Column) -> Groups:
        """The same with residuals larger by so much in each cell."""
        return Groups(self.weight, self.residual + self.weight * shift)


MOMENTS = "weight", "hits", "hits2", "r1", "r2", "r3", "r4"
"""Of the rows of a cell, in the order of `CELL_SUMS`."""


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows gathered where their confidence is (nearly) equal, in increasing order.

    Sums are exact; only the place of a row is rounded, to its cell's mean. `r1`..`r4`
    are sums of powers of the residual a - h; `h` and `z` are means of confidence and
    log-odds (cut at +-20), `losses` sums of the full losses. Where rows have weights,
    `w2`, `w2r`, `w2r2` and `w3r2` are sums of w^2, w^2 r, w^2 r^2 and w^3 r^2, else the same
    as `weight`, `r1`, `r2` and `r2`. `groups` are sums by groups of clusters, if any.
    """

    weight: Column
    hits: Column
    hits2: Column
    r1: Column
    r2: Column
    r3: Column
    r4: Column
    h: Column
    z: Column
    losses: Mapping[str, Column]
    w2: Column
    w2r: Column
    w2r2: Column
    w3r2: Column
    groups: Groups | None = None

    @cached_property
    def effective(self) -> float:
        """Number of rows of equal weight that would have as little noise."""
        return self.n**2 / float(self.w2.sum())

    @cached_property
    def n(self) -> float:
        """Total weight."""
        return float(self.weight.sum())

    @cached_property
    def rank(self) -> Column:
        """Mid-rank of each cell, in (0, 1); ties share one."""
        before = np.cumsum(self.weight)
        return (before - 0.5 * self.weight) / before[-1]

    @cached_property
    def coordinate(self) -> Column:
        """(rank + h) / 2: near in it means near in rank and near in probability."""
        return 0.5 * (self.rank + self.h)

    @cached_property
    def two_values(self) -> list[tuple[Column, Column]]:
        """Two hit values per cell, each with its share: their mean and variance.

        They are 1 and 0 for hard labels, where this is exact.
        """
        mean = np.clip(self.hits / self.weight, 0.0, 1.0)
        variance = np.maximum(self.hits2 / self.weight - mean**2, 0.0)
        variance = np.minimum(variance, mean * (1 - mean))
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = mean / (1 - mean)
            up = np.where(mean > 0, np.sqrt(variance / odds), 0.0)
            down = np.where(mean < 1, np.sqrt(variance * odds), 0.0)
        yes, no = np.minimum(mean + up, 1.0), np.maximum(mean - down, 0.0)
        return [(mean, yes), (1 - mean, no)]

    def dispersion(self, accuracy: Column) -> float:
        """Variance of soft hits about an accuracy, relative to hard ones'; 1 for these."""
        if self.hits2.sum() >= self.hits.sum() * (1 - 1e-12):
            return 1.0
        m, hits = accuracy, self.hits
        observed = (self.hits2 - 2 * m * hits + m * m * self.weight).sum()
        hard = (self.weight * m * (1 - m)).sum()
        return float(max(observed, 0.0) / max(hard, 1e-300))

    def about(self, accuracy: Column) -> Neighbours:
        """The same rows, with residuals about another accuracy than the confidence.

        Within a cell, hits are taken to have nothing to do with weights.
        """
        (up, yes), (down, no) = self.two_values
        off = np.stack([yes, no]) - accuracy
        each = self.weight * np.stack([up, down]) * off
        r1, r2, r3, r4 = np.cumprod([each, off, off, off], axis=0).sum(axis=1)
        plain, w = replace(self, r1=r1, r2=r2, r3=r3, r4=r4), self.w2 / self.weight
        return replace(plain, w2r=w * r1, w2r2=w * r2, w3r2=w * w * r2)


def cells_of_sketch(cells: Cells, groups: Groups | None = None) -> Neighbours:
    """The occupied cells of the log-odds grid; `groups` are sums of all of its cells."""
    used = cells.log_odds_sums[0] > 0
    squares = cells.squares_by_log_odds
    extra = None if squares is None else squares[:, used]
    names = list(cells.divergences)
    # Sums side by side in memory, which a mask as an index does not give.
    found = _gathered(np.compress(used, cells.log_odds_sums, axis=1), extra, names)
    if groups is not None:
        tables = groups.weight, groups.residual
        found = replace(found, groups=Groups(*(x[:, used] for x in tables)))
    return found


def groups_of_rows(columns: Columns, group: Index) -> Groups:
    """Sums of rows by group of clusters and cell of the log-odds grid."""
    cell = cell_of_log_odds(columns.confidence)
    w, r = columns.weights, columns.hit - columns.confidence
    return group_sums(cell, LOG_ODDS_CELLS, group, w, w * r)


def groups_of_clusters(found: ClusterSums) -> Groups:
    """The same of a sketch, whose rows are known by cluster and cell."""
    weight, _, residual, *_ = found.sums
    return group_sums(found.cell, LOG_ODDS_CELLS, found.numbers, weight, residual)


def distinct_confidence(columns: Columns) -> Index:
    """Which of the distinct confidences each row has; round-off twins are one."""
    distinct, cell = np.unique(np.abs(columns.confidence), return_inverse=True)
    return (np.cumsum(starts_of_values(distinct)) - 1)[cell]


def cells_of_rows(
    columns: Columns,
    divergences: Mapping[str, Divergence] = BUILT_IN,
    cluster_groups: Index | None = None,
) -> Neighbours:
    """One cell for each distinct confidence; only round-off twins share one."""
    cell = distinct_confidence(columns)
    count = int(cell.max()) + 1
    w, h, a = columns.weights, columns.confidence, columns.hit
    r, z = a - h, np.clip(columns.log_odds, -LOG_ODDS_REACH, LOG_ODDS_REACH)
    values = [np.ones_like(a), a, a * a, r, r**2, r**3, r**4, h, z]
    full = [columns.loss(divergence) for divergence in divergences.values()]
    losses = [np.where(np.isfinite(x), x, 0.0) for x in full]
    sums = [np.bincount(cell, w * x, count) for x in (*values, *losses)]
    extra: Table | None = None
    if columns.squared is not None:
        w2, w3 = columns.squared, columns.squared**2 / w
        squares = w2, w2 * r, w2 * r * r, w3 * r * r
        table = np.stack([np.bincount(cell, x, count) for x in squares])
        extra = table.astype(np.float64, copy=False)
    found = _gathered(np.stack(sums), extra, list(divergences))
    if cluster_groups is None:
        return found
    return replace(found, groups=group_sums(cell, count, cluster_groups, w, w * r))


def group_sums(
    cell: Index, cells: int, group: Index, weight: Column, residual: Column
) -> Groups:
    """Sums of rows by group of clusters and cell."""
    count = int(group.max()) + 1
    key = group * cells + cell
    sums = (np.bincount(key, x, count * cells) for x in (weight, residual))
    return Groups(*(x.reshape(count, cells).astype(np.float64) for x in sums))


def thin(cells: Neighbours, most: int) -> Neighbours:
    """Merge neighbouring cells until few enough are left, evenly in log-odds."""
    if len(cells.z) <= most:
        return cells
    step = (cells.z[-1] - cells.z[0]) / most
    return merged(cells, np.floor((cells.z - cells.z[0]) / step))


def merged(cells: Neighbours, group: Column) -> Neighbours:
    """Put neighbouring cells of the same number together; numbers increase."""
    start = np.flatnonzero(np.diff(group, prepend=-1))
    places = cells.weight * cells.h, cells.weight * cells.z
    moments = [getattr(cells, name) for name in MOMENTS]
    sums = np.stack([*moments, *places, *cells.losses.values()])
    extra = None
    if cells.w2 is not cells.weight:
        squares = np.stack([cells.w2, cells.w2r, cells.w2r2, cells.w3r2])
        extra = np.add.reduceat(squares, start, axis=1)
    names = list(cells.losses)
    found = _gathered(np.add.reduceat(sums, start, axis=1), extra, names)
    if cells.groups is None:
        return found
    tables = cells.groups.weight, cells.groups.residual
    together = Groups(*(np.add.reduceat(x, start, axis=1) for x in tables))
    return replace(found, groups=together)


def _gathered(sums: Table, squares: Table | None, names: list[str]) -> Neighbours:
    weight, hits, hits2, r1, r2, r3, r4, h, z = sums[: len(CELL_SUMS)]
    losses = dict(zip(names, sums[len(CELL_SUMS) :], strict=True))
    # In rows that sum to 1 only nearly, order by h and by z may differ by round-off.
    h, z = (np.maximum.accumulate(x / weight) for x in (h, z))
    noise = (weight, r1, r2, r2) if squares is None else squares
    return Neighbours(weight, hits, hits2, r1, r2, r3, r4, h, z, losses, *noise)
