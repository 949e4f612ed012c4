"""Bins of probabilities: where their edges are, what falls into them, what they give."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, Matrix
from acumen.recalibration import onevsrest
from acumen.recalibration.rows import Rows

Closed = Literal["right", "left"]


def width_edges(bins: int) -> Column:
    """Edges of equal-width bins: the doubles nearest to i / bins."""
    return np.arange(bins + 1) / bins


def mass_edges(p: Matrix, weight: Column, bins: int) -> Column:
    """Edges of bins of equal weight; each distinct value goes where its mid-rank falls.

    An edge is half way between two values. Where there are fewer values than bins,
    edges are repeated: there is nothing between them.

    Examples
    --------
    >>> mass_edges(np.array([0.1, 0.2, 0.2, 0.8]), np.ones(4), bins=3).tolist()
    [0.0, 0.15000000000000002, 0.5, 1.0]
    """
    value, weight = _distinct(p, weight)
    before = np.cumsum(weight)
    cuts = np.arange(1, bins) * before[-1] / bins
    inner = np.searchsorted(before, cuts, side="left")
    inner += before[inner] - 0.5 * weight[inner] <= cuts
    ends = np.concatenate([[0.0], value, [1.0]])
    low, high = ends[inner], ends[inner + 1]
    half = low + (high - low) / 2
    edges = np.where(half < high, half, low)  # neighbours have nothing between them
    return np.concatenate([[0.0], edges, [1.0]])


def _distinct(p: Matrix, weight: Column) -> tuple[Column, Column]:
    order = np.argsort(p)
    value = p[order].astype(np.float64)
    first = np.flatnonzero(np.concatenate([[True], value[1:] != value[:-1]]))
    return value[first], np.add.reduceat(weight[order], first)


def place(p: Matrix, edges: Column, closed: Closed = "right") -> NDArray[np.intp]:
    """Numbers of the bins; what lies beyond an end is in the bin at that end.

    Examples
    --------
    >>> place(np.array([0.0, 0.5, 0.6, 1.0]), np.array([0.0, 0.5, 1.0])).tolist()
    [0, 0, 1, 1]
    """
    return np.searchsorted(edges[1:-1], p, "left" if closed == "right" else "right")


def count(rows: Rows, edges: Column, closed: Closed) -> tuple[Column, Column]:
    """Weight of all rows, and of those of the class, in each bin of each class."""

    def work(part: slice) -> Column:
        probs = onevsrest.probabilities(rows, part)
        weight = np.broadcast_to(rows.weights(part), len(probs))
        return np.stack(
            [
                _count_all(probs, weight, edges, closed),
                _count_own(probs, weight, rows.y[part], edges, closed),
            ]
        )

    counts, hits = rows.add_up(work).reshape(2, rows.k, -1)
    return counts, hits


def _count_all(
    probs: Matrix, weight: Column, edges: Column, closed: Closed
) -> NDArray[np.float64]:
    """Most probabilities are in the first bin: of a row, only 1 / edge can be above."""
    k, bins = probs.shape[1], len(edges) - 1
    above = probs >= float(edges[1])
    row, column = np.divmod(np.flatnonzero(above), k)
    at = column * bins + place(probs[row, column], edges, closed)
    counts = _tally(at, weight[row], k * bins)
    counts[::bins] += np.where(above, 0.0, weight[:, None]).sum(axis=0)
    return counts


def _count_own(
    probs: Matrix, weight: Column, y: NDArray[np.intp], edges: Column, closed: Closed
) -> NDArray[np.float64]:
    k, bins = probs.shape[1], len(edges) - 1
    at = y * bins + place(probs[np.arange(len(y)), y], edges, closed)
    return _tally(at, weight, k * bins)


def count_column(
    p: Matrix, hit: NDArray[np.bool_], weight: Column, edges: Column
) -> tuple[Column, Column]:
    """Weight of all rows, and of the hits, in each bin of one class."""
    at, bins = place(p, edges), len(edges) - 1
    return _tally(at, weight, bins), _tally(at[hit], weight[hit], bins)


def _tally(at: NDArray[np.intp], weight: Column, size: int) -> Column:
    """Weight at each of the first numbers."""
    return np.bincount(at, weight, size).astype(np.float64)  # of nothing, it is int


def shares(
    counts: Column, hits: Column, edges: Column, smoothing: float
) -> NDArray[np.float64]:
    """What a bin gives: its share of hits, with some pseudo-rows at its mid-point."""
    middle = 0.5 * (edges[..., :-1] + edges[..., 1:])
    whole = counts + smoothing
    filled = whole > 0
    share = (hits + smoothing * middle) / np.where(filled, whole, 1.0)
    return np.where(filled, share, middle)


def look_up(probs: Matrix, edges: Column, values: Matrix, out: Matrix) -> None:
    """Values of the bins that probabilities fall into, all classes having same edges."""
    out[...] = np.ascontiguousarray(values[:, 0])  # four times as fast
    above = np.flatnonzero(probs >= float(edges[1]))
    at = place(probs.ravel()[above], edges)
    out.reshape(-1)[above] = values[above % probs.shape[1], at]


def look_up_mass(probs: Matrix, inner: Matrix, values: Matrix, out: Matrix) -> None:
    """The same, each class having its own inner edges, a row of `inner` for each."""
    at = np.broadcast_to(np.arange(len(values)) * values.shape[1], probs.shape).copy()
    for edge in inner:
        at += probs > edge
    out[...] = values.ravel()[at]


def inner_edges(edges: Column, dtype: np.dtype[np.floating]) -> Matrix:
    """Inner edges by bin and class, the largest numbers of a type that lie below them.

    For numbers of that type, to exceed them is to exceed the edge itself.
    """
    inner = edges[:, 1:-1].T
    found = inner.astype(dtype)
    return np.where(found > inner, np.nextafter(found, dtype.type(0)), found)
