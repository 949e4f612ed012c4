"""The numba twin of `losses`: one pass over the rows, with the same results."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import ROW_SUM_TOLERANCE
from calibrant._rows.numba_math import (
    exp,
    inlined,
    kernel,
    larger,
    log_sum,
    reordered,
    where,
)

if TYPE_CHECKING:
    from calibrant._inputs.predictions import Predictions
    from calibrant._rows.reduce import Output


# -- row sums without the largest entry --------------------------------------------
#
# Rows go in blocks of `LANES`. They are summed along the row or, if classes are few,
# across the rows of the transposed block, so that vectors are full either way.

LANES, FEW_CLASSES = 128, 32

CHUNK = 4096
"""Entries summed in the precision of the scores; sums of chunks are doubles."""

Block = namedtuple(
    "Block", "best top own rest squares odd hit confidence log_odds brier log"
)
"""One number per row: the place of its largest entry, that entry, and the entry of its
label; the sum of the others, and of their squares; how many are as large as the largest
(or NaN, or negative probabilities); and the outputs.
"""


@inlined
def new_block(dtype):
    """A block to be filled again and again."""
    return Block(
        np.empty(LANES, np.int32), np.empty(LANES, dtype), np.empty(LANES, dtype),
        np.empty(LANES, dtype), np.empty(LANES, dtype), np.empty(LANES, dtype),
        np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES),
        np.empty(LANES),
    )  # fmt: skip


def new_columns(k: int, dtype: Any) -> Any:
    """Where to transpose a block, or None if classes are many.

    numba compiles `add_up` for either, so only what is needed.
    """
    return np.empty((k, LANES), dtype) if k <= FEW_CLASSES else None


@inlined
def add_up(logits, rows, labels, columns, block):
    """Fill in all but the outputs."""
    if columns is not None:
        _sums_across(logits, rows, columns, block)
    for i in range(len(rows)):
        own = rows[i, labels[i]]
        if columns is None:
            top = _largest(rows[i])
            rest, squares, odd = _sums_along(logits, rows[i], top)
            sure = own == top and odd == 1
            block.best[i] = labels[i] if sure else _first(rows[i], top)
            block.top[i], block.odd[i] = top, odd
            block.rest[i], block.squares[i] = rest, squares
        block.own[i] = own
        block.hit[i] = block.best[i] == labels[i]


@inlined
def _term(logits, v, top, zero):
    """What an entry adds to the sums, and whether it is valid and not the largest."""
    if logits:
        return exp(v - top), v - top < zero
    return v, (v >= zero) & (v < top)


@inlined
def _largest(row):
    """The largest entry; any entry if one is NaN."""
    top = row[0]
    for j in range(len(row)):
        top = larger(top, row[j])
    return top


@inlined
def _first(row, value):
    """Where the value is first found."""
    at = 0
    while at < len(row) - 1 and row[at] != value:
        at += 1
    return at


@inlined
def _sums_along(logits, row, top):
    rest, squares, odd = 0.0, 0.0, 0.0
    for first in range(0, len(row), CHUNK):
        s, q, c = _sums_of_part(logits, row[first : first + CHUNK], top)
        rest += s
        squares += q
        odd += c
    return rest, squares, odd


@reordered
def _sums_of_part(logits, part, top):
    zero, one = part.dtype.type(0), part.dtype.type(1)
    rest, squares, odd = zero, zero, zero
    for j in range(len(part)):
        e, plain = _term(logits, part[j], top, zero)
        e = where(plain, e, zero)
        rest += e
        squares += e * e
        odd += where(plain, zero, one)  # a float: integers would take wider vectors
    return rest, squares, odd


@inlined
def _sums_across(logits, rows, columns, block):
    zero, one = rows.dtype.type(0), rows.dtype.type(1)
    best, top = block.best, block.top
    for j in range(len(columns)):
        for i in range(len(rows)):
            columns[j, i] = rows[i, j]
    rest, squares, odd = block.rest, block.squares, block.odd
    for i in range(LANES):
        top[i], best[i] = columns[0, i], 0
        rest[i], squares[i], odd[i] = zero, zero, zero
    for j in range(1, len(columns)):
        for i in range(LANES):
            above = columns[j, i] > top[i]
            top[i] = where(above, columns[j, i], top[i])
            best[i] = where(above, np.int32(j), best[i])
    for j in range(len(columns)):
        for i in range(LANES):
            e, plain = _term(logits, columns[j, i], top[i], zero)
            e = where(plain, e, zero)
            rest[i] += e
            squares[i] += e * e
            odd[i] += where(plain, zero, one)


# -- one pass over the rows --------------------------------------------------------
#
# Outputs are computed for a block of rows as a whole; the few rows for which that is not
# good enough are mended one by one.

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
    """As `losses.hard_losses_of_logits`; further entries as large as the top add 1."""
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
        finite = np.isfinite(top)
        if not finite or (block.odd[i] > 1 and not _all_above(rows[i], -np.inf)):
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
    """As `losses._log_rest`."""
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
    """As `losses.hard_losses_of_probs`."""
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
