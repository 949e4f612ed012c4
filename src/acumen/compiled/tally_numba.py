"""Sums by cell and hit: what engines do in a query, as one compiled loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from acumen.blocks import ROW_SUM_TOLERANCE
from acumen.compiled.kernels_numba import (
    COPIED_BYTES,
    PROBS,
    finish_probs,
    mend_probs,
)
from acumen.compiled.math_numba import exact, exp, inlined, kernel, log_sum, where
from acumen.compiled.sums_numba import LANES as BLOCK
from acumen.compiled.sums_numba import add_up, new_block, new_columns
from acumen.grid import CELLS

if TYPE_CHECKING:
    from acumen.predictions import Predictions

LANES = 256
"""Rows whose cells are found together, by vector instructions."""

BELOW, ABOVE = CELLS + 2001, CELLS + 2002
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

    `table` has the sums of `engines.tally` for each cell, misses before hits, and in its
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
    columns = new_columns(predictions.k, dtype)
    tolerance = ROW_SUM_TOLERANCE[scores.dtype.name]
    step = max(1, COPIED_BYTES // (predictions.k * dtype.itemsize))
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

    Rows are reduced as by `kernels_numba.reduce_probs`, and added before they leave the
    cache.
    """
    block = new_block(scores.dtype)
    cell, p = np.empty(LANES, np.int64), np.empty(LANES, np.int64)
    t, z, x = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for first in range(0, len(scores), BLOCK):
        rows = scores[first : first + BLOCK]
        add_up(PROBS, rows, labels[first : first + BLOCK], columns, block)
        finish_probs(block)
        mend_probs(rows, block, tolerance, offends, first)
        count = len(rows)
        _find_cells(block.confidence[:count], cell, p, t, z, x)
        _pair_losses(block.log_odds[:count], block.hit[:count], z)
        _add_block(table, within, block, count, cell, p, t, z)


@inlined
def _add_block(table, within, block, count, cell, p, t, unit):
    bins = CELLS // within.shape[1]
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
    """As `sketches.cells.cell_number` and `place_in_cell`, and log-odds."""
    for i in range(len(h)):
        x[i] = np.float64(h[i])
        inside = (x[i] > TINY) & (x[i] < 1.0)
        some = where(inside, x[i], 0.5)
        z[i] = log_sum(0.0, some / (1.0 - some))
        scaled = min(max((z[i] + 20.0) * 50.0, 0.0), 1999.0)
        p[i] = _cell_of(x[i])
        t[i] = x[i] * CELLS - p[i] - 0.5
        cell[i] = p[i] + int(scaled) + 1
    for i in range(len(h)):
        if not (TINY < x[i] < 1.0) or abs(z[i]) >= 20.0:
            cell[i], z[i] = _at_the_ends(x[i], z[i])


@exact
def _cell_of(h):
    """As `grid.cell_of`."""
    cell = np.ceil(h * CELLS) - 1.0
    cell -= where(h <= cell / CELLS, 1.0, 0.0)
    cell += where(h > (cell + 1.0) / CELLS, 1.0, 0.0)
    return int(where(cell > 0.0, cell, 0.0))


@exact
def _at_the_ends(h, z):
    """The cell and the log-odds, 0 if infinite, of certain and of nearly certain rows."""
    if h == 0.0:
        return 0, 0.0
    if h == 1.0:
        return CELLS + 2000, 0.0
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
    sums[22] += min(max(finite, -20.0), 20.0)
    sums[23] += finite * t
    sums[24] += finite * t2
    sums[25] += finite * t3
    sums[26] += finite * t4
