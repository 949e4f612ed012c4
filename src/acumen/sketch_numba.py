"""The numba twin of `Sketch.update`: both grids filled by one pass over the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.columns import Columns
from acumen.grid import CHUNK, ORDER, Moments
from acumen.math_numba import kernel
from acumen.threads import over_ranges

exact = njit(error_model="numpy")


def add_sums(
    moments: Moments,
    log_odds_sums: NDArray[np.float64],
    columns: Columns,
    values: list[Column | None],
    reach: float,
) -> None:
    """Add rows to the moments and to the sums on the log-odds grid.

    `values` are the columns of `moments`, weights included: weight (None for ones),
    hit, then loss and slope of each divergence.
    """

    def work(start: int, stop: int) -> tuple[NDArray[Any], NDArray[Any]]:
        # What belongs to one cell lies together, for the sake of the cache.
        by_cell = np.zeros((moments.shape[2], len(values), ORDER))
        by_log_odds = np.zeros(log_odds_sums.shape[::-1])
        sums = np.empty_like(by_cell), np.empty_like(by_log_odds)
        for first in range(start, stop, CHUNK):
            part = slice(first, min(first + CHUNK, stop))
            rows = (columns.confidence[part], columns.log_odds[part], columns.hit[part])
            table = np.ones((len(values), part.stop - first))
            for row, value in zip(table, values, strict=True):
                if value is not None:
                    row[:] = value[part]
            _add_rows(*map(np.ascontiguousarray, rows), table, reach, *sums)
            by_cell += sums[0]  # sums of sums, so that rounding does not build up
            by_log_odds += sums[1]
        return by_cell, by_log_odds

    for by_cell, by_log_odds in over_ranges(work, len(columns)):
        moments += by_cell.transpose(1, 2, 0)
        log_odds_sums += by_log_odds.T


@kernel
def _add_rows(h, log_odds, hit, values, reach, moments, sums):
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
