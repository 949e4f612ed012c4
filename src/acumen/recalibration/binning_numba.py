"""The numba twin of looking up bins and dividing rows by their sum, in one go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix
from acumen.compiled.math_numba import exact, kernel, reordered


def replace(
    probs: Matrix,
    edges: Column,
    values: Matrix,
    absent: NDArray[np.intp],
    out: Matrix,
) -> None:
    """As `binning.look_up`, then `onevsrest.divide`; `values` by bin, then class."""
    probs = probs.view(np.ndarray)
    probs.flags.writeable = False  # as some inputs are: one type to compile
    replace_rows(probs, probs.dtype.type(edges[1]), edges, values, absent, out)


@kernel
def replace_rows(probs, near, edges, values, absent, out):
    """Nearly all probabilities are in the first bin; `near` is its rounded edge."""
    for i in range(len(probs)):
        row, new = probs[i], out[i]
        _copy(values[0], new)
        for j in range(len(row)):
            if row[j] >= near:
                new[j] = values[_place(np.float64(row[j]), edges), j]
        for c in absent:
            new[c] = row[c]
        total = _sum(new)
        if total == 0:
            _copy(row, new)
            total = _sum(new)
        _divide(new, new.dtype.type(total))


@exact
def _place(p, edges):
    """The bin (a, b] of equal width; a product rounds to one too far at most."""
    last = len(edges) - 2
    at = min(int(p * (last + 1)), last)
    if at > 0 and p <= edges[at]:
        return at - 1
    if at < last and p > edges[at + 1]:
        return at + 1
    return at


@exact
def _copy(source, to):  # much faster than to[:] = source
    for j in range(len(to)):
        to[j] = source[j]


@reordered
def _sum(row):
    total = 0.0
    for j in range(len(row)):
        total += row[j]
    return total


@exact
def _divide(row, total):
    for j in range(len(row)):
        row[j] /= total
