"""Both grids: the cell of a confidence, and what the moments of cells stand for.

There are two grids, because confidences live on two scales. The probability grid serves
the paper's curve at any bandwidth, binned errors and SmoothECE; the log-odds grid the
adaptive estimators, which need resolution where h is near 0 or 1. As h goes from 0 to 1
it crosses the edges of both, one after the other: what lies between two of them is a cell
of the path, and cells of either grid are runs of these.

A probability cell keeps, for each column, the sums of ``value * t**j`` for j = 0..4,
where t is the place within the cell. That is enough to replace the rows, to fifth
order, by weights on the cell centres: for smooth F the sum of F over all rows is a
weighted sum over the centres.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant._inputs.arrays import Column, sigmoid
from calibrant._rows import compiled, engines
from calibrant._rows.columns import Columns, log_odds_of
from calibrant._rows.engines import PARTS, over_ranges

ORDER = 5
PAD = ORDER // 2

CELLS = 9600
"""2^7 * 3 * 5^2, so that 5, 10, 15, 20, 25, 30, 50 and 100 bins are whole cells."""

LOG_ODDS_CELLS = 2000

LOG_ODDS_REACH = 20.0
"""The log-odds grid covers [-20, 20]; only the coordinate is cut there, no sum is."""

Moments = NDArray[np.float64]
"""Shape (columns, ORDER, cells)."""

Index = NDArray[np.intp]

CHUNK = 1 << 15
"""Rows added at a time, so that what is made of them stays in cache."""

ROWS_OF_RESIDUALS = 1 << 18
"""Residuals summed before their sums join the total: sums of sums have less round-off."""


def cell_of(h: Column, cells: int) -> Index:
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


def cell_near(h: Column, cells: int) -> Index:
    """Number of a cell that holds h, or touches it; cheaper than `cell_of`."""
    cell = (h * cells).astype(np.intp)
    return np.minimum(cell, cells - 1, out=cell)


def log_odds_cell(z: Column) -> Index:
    """Number of the log-odds cell: 0 and 2001 for certainty, 1 to 2000 in between."""
    scaled = np.clip(z, -LOG_ODDS_REACH, LOG_ODDS_REACH) + LOG_ODDS_REACH
    scaled *= LOG_ODDS_CELLS / (2 * LOG_ODDS_REACH)
    cell = np.minimum(scaled.astype(np.intp), LOG_ODDS_CELLS - 1) + 1
    cell[np.isneginf(z)] = 0
    cell[np.isposinf(z)] = LOG_ODDS_CELLS + 1
    return cell


def cell_number(h: Column) -> Index:
    """Number of the cell of the path that holds a confidence, increasing with it.

    Examples
    --------
    >>> np.diff(cell_number(np.array([0.0, 1e-9, 0.30002, 0.30004, 0.31, 0.5, 1.0]))) > 0
    array([ True,  True, False,  True,  True,  True])
    """
    return locate(h, log_odds_of(h))[0]


def locate(h: Column, log_odds: Column, cells: int = CELLS) -> tuple[Index, Column]:
    """The cell of the path, and the place in its probability cell, from -1/2 to 1/2.

    `log_odds` are those of h itself.
    """
    cell = cell_of(h, cells)
    place = h * cells
    place -= cell
    place -= 0.5
    return cell + log_odds_cell(log_odds), place


def steps(cells: int) -> int:
    """Number of cells of the path: one edge after the other is crossed."""
    return cells + LOG_ODDS_CELLS + 1


STEPS = steps(CELLS)


class Path(NamedTuple):
    """The probability cell and the log-odds cell, from 0 to 1999, of each of its cells."""

    probability: Index
    log_odds: Index


@lru_cache(maxsize=8)
def path(cells: int = CELLS) -> Path:
    """The cells that a confidence passes from 0 to 1."""
    edges = np.linspace(-LOG_ODDS_REACH, LOG_ODDS_REACH, LOG_ODDS_CELLS + 1)[1:-1]
    # Probability cell at which each log-odds cell but that of h = 0 starts.
    starts = np.concatenate([[0], cell_of(sigmoid(edges), cells), [cells - 1]])
    crossed = np.zeros(steps(cells), np.intp)
    crossed[starts + np.arange(1, len(starts) + 1)] = 1
    z = np.cumsum(crossed)
    return Path(np.arange(len(z)) - z, np.clip(z - 1, 0, LOG_ODDS_CELLS - 1))


def add_moments(
    moments: Moments,
    h: Column,
    columns: list[Column | None],
    find: Callable[[Column, int], Index] = cell_of,
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


def add_residual(moments: NDArray[np.float64], columns: Columns) -> None:
    """Add the residual a - h of all rows to its moments, as `add_moments` near cells.

    `moments` is (order, cells). A few parts of the rows are summed one by one.
    """
    h, a, w = columns.confidence, columns.hit, columns.weight

    def work(start: int, stop: int) -> NDArray[np.float64]:
        total = np.zeros(moments.T.shape)
        for first in range(start, stop, ROWS_OF_RESIDUALS):
            part = slice(first, min(first + ROWS_OF_RESIDUALS, stop))
            weight = None if w is None else compiled.ready(w[part])
            rows = compiled.ready(h[part]), compiled.ready(a[part]), weight
            chunk = np.zeros_like(total) if first > start else total
            compiled.loops.residual(len(moments), *rows, chunk)
            if first > start:
                total += chunk
        return total

    for total in over_ranges(work, len(columns), parts=PARTS):
        moments += total.T


def _counts(
    cell: Index, power: Column | None, column: Column | None, part: slice, cells: int
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
    columns, order, cells = moments.shape
    shape, polynomials = (columns, cells + 2 * PAD), _LAGRANGE[:, :order]
    if engines.wanted():
        return compiled.filled("node_weights", shape, cells, polynomials, moments)
    weights = np.zeros(shape)
    for own, mine in zip(weights, moments, strict=True):
        for shift, poly in enumerate(polynomials):
            part = mine[0] * poly[0]
            for moment, factor in zip(mine[1:], poly[1:], strict=True):
                part += moment * factor
            own[shift : shift + cells] += part
    return weights


def at_rows(at_nodes: NDArray[np.float64], h: Column) -> NDArray[np.float64]:
    """Values on the nodes of `node_weights`, interpolated at confidences."""
    cells = at_nodes.shape[1] - 2 * PAD
    cell = cell_of(h, cells)
    powers = np.vander(h * cells - cell - 0.5, ORDER, increasing=True)
    found = np.zeros((len(at_nodes), len(h)))
    for shift, poly in enumerate(_LAGRANGE):
        found += at_nodes[:, cell + shift] * (powers @ poly)
    return found


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
    cells, times = moments.shape[2], 1
    while cells % 2 == 0 and cells // 2 >= least:
        cells, times = cells // 2, 2 * times
    if times == 1:
        return moments
    columns, order, _ = moments.shape
    parts = moments.reshape(columns, order, cells, times).transpose(0, 3, 1, 2)
    return _merging(order, times) @ parts.reshape(columns, times * order, cells)


@lru_cache(maxsize=16)
def _merging(order: int, times: int) -> NDArray[np.float64]:
    """From the moments of `times` neighbouring cells, in a row, to those of their union.

    The place t in a cell whose middle lies s unions from theirs becomes s + t / times:
    binomial sums of the old moments.
    """
    matrix = np.zeros((order, times, order))
    places = (np.arange(times) + 0.5) / times - 0.5
    for j in range(order):
        for i in range(j + 1):
            matrix[j, :, i] = comb(j, i) * places ** (j - i) / float(times) ** i
    return matrix.reshape(order, times * order)
