"""The numba twin of `Sums.update`: both grids filled by one pass over the rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.columns import Columns
from acumen.compiled.math_numba import exact, kernel
from acumen.compiled.threads import over_ranges
from acumen.grid import CHUNK, ORDER, Moments


class CellSums:
    """Sums of rows on both grids of a sketch, to be added to it in the end.

    What belongs to one cell lies together, for the sake of the cache.
    """

    def __init__(
        self, moments: Moments, log_odds_sums: NDArray[np.float64], reach: float
    ) -> None:
        self.moments, self.log_odds_sums, self.reach = moments, log_odds_sums, reach
        columns, _, cells = moments.shape
        self.totals = np.zeros((cells, columns, ORDER)), np.zeros(log_odds_sums.T.shape)
        self.chunk = np.empty_like(self.totals[0]), np.empty_like(self.totals[1])

    def add(self, columns: Columns, values: list[Column | None]) -> None:
        """Add rows.

        `values` are the columns of the moments, weights included: weight (None for
        ones), hit, then loss and slope of each divergence.
        """
        for start in range(0, len(columns), CHUNK):
            part = slice(start, start + CHUNK)
            h = np.ascontiguousarray(columns.confidence[part])
            z = np.ascontiguousarray(columns.log_odds[part])
            a = np.ascontiguousarray(columns.hit[part])
            table = np.ones((len(values), len(h)))
            for row, value in zip(table, values, strict=True):
                if value is not None:
                    row[:] = value[part]
            _sum_rows(h, z, a, table, self.reach, *self.chunk)
            for total, chunk in zip(self.totals, self.chunk, strict=True):
                np.add(total, chunk, out=total)  # sums of sums: less round-off

    def finish(self) -> None:
        """Add all to the sketch."""
        self.moments += self.totals[0].transpose(1, 2, 0)
        self.log_odds_sums += self.totals[1].T


@kernel
def _sum_rows(h, log_odds, hit, values, reach, moments, sums):
    moments[:], sums[:] = 0.0, 0.0
    _add_moments(h, values, moments)
    _add_log_odds_sums(h, log_odds, hit, values, reach, sums)


@exact
def _add_moments(h, values, moments):
    cells = len(moments)
    cell = _cell_of(h, cells)
    for i in range(len(h)):
        t = h[i] * cells - cell[i] - 0.5
        for c in range(len(values)):
            value = values[c, i]
            for j in range(ORDER):
                moments[cell[i], c, j] += value
                value *= t


@exact
def _cell_of(h, cells):
    """As `grid.cell_of`."""
    cell = np.empty(len(h), np.intp)
    for i in range(len(h)):
        at = int(np.ceil(h[i] * cells)) - 1
        at -= h[i] <= at / cells
        at += h[i] > (at + 1) / cells
        cell[i] = max(at, 0)
    return cell


@exact
def _add_log_odds_sums(h, log_odds, hit, values, reach, sums):
    cells = len(sums)
    scale = cells / (2 * reach)
    for i in range(len(h)):
        z = min(max(log_odds[i], -reach), reach)
        cell = min(int((z + reach) * scale), cells - 1)
        w, a = values[0, i], hit[i]
        r = a - h[i]
        r2 = r * r
        sums[cell, 0] += w
        sums[cell, 1] += w * a
        sums[cell, 2] += w * (a * a)
        sums[cell, 3] += w * r
        sums[cell, 4] += w * r2
        sums[cell, 5] += w * (r2 * r)
        sums[cell, 6] += w * (r2 * r2)
        sums[cell, 7] += w * h[i]
        sums[cell, 8] += w * z
        for c in range(2, len(values), 2):
            sums[cell, 8 + c // 2] += values[c, i]


def add_residual(moments: NDArray[np.float64], columns: Columns) -> None:
    """Add the residual a - h of all rows to its (order, cells) moments."""
    h, a, w = columns.confidence, columns.hit, columns.weight

    def work(start: int, stop: int) -> NDArray[np.float64]:
        total, chunk = np.zeros((2, *moments.T.shape))
        for first in range(start, stop, CHUNK):
            part = slice(first, min(first + CHUNK, stop))
            rows = np.ascontiguousarray(h[part]), np.ascontiguousarray(a[part])
            _sum_residual(*rows, None if w is None else w[part], chunk)
            total += chunk
        return total

    for total in over_ranges(work, len(columns)):
        moments += total.T


@kernel
def _sum_residual(h, hit, weight, moments):
    moments[:] = 0.0
    cells, order = moments.shape
    for i in range(len(h)):
        cell = min(int(h[i] * cells), cells - 1)  # as `grid.cell_near`
        t = h[i] * cells - cell - 0.5
        value = hit[i] - h[i]
        if weight is not None:
            value *= weight[i]
        for j in range(order):
            moments[cell, j] += value
            value *= t
