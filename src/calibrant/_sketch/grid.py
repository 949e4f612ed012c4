"""The probability grid: moments per cell, and the node weights they stand for.

A cell of [0, 1] keeps, for each column, the sums of ``value * t**j`` for j = 0..4,
where t is the position within the cell. That is enough to replace the rows, to fifth
order, by weights on the cell centres: for smooth F the sum of F over all rows is a
weighted sum over the centres. Moments of shards add up.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column

ORDER = 5
PAD = ORDER // 2

CELLS = 9600
"""2^7 * 3 * 5^2, so that 5, 10, 15, 20, 25, 30, 50 and 100 bins are whole cells."""

Moments = NDArray[np.float64]
"""Shape (columns, ORDER, cells)."""

CHUNK = 1 << 15


def cell_of(h: Column, cells: int) -> NDArray[np.intp]:
    """Number of the right-closed cell (i / cells, (i + 1) / cells] that holds h.

    0 belongs to the first cell. Edges are the doubles nearest to i / cells, so a
    confidence written as 0.6 lies on the edge 9 / 15 and not beside it.

    Examples
    --------
    >>> cell_of(np.array([0.0, 0.2, 0.6, 0.61, 1.0]), 5)
    array([0, 0, 2, 3, 4])
    """
    cell = np.ceil(h * cells).astype(np.intp) - 1
    cell -= h <= cell / cells  # the product rounded up across an edge
    cell += h > (cell + 1) / cells
    return np.maximum(cell, 0, out=cell)


def cell_near(h: Column, cells: int) -> NDArray[np.intp]:
    """Number of a cell that holds h, or touches it; cheaper than `cell_of`."""
    cell = (h * cells).astype(np.intp)
    return np.minimum(cell, cells - 1, out=cell)


def add_moments(
    moments: Moments,
    h: Column,
    columns: list[Column | None],
    find: Callable[[Column, int], NDArray[np.intp]] = cell_of,
) -> None:
    """Add rows to the moments, column by column; None stands for ones."""
    cells = moments.shape[2]
    for start in range(0, len(h), CHUNK):  # chunks whose temporaries stay in cache
        part = slice(start, start + CHUNK)
        cell = find(h[part], cells)
        t = h[part] * cells
        t -= cell
        t -= 0.5
        power: Column | None = None
        for j in range(moments.shape[1]):
            if j:
                power = t if power is None else power * t
            for sums, column in zip(moments, columns, strict=True):
                sums[j] += _counts(cell, power, column, part, cells)


def _counts(
    cell: NDArray[np.intp],
    power: Column | None,
    column: Column | None,
    part: slice,
    cells: int,
) -> NDArray[np.float64]:
    if column is None:
        value = power
    else:
        value = column[part] if power is None else column[part] * power
    return np.bincount(cell, value, cells).astype(np.float64, copy=False)


def _lagrange() -> NDArray[np.float64]:
    """Lagrange polynomials on the nodes -2..2, as rows of coefficients of t**j."""
    nodes = range(-PAD, PAD + 1)
    rows = []
    for own in nodes:
        poly = np.array([1.0])
        for other in nodes:
            if other != own:
                poly = np.convolve(poly, [-other, 1.0]) / (own - other)
        rows.append(poly)
    return np.array(rows)


_LAGRANGE = _lagrange()


def node_weights(moments: Moments) -> NDArray[np.float64]:
    """Weights on the cell centres, with PAD more nodes beyond each end."""
    columns, _, cells = moments.shape
    weights = np.zeros((columns, cells + 2 * PAD))
    for shift, poly in enumerate(_LAGRANGE):
        weights[:, shift : shift + cells] += np.einsum("cjg,j->cg", moments, poly)
    return weights


def node_places(cells: int) -> Column:
    """Where the nodes of `node_weights` lie."""
    return (np.arange(-PAD, cells + PAD) + 0.5) / cells


def fold(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mirror the nodes beyond 0 and 1 back inside."""
    inside = weights[:, PAD:-PAD].copy()
    inside[:, :PAD] += weights[:, PAD - 1 :: -1]
    inside[:, -PAD:] += weights[:, : -PAD - 1 : -1]
    return inside


def coarsen(moments: Moments, least: float) -> Moments:
    """Merge neighbouring cells, exactly, while at least `least` cells remain."""
    while moments.shape[2] % 2 == 0 and moments.shape[2] // 2 >= least:
        moments = _halve(moments)
    return moments


def _halve(moments: Moments) -> Moments:
    # The cell's own coordinate becomes (t - 1/2) / 2 on its left half and
    # (t + 1/2) / 2 on its right: binomial sums of the old moments.
    left, right = moments[:, :, 0::2], moments[:, :, 1::2]
    merged = np.zeros_like(left)
    for j in range(moments.shape[1]):
        for i in range(j + 1):
            factor = comb(j, i) * 0.5**j * 0.5 ** (j - i)
            sign = -1.0 if (j - i) % 2 else 1.0
            merged[:, j] += factor * (sign * left[:, i] + right[:, i])
    return merged
