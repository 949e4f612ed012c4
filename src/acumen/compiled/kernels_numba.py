"""The numba twin of `blocks`: one pass over the rows, with the same results.

Outputs are computed for a block of rows as a whole; the few rows for which that is not
good enough are mended one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acumen.blocks import ROW_SUM_TOLERANCE
from acumen.compiled.math_numba import exp, inlined, kernel, log_sum, where
from acumen.compiled.sums_numba import LANES, add_up, new_block, new_columns

if TYPE_CHECKING:
    from acumen.predictions import Predictions
    from acumen.reduction import Output

LOGITS, PROBS = True, False
COPIED_BYTES = 1 << 18
TINY = 1e-290
TINY32 = 1e-25
"""Sums of exponentials in single precision below this are taken again in double."""


def range_reducer(
    predictions: Predictions, out: Output
) -> Callable[[int, int], NDArray[Any]]:
    """Return a function that fills `out` for rows start..stop.

    It returns the numbers of rows that break a rule. float16 and rows that are not
    contiguous are copied, a block at a time.
    """
    scores, labels = predictions.scores, np.ascontiguousarray(predictions.labels)
    n, k = scores.shape
    reduce = reduce_logits if predictions.kind == "logits" else reduce_probs
    tolerance = ROW_SUM_TOLERANCE[scores.dtype.name]
    dtype = np.dtype(np.float64 if scores.dtype == np.float64 else np.float32)
    ready = scores.dtype == dtype and scores.flags.c_contiguous and scores.flags.aligned
    rows = n if ready else max(1, COPIED_BYTES // (k * dtype.itemsize))
    filled = out.confidence, out.log_odds, out.hit, out.brier, out.log, out.predicted

    def work(start: int, stop: int) -> NDArray[Any]:
        columns = new_columns(k, dtype)
        bad = [np.empty(0, np.intp)]
        for first in range(start, stop, rows):
            part = slice(first, min(first + rows, stop))
            block = np.require(scores[part], dtype, ["C", "A"]).view(np.ndarray)
            block.flags.writeable = False  # as some inputs are: one type to compile
            offends = np.zeros(len(block), np.bool_)
            outputs = tuple(column[part] for column in filled)
            reduce(block, labels[part], columns, tolerance, outputs, offends)
            bad.append(first + np.flatnonzero(offends))
        return np.concatenate(bad)

    return work


@kernel
def reduce_logits(scores, labels, columns, tolerance, outputs, offends):
    """Reduce rows of logits; the tolerance is for `reduce_probs`."""
    block = new_block(scores.dtype)
    for first in range(0, len(scores), LANES):
        rows = scores[first : first + LANES]
        add_up(LOGITS, rows, labels[first : first + LANES], columns, block)
        _finish_logits(block)
        _mend_logits(rows, block, offends, first)
        _put(block, outputs, first, len(rows))


@kernel
def reduce_probs(scores, labels, columns, tolerance, outputs, offends):
    """Reduce rows of probabilities, which must sum to 1 within the tolerance."""
    block = new_block(scores.dtype)
    for first in range(0, len(scores), LANES):
        rows = scores[first : first + LANES]
        add_up(PROBS, rows, labels[first : first + LANES], columns, block)
        finish_probs(block)
        mend_probs(rows, block, tolerance, offends, first)
        _put(block, outputs, first, len(rows))


@inlined
def _put(block, outputs, first, rows):
    confidence, log_odds, hit, brier, log, predicted = outputs
    for i in range(rows):
        confidence[first + i] = block.confidence[i]
        log_odds[first + i] = block.log_odds[i]
        hit[first + i] = block.hit[i]
        brier[first + i] = block.brier[i]
        log[first + i] = block.log[i]
        predicted[first + i] = block.best[i]


@inlined
def _finish_logits(block):
    """As `blocks.hard_losses_of_logits`; further entries as large as the top add 1."""
    for i in range(LANES):
        hit = block.hit[i] == 1.0
        ties = np.float64(block.odd[i]) - 1.0
        rest, squares = block.rest[i] + ties, block.squares[i] + ties
        e_y = np.float64(exp(block.own[i] - block.top[i]))
        scale = 1.0 / (1.0 + rest)
        missing = where(hit, rest, 1.0 + rest - e_y) * scale
        others = where(hit, squares, 1.0 + max(squares - e_y * e_y, 0.0))
        gap = np.float64(block.top[i]) - np.float64(block.own[i])
        block.rest[i] = rest
        block.confidence[i] = scale
        block.log_odds[i] = -log_sum(0.0, rest)
        block.brier[i] = missing * missing + others * scale * scale
        block.log[i] = log_sum(1.0, rest) + gap


@inlined
def _mend_logits(rows, block, offends, first):
    """Find rows that break a rule; take sums that underflowed again, in double."""
    tiny = TINY32 if rows.itemsize == 4 else TINY
    for i in range(len(rows)):
        top, own = np.float64(block.top[i]), np.float64(block.own[i])
        if not np.isfinite(top) or (
            block.odd[i] > 1 and not _all_above(rows[i], -np.inf)
        ):
            offends[first + i] = True
        elif block.rest[i] < tiny:
            log_rest = _log_rest(rows[i], top, block.best[i])
            rest = np.exp(log_rest)
            block.confidence[i], block.log_odds[i] = 1.0 / (1.0 + rest), -log_rest
            block.log[i] = np.log1p(rest) + (top - own)


@inlined
def _all_above(row, least):
    """Whether no entry is below this, or NaN."""
    below = 0
    for j in range(len(row)):
        below += not row[j] >= least
    return below == 0


@inlined
def _log_rest(row, top, best):
    """As `blocks._log_rest`."""
    second = -np.inf
    for j in range(len(row)):
        if j != best:
            second = max(second, np.float64(row[j]))
    if second == -np.inf:
        return second
    rest = 0.0
    for j in range(len(row)):
        rest += where(j == best, 0.0, exp(np.float64(row[j]) - second))
    return (second - top) + np.log(rest)


@inlined
def finish_probs(block):
    """As `blocks.hard_losses_of_probs`."""
    for i in range(LANES):
        top, p_y = np.float64(block.top[i]), np.float64(block.own[i])
        ties = (np.float64(block.odd[i]) - 1.0) * top
        rest, squares = block.rest[i] + ties, block.squares[i] + ties * top
        wrong = top * top + max(squares - p_y * p_y, 0.0)
        others = where(block.hit[i] == 1.0, squares, wrong)
        block.rest[i] = rest
        block.confidence[i] = min(top, 1.0)
        block.log_odds[i] = log_sum(0.0, top) - log_sum(0.0, rest)
        block.brier[i] = (1.0 - p_y) * (1.0 - p_y) + others
        block.log[i] = max(-log_sum(0.0, p_y), 0.0)


@inlined
def mend_probs(rows, block, tolerance, offends, first):
    """Find rows that break a rule; take logs of 0 and its like again."""
    for i in range(len(rows)):
        top, p_y = np.float64(block.top[i]), np.float64(block.own[i])
        rest = block.rest[i]
        one = abs(top + rest - 1.0) <= tolerance
        if not one or (block.odd[i] > 1 and not _all_above(rows[i], 0.0)):
            offends[first + i] = True
        elif rest < TINY or p_y < TINY:
            block.log_odds[i] = np.log(top) - np.log(rest)
            block.log[i] = -np.log(p_y)
