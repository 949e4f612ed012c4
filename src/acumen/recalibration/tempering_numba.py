"""The numba twin of `LogLoss`: exponentials and three sums of a row in one go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from acumen.arrays import Column
from acumen.compiled.math_numba import exp, inlined, kernel, larger, reordered, where

if TYPE_CHECKING:
    from acumen.recalibration.rows import Rows

CHUNK = 4096
"""Entries summed in the precision of the scores; sums of chunks are doubles."""

COPIED_BYTES = 1 << 18


def add_up(rows: Rows, beta: float, start: int, stop: int) -> Column:
    """Sums over rows of log loss, slope, curvature, weight, and impossible labels."""
    scores, dtype = rows.scores, rows.work_type
    ready = scores.dtype == dtype and scores.flags.c_contiguous and scores.flags.aligned
    size = stop - start if ready else max(1, COPIED_BYTES // (rows.k * dtype.itemsize))
    total = np.zeros(5)
    for first in range(start, stop, size):
        part = slice(first, min(first + size, stop))
        block = np.require(scores[part], dtype, ["C", "A"]).view(np.ndarray)
        block.flags.writeable = False  # as some inputs are: one type to compile
        weight = np.empty(0) if rows.weight is None else rows.weight[part]
        add_rows(block, rows.y[part], weight, beta, total)
    return total


@kernel
def add_rows(scores, labels, weight, beta, total):
    """Add the sums of these rows; no weights is weight 1."""
    far = -1e30
    for i in range(len(scores)):
        row = scores[i]
        top = row[0]
        for j in range(len(row)):
            top = larger(top, row[j])
        s, s1, s2 = _sums(row, top, row.dtype.type(beta))
        own = max(np.float64(row[labels[i]]) - np.float64(top), far)
        w = 1.0 if len(weight) == 0 else weight[i]
        if own == far:
            total[4] += 1.0
            w = 0.0
        mean = s1 / s
        total[0] += w * (np.log(s) - beta * own)
        total[1] += w * (mean - own)
        total[2] += w * (s2 / s - mean * mean)
        total[3] += w


@inlined
def _sums(row, top, beta):
    s, s1, s2 = 0.0, 0.0, 0.0
    for first in range(0, len(row), CHUNK):
        a, b, c = _sums_of_part(row[first : first + CHUNK], top, beta)
        s += a
        s1 += b
        s2 += c
    return s, s1, s2


@reordered
def _sums_of_part(part, top, beta):
    """Sums of e, e d and e d^2 with d = z - top and e = exp(beta d); NaN stays NaN."""
    zero, far = part.dtype.type(0), part.dtype.type(-1e30)
    s, s1, s2 = zero, zero, zero
    for j in range(len(part)):
        d = part[j] - top
        d = where(d < far, far, d)
        e = exp(beta * d)
        ed = e * d
        s += e
        s1 += ed
        s2 += ed * d
    return s, s1, s2
