"""The numba twin of the sums of `cells`, and of the query of `query`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import ROW_SUM_TOLERANCE, Column, Mask
from calibrant._rows import numba_reduce as reduced
from calibrant._rows.columns import Columns
from calibrant._rows.engines import over_ranges
from calibrant._rows.numba_math import exact, exp, inlined, kernel, log_sum, where
from calibrant._sketch import grid

if TYPE_CHECKING:
    from calibrant._inputs.predictions import Predictions


# -- the cell of a confidence: the numba twin of `grid` --------------------------------


@exact
def cell_of(h, cells):
    """As `grid.cell_of`."""
    cell = np.ceil(h * cells) - 1.0
    cell -= where(h <= cell / cells, 1.0, 0.0)
    cell += where(h > (cell + 1.0) / cells, 1.0, 0.0)
    return int(where(cell > 0.0, cell, 0.0))


@exact
def cell_near(h, cells):
    """As `grid.cell_near`."""
    return min(int(h * cells), cells - 1)


@exact
def place_in(cell, h, cells):
    """Where in a probability cell a confidence lies."""
    return h * cells - cell - 0.5


@exact
def log_odds_cell(z):
    """As `grid.log_odds_cell`."""
    if abs(z) == np.inf:
        return 0 if z < 0 else grid.LOG_ODDS_CELLS + 1
    return inner_log_odds_cell(z)


@exact
def inner_log_odds_cell(z):
    """The same of finite numbers, without a branch."""
    scaled = (z + grid.LOG_ODDS_REACH) * (
        grid.LOG_ODDS_CELLS / (2 * grid.LOG_ODDS_REACH)
    )
    return int(min(max(scaled, 0.0), grid.LOG_ODDS_CELLS - 1.0)) + 1


# -- residuals of rows, for SmoothECE --------------------------------------------------


def add_residual(moments: NDArray[np.float64], columns: Columns) -> None:
    """Add the residual a - h of all rows to its (order, cells) moments."""
    h, a, w = columns.confidence, columns.hit, columns.weight

    def work(start: int, stop: int) -> NDArray[np.float64]:
        total, chunk = np.zeros((2, *moments.T.shape))
        for first in range(start, stop, grid.CHUNK):
            part = slice(first, min(first + grid.CHUNK, stop))
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
        cell = cell_near(h[i], cells)
        t = place_in(cell, h[i], cells)
        value = hit[i] - h[i]
        if weight is not None:
            value *= weight[i]
        for j in range(order):
            moments[cell, j] += value
            value *= t


# -- the numba twin of `Cells.update`: every sum of a row added in one go --------------


TURNED = 512
"""Cells that join the table at a time."""


class Block:
    """Sums of rows on their way into the table of a sketch; a cell's lie together."""

    def __init__(
        self,
        table: NDArray[np.float64],
        low: Column | None,
        high: Column | None,
        cells: int,
    ) -> None:
        self.table, self.low, self.high, self.cells = table, low, high, cells
        self._total, self._part = (np.zeros(table.shape[::-1]) for _ in range(2))

    def add(
        self,
        columns: Columns,
        log_odds: Column,
        values: list[Column],
        lost: list[Mask],
    ) -> None:
        """As `cells.Block.add`."""
        h, rest = columns.confidence, (np.stack(values), np.stack(lost), columns.weight)
        rows = h, log_odds, columns.hit, columns.log_odds, *rest, self.cells
        _add_rows(self._part, self.low, self.high, *rows)
        self._total += self._part  # sums of sums have less round-off, that of the twin
        self._part[:] = 0.0

    def flush(self) -> None:
        """Join the table, some cells at a time for the sake of the cache."""
        del self._part  # the table is about to take as much memory
        for start in range(0, len(self._total), TURNED):
            some = slice(start, start + TURNED)
            self.table[:, some] += self._total[some].T


@kernel
def _add_rows(table, low, high, h, own, hit, log_odds, values, lost, weight, cells):
    columns = 1 + len(values)
    for i in range(len(h)):
        p = cell_of(h[i], cells)
        cell, t = p + log_odds_cell(own[i]), place_in(p, h[i], cells)
        sums = table[cell]
        w = 1.0 if weight is None else weight[i]
        power = w
        for j in range(grid.ORDER):
            sums[j] += power
            power *= t
        for c in range(len(values)):
            power = values[c, i]
            for j in range(grid.ORDER):
                sums[(c + 1) * grid.ORDER + j] += power
                power *= t
        a, z = hit[i], log_odds[i]
        r = a - h[i]
        at = columns * grid.ORDER
        sums[at] += w * (a * a)
        sums[at + 1] += w * r
        sums[at + 2] += w * (r * r)
        sums[at + 3] += w * (r * r * r)
        sums[at + 4] += w * (r * r * (r * r))
        sums[at + 5] += w * h[i]
        sums[at + 6] += w * min(max(z, -grid.LOG_ODDS_REACH), grid.LOG_ODDS_REACH)
        if np.isfinite(z):
            sums[at + 7] += w * z
        for d in range(len(lost)):
            sums[at + 8 + d] += w * lost[d, i]
        if low is not None:
            low[cell], high[cell] = min(low[cell], h[i]), max(high[cell], h[i])


# -- sums by cell and hit: what frames do in a query, as one compiled loop -------------


LANES = 256
"""Rows whose cells are found together, by vector instructions."""

BELOW, ABOVE = grid.STEPS, grid.STEPS + 1
"""Rows of tables for log-odds beyond the grid, after those of its cells."""

TINY = 1e-290


@kernel
def count_others(h, hit, loss):
    """How many rows are no hit or miss, or have no confidence or no loss."""
    others = 0
    for i in range(len(h)):
        others += not ((h[i] >= 0) & (h[i] <= 1) & ((hit[i] == 0) | (hit[i] == 1)))
    if loss is not None:
        for i in range(len(h)):
            others += not ((loss[i] >= 0) & (loss[i] < np.inf))
    return others


@kernel
def add_pairs(table, h, hit, loss):
    """Add rows to the sums; `loss` may be None, and the log loss is then summed.

    `table` has the sums of `query.Tally` for each cell, misses before hits, and in its
    last two columns the range of confidences.
    """
    cell, p = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    t, z, x = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for first in range(0, len(h), LANES):
        rows = h[first : first + LANES]
        _find_cells(rows, cell, p, t, z, x)
        for i in range(len(rows)):
            sums = table[2 * cell[i] + int(hit[first + i])]
            _add_to_range(sums, x[i])
            if loss is None:
                _add_log(sums, t[i], z[i], _log_loss(x[i], hit[first + i]))
            else:
                _add_loss(sums, t[i], z[i], np.float64(loss[first + i]))


def add_predictions(
    table: NDArray[np.float64], within: NDArray[np.float64], predictions: Predictions
) -> bool:
    """Add top labels of rows of probabilities; say whether all follow the rules."""
    scores, labels = predictions.scores, np.ascontiguousarray(predictions.labels)
    dtype = np.dtype(np.float64 if scores.dtype == np.float64 else np.float32)
    columns = reduced.new_columns(predictions.k, dtype)
    tolerance = ROW_SUM_TOLERANCE[scores.dtype.name]
    step = max(1, reduced.COPIED_BYTES // (predictions.k * dtype.itemsize))
    offends = np.zeros(len(scores), np.bool_)
    for start in range(0, len(scores), step):
        part = slice(start, start + step)
        rows = np.require(scores[part], dtype, ["C", "A"]).view(np.ndarray)
        rows.flags.writeable = False  # as some inputs are: one type to compile
        given = rows, labels[part], columns, tolerance, offends[part]
        add_probs(table, within, *given)
    return not offends.any()


@kernel
def add_probs(table, within, scores, labels, columns, tolerance, offends):
    """The same for top labels; `within` has residuals by predicted class.

    Rows are reduced as by `numba_reduce.reduce_probs`, and added before they leave the
    cache.
    """
    block = reduced.new_block(scores.dtype)
    cell, p = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    t, z, x = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for first in range(0, len(scores), reduced.LANES):
        rows = scores[first : first + reduced.LANES]
        reduced.add_up(
            reduced.PROBS, rows, labels[first : first + reduced.LANES], columns, block
        )
        reduced.finish_probs(block)
        reduced.mend_probs(rows, block, tolerance, offends, first)
        count = len(rows)
        _find_cells(block.confidence[:count], cell, p, t, z, x)
        _pair_losses(block.log_odds[:count], block.hit[:count], z)
        _add_block(table, within, block, count, cell, p, t, z)


@inlined
def _add_block(table, within, block, count, cell, p, t, unit):
    bins = grid.CELLS // within.shape[1]
    for i in range(count):
        h, log_odds, hit = block.confidence[i], block.log_odds[i], block.hit[i]
        sums = table[2 * cell[i] + int(hit)]
        _add_to_range(sums, h)
        _add_loss(sums, t[i], _finite(log_odds), block.brier[i])
        _add_top(sums, t[i], log_odds, unit[i], block.log[i])
        within[block.best[i], p[i] // bins] += hit - h


@inlined
def _pair_losses(z, hit, losses):
    """The log loss of each pair, softplus(-z) or softplus(z); 0 where z is infinite."""
    for i in range(len(z)):
        size = abs(z[i])
        small = log_sum(1.0, exp(-size))
        right = (hit[i] == 1.0) == (z[i] >= 0.0)
        losses[i] = where(size < np.inf, where(right, small, small + size), 0.0)


@exact
def _finite(x):
    return x if abs(x) < np.inf else 0.0


@inlined
def _find_cells(h, cell, p, t, z, x):
    """As `grid.cell_number` and `grid.place_in_cell`, and log-odds."""
    for i in range(len(h)):
        x[i] = np.float64(h[i])
        inside = (x[i] > TINY) & (x[i] < 1.0)
        some = where(inside, x[i], 0.5)
        z[i] = log_sum(0.0, some / (1.0 - some))
        p[i] = cell_of(x[i], grid.CELLS)
        t[i] = place_in(p[i], x[i], grid.CELLS)
        cell[i] = p[i] + inner_log_odds_cell(z[i])
    for i in range(len(h)):
        if not (TINY < x[i] < 1.0) or abs(z[i]) >= grid.LOG_ODDS_REACH:
            cell[i], z[i] = _at_the_ends(x[i], z[i])


@exact
def _at_the_ends(h, z):
    """The cell and the log-odds, 0 if infinite, of certain and of nearly certain rows."""
    if h == 0.0:
        return 0, 0.0
    if h == 1.0:
        return grid.STEPS - 1, 0.0
    if h <= TINY:
        z = np.log(h)
    return (BELOW if z < 0.0 else ABOVE), z


@inlined
def _log_loss(h, a):
    """The log loss of the pair, 0 where it is infinite."""
    right = h if a == 1 else 1.0 - h
    if right > TINY:
        return -log_sum(0.0, right)
    return -np.log(right) if right > 0.0 else 0.0


@inlined
def _add_to_range(sums, h):
    sums[-2], sums[-1] = min(sums[-2], h), max(sums[-1], h)


@inlined
def _add_loss(sums, t, z, loss):
    t2 = t * t
    t3, t4 = t2 * t, t2 * t2
    sums[0] += 1.0
    sums[1] += t
    sums[2] += t2
    sums[3] += t3
    sums[4] += t4
    sums[5] += t4 * t
    sums[6] += loss * loss
    sums[7] += z
    sums[8] += loss
    sums[9] += loss * t
    sums[10] += loss * t2
    sums[11] += loss * t3
    sums[12] += loss * t4


@inlined
def _add_log(sums, t, z, loss):
    _add_loss(sums, t, z, loss)
    t2 = t * t
    sums[13] += t2 * t2 * t2
    sums[14] += z * t
    sums[15] += z * t2
    sums[16] += z * (t2 * t)
    sums[17] += z * (t2 * t2)


@inlined
def _add_top(sums, t, z, unit, log):
    finite, loss = _finite(z), _finite(log)
    t2 = t * t
    t3, t4 = t2 * t, t2 * t2
    sums[13] += loss
    sums[14] += loss * t
    sums[15] += loss * t2
    sums[16] += loss * t3
    sums[17] += loss * t4
    sums[18] += loss * loss
    sums[19] += log == np.inf
    sums[20] += unit
    sums[21] += z == np.inf
    sums[22] += min(max(finite, -grid.LOG_ODDS_REACH), grid.LOG_ODDS_REACH)
    sums[23] += finite * t
    sums[24] += finite * t2
    sums[25] += finite * t3
    sums[26] += finite * t4
