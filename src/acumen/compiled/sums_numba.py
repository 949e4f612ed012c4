"""Row sums without the largest entry: the numba twin of the sums in `blocks`.

Rows go in blocks of `LANES`. They are summed along the row or, if classes are few,
across the rows of the transposed block, so that vectors are full either way.
"""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import numpy as np

from acumen.compiled.math_numba import exp, inlined, larger, reordered, where

LANES = 128
FEW_CLASSES = 32
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
