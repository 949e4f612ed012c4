"""Resampled residuals: what chance alone does to sums of hits minus confidence.

Rows are gathered into a few hundred cells of close confidence, each split into hits and
misses, and the counts are drawn anew. Poisson counts divided by their total are a
multinomial draw of nearly n rows, so the cost does not depend on n. Rows with weights are
as many as would have as little noise, each worth more. Dependent rows are resampled by
whole clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant._base.records import Bins
from calibrant._inputs.arrays import Column, Index, Table
from calibrant._rows.columns import Columns
from calibrant._sketch.ordered import Ordered
from calibrant._stats.bins import mass_bins
from calibrant._stats.poisson import poisson

Rng = np.random.Generator
RANK_CELLS, NEIGHBOURHOODS = 128, 30

SHRINKAGE = 1.0
"""Rows as good as claimed that are added to a bin before its accuracy is believed, so
that a bin of three hits in three is not held to be free of noise."""

CLUSTERS_AT_ONCE, TINY = 4096, 1e-300


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """Neighbouring distinct confidences, gathered into cells.

    A cell begins at `start` among the distinct confidences, and has a mean confidence, a
    weight and a sum of a - h. Hits are drawn with its `chance`: the confidence, moved as
    its neighbourhood is. `spread` is the standard deviation of hits relative to 0s and 1s,
    below 1 for soft labels; `edges` are, for each set of bins, the cells at which those
    that hold rows begin. A row of a cell is `worth` 1, or what weights make of it.
    """

    start: Index
    confidence: Column
    weight: Column
    residual: Column
    chance: Column
    spread: float
    edges: tuple[Index, ...]
    worth: Column

    @property
    def total(self) -> float:
        """Total weight."""
        return float(self.weight.sum())


def cut(ordered: Ordered, bins: Sequence[Bins], width: float) -> Pieces:
    """Cells about `width` wide in confidence and at most 1/128 in rank, or one value.

    No cell crosses an edge of the `bins`, so what they hold is a sum of cells. How far
    accuracy is from confidence is asked in bins of equal mass, whatever `bins` are.
    """
    nearby = mass_bins(ordered, NEIGHBOURHOODS)
    start, (*edges, within) = _starts(ordered, [*bins, nearby], width)
    values = ordered.weight, ordered.claimed, ordered.hits, ordered.hits2
    weight, claimed, hits, hits2 = (np.add.reduceat(x, start) for x in values)
    mean, worth = claimed / weight, np.ones_like(weight)
    if ordered.squared is not ordered.weight:
        worth = np.add.reduceat(ordered.squared, start) / weight
    floor = min(1.5 / ordered.effective, 0.5)  # n hits in n rows leave room for misses
    rows = nearby.count[nearby.count > 0]
    rows = rows**2 / np.add.reduceat(worth * weight, within)
    chance = np.clip(_moved(mean, nearby, within, rows), floor, 1 - floor)
    spread = spread_of(weight, hits, hits2, chance)
    found = start, mean, weight, hits - claimed, chance, spread, tuple(edges), worth
    return Pieces(*found)


def spread_of(weight: Column, hits: Column, hits2: Column, chance: Column) -> float:
    """Standard deviation of hits relative to 0s and 1s drawn with this chance.

    It is 1 if all hits are 0 or 1.
    """
    if hits2.sum() >= hits.sum() * (1 - 1e-12):
        return 1.0
    observed = (hits2 - 2 * chance * hits + chance**2 * weight).sum()
    hard = (weight * chance * (1 - chance)).sum()
    return float(np.sqrt(min(observed / max(hard, TINY), 1.0)))


def sums(place: Index, values: Column, size: int) -> Column:
    """Sum of the values at each place."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def _starts(
    ordered: Ordered, bins: Sequence[Bins], width: float
) -> tuple[Index, tuple[Index, ...]]:
    before = np.cumsum(ordered.weight)
    ranks = np.arange(1, RANK_CELLS) * (before[-1] / RANK_CELLS)
    even = np.arange(1, int(np.ceil(1 / width))) * width
    places = [np.searchsorted(before, ranks), np.searchsorted(ordered.confidence, even)]
    before -= 0.5 * ordered.weight  # half a row is more than round-off
    counts = [b.count[b.count > 0] for b in bins]
    reached = [np.concatenate([[0.0], np.cumsum(count)[:-1]]) for count in counts]
    firsts = [np.searchsorted(before, weight) for weight in reached]
    start = np.unique(np.concatenate([*places, *firsts]))
    start = start[start < len(before)]
    return start, tuple(np.searchsorted(start, first) for first in firsts)


def _moved(confidence: Column, bins: Bins, edges: Index, n: Column) -> Column:
    """Confidence of each cell, moved so that the mean of its bin is the accuracy.

    Down in proportion to itself, or up in proportion to what is left to 1. The bins that
    hold rows have (effectively) `n` of them.
    """
    full = bins.count > 0
    claimed = bins.confidence[full]
    accuracy = (n * bins.accuracy[full] + SHRINKAGE * claimed) / (n + SHRINKAGE)
    down = accuracy / np.maximum(np.maximum(claimed, accuracy), TINY)
    up = (1 - accuracy) / np.maximum(np.maximum(1 - claimed, 1 - accuracy), TINY)
    cells = np.diff(edges, append=len(confidence))
    down, up = np.repeat(down, cells), np.repeat(up, cells)
    return 1 - (1 - confidence * down) * up


def resample(pieces: Pieces, resamples: int, rng: Rng) -> Table:
    """Deviations of each cell's residual from its mean, as shares of all rows.

    Summed over cells, a row of them is a change in accuracy minus confidence.
    """
    w, h, m = pieces.weight, pieces.confidence, pieces.chance
    worth, n = pieces.worth, pieces.weight / pieces.worth
    hits, misses = (poisson(x, resamples, rng) for x in (n * m, n * (1 - m)))
    total = np.maximum(hits @ worth + misses @ worth, worth.min())
    hits *= worth * (m + pieces.spread * (1 - m) - h)
    misses *= worth * (m - pieces.spread * m - h)
    hits += misses
    hits /= total[:, None]
    hits -= w * (m - h) / pieces.total
    return hits


def resample_clusters(
    columns: Columns, cell: Index, cells: int, clusters: Index, resamples: int, rng: Rng
) -> Table:
    """The same where whole clusters of rows count 0, 1, 2, ... times.

    `cell` and `clusters` number the cell, of so many `cells`, and the cluster of each
    row, from 0 on.
    """
    from scipy.sparse import coo_array

    w, r = columns.weights, columns.weights * (columns.hit - columns.confidence)
    shape = int(clusters.max()) + 1, cells
    sums = coo_array((r, (clusters, cell)), shape).tocsr()
    weight = np.bincount(clusters, w, shape[0])
    drawn, total = np.zeros((resamples, shape[1])), np.zeros(resamples)
    for first in range(0, shape[0], CLUSTERS_AT_ONCE):
        part = slice(first, first + CLUSTERS_AT_ONCE)
        size = resamples, len(weight[part])
        # Counts from a table of quantiles: many times faster than one by one.
        chance = rng.integers(0, len(_QUANTILES), size, dtype=np.uint16)
        times = _QUANTILES.take(chance.T)
        drawn += (sums[part].T @ times).T
        total += weight[part] @ times
    drawn /= np.maximum(total, TINY)[:, None]
    drawn -= np.bincount(cell, r, shape[1]) / weight.sum()
    return drawn


_CHANCES = np.exp(-1.0) / np.cumprod([1.0, *range(1, 12)])
_EVEN = (np.arange(1 << 16) + 0.5) / (1 << 16)
_QUANTILES = np.searchsorted(np.cumsum(_CHANCES), _EVEN).astype(np.float64)
"""Of the Poisson law of mean 1, at evenly spaced probabilities."""
