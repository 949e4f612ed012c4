"""Row sums without the largest entry: the numba twin of the sums in `blocks`.

Rows go in blocks of `LANES`. They are summed along the row or, if classes are few,
across the rows of the transposed block, so that vectors are full either way.
"""

from __future__ import annotations

from collections import namedtuple

import numpy as np

from acumen.math_numba import exp, inlined, larger, reordered, where

LANES = 128
FEW_CLASSES = 32
STRIDE = 64
CHUNK = 4096
"""Entries summed in the precision of the scores; sums of chunks are doubles."""

Block = namedtuple(
    "Block", "columns best top own rest squares odd hit confidence log_odds brier log"
)
"""The transposed rows, and one number per row: the place of its largest entry, that
entry, and the entry of its label; the sum of the others, and of their squares; how many
are as large as the largest (or NaN, or negative probabilities); and the outputs.
"""


@inlined
def new_block(k, dtype):
    """A block for k classes, to be filled again and again."""
    new, out = np.zeros((5, LANES), dtype), np.zeros((5, LANES))
    columns = np.zeros((k if k <= FEW_CLASSES else 0, LANES), dtype)
    best = np.zeros(LANES, np.int32)
    return Block(
        columns, best, new[0], new[1], new[2], new[3], new[4],
        out[0], out[1], out[2], out[3], out[4],
    )  # fmt: skip


@inlined
def add_up(logits, rows, block):
    """Fill in top, best, odd, rest and squares."""
    if rows.shape[1] <= FEW_CLASSES:
        _sums_across(logits, rows, block)
    else:
        for i in range(len(rows)):
            block.top[i], block.best[i] = _largest(rows[i])
            sums = _sums_along(logits, rows[i], block.top[i])
            block.rest[i], block.squares[i], block.odd[i] = sums


@inlined
def _term(logits, v, top, zero):
    """What an entry adds to the sums, and whether it is valid and not the largest."""
    if logits:
        return exp(v - top), v - top < zero
    return v, (v >= zero) & (v < top)


@inlined
def _largest(row):
    """The first of the largest entries, and its place; any entry if one is NaN."""
    top = row[0]
    for j in range(len(row)):
        top = larger(top, row[j])
    at, last = 0, len(row) - 1
    while at + STRIDE <= last and not _holds(row[at : at + STRIDE], top):
        at += STRIDE
    while at < last and row[at] != top:
        at += 1
    return top, at


@reordered
def _holds(part, value):
    zero, one = part.dtype.type(0), part.dtype.type(1)
    found = zero
    for j in range(STRIDE):
        found += where(part[j] == value, one, zero)
    return found > zero


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
def _sums_across(logits, rows, block):
    zero, one = rows.dtype.type(0), rows.dtype.type(1)
    columns, best, top = block.columns, block.best, block.top
    for j in range(len(columns)):
        for i in range(len(rows)):
            columns[j, i] = rows[i, j]
    top[:], best[:] = columns[0], 0
    for j in range(1, len(columns)):
        for i in range(LANES):
            above = columns[j, i] > top[i]
            top[i] = where(above, columns[j, i], top[i])
            best[i] = where(above, np.int32(j), best[i])
    block.rest[:], block.squares[:], block.odd[:] = zero, zero, zero
    for j in range(len(columns)):
        for i in range(LANES):
            e, plain = _term(logits, columns[j, i], top[i], zero)
            e = where(plain, e, zero)
            block.rest[i] += e
            block.squares[i] += e * e
            block.odd[i] += where(plain, zero, one)
