"""Binned calibration errors: equal-width or equal-mass bins, ties never split."""

from __future__ import annotations

from math import ceil, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column, check_choice
from acumen.columns import Columns
from acumen.grid import cell_of
from acumen.ordered import Ordered, order
from acumen.results import Bins

BinCount = int | str


def count_bins(bins: BinCount, n: float) -> int:
    """Turn a number or the cube-root rule into a number of bins.

    Examples
    --------
    >>> count_bins(15, 1000), count_bins("cube-root", 1000)
    (15, 10)
    """
    if bins == "cube-root":
        return max(1, ceil(n ** (1 / 3) - 1e-9))
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or bins < 1:
        raise ValueError(
            f"bins must be a positive whole number, 'cube-root' or 'sweep'; got {bins!r}."
        )
    return int(bins)


def width_bins(columns: Columns, bins: BinCount = 15, closed: str = "right") -> Bins:
    """Equal-width bins of [0, 1]; both 0 and 1 always fall inside."""
    check_choice(closed, "closed", ("right", "left"))
    count = count_bins(bins, columns.total_weight)
    h, w = columns.confidence, columns.weight
    bin_of = _bin_of(h, count, closed)
    weighted = [h, columns.hit] if w is None else [w * h, w * columns.hit]
    weight, h_sum, hits = (
        np.bincount(bin_of, x, count).astype(np.float64, copy=False)
        for x in (w, *weighted)
    )
    edges = np.arange(count + 1) / count
    return _bins(edges[:-1], edges[1:], weight, h_sum, hits)


def mass_bins(ordered: Ordered, bins: int) -> Bins:
    """Bins of equal weight; each distinct confidence goes where its mid-rank falls.

    Values that differ by round-off should be put together first, with
    `Ordered.without_twins`.
    """
    before = np.cumsum(ordered.weight)
    middle = (before - 0.5 * ordered.weight) * bins / before[-1]
    bin_of = np.ceil(middle).astype(np.intp) - 1  # an edge belongs to the lower bin
    start = np.flatnonzero(np.diff(bin_of, prepend=-1))
    last = np.append(start[1:], len(bin_of)) - 1
    weight, h_sum, hits = (
        np.add.reduceat(x, start)
        for x in (ordered.weight, ordered.weight * ordered.confidence, ordered.hits)
    )
    h = ordered.confidence
    return _bins(h[start], h[last], weight, h_sum, hits)


def _bins(
    lower: Column, upper: Column, weight: Column, h_sum: Column, hits: Column
) -> Bins:
    some = weight > 0
    whole = np.where(some, weight, 1.0)
    return Bins(
        lower=lower,
        upper=upper,
        count=weight,
        confidence=np.where(some, h_sum / whole, np.nan),
        accuracy=np.where(some, hits / whole, np.nan),
    )


def sweep_bins(ordered: Ordered) -> Bins:
    """Most equal-mass bins whose accuracies still increase (Roelofs et al. 2022)."""
    best = mass_bins(ordered, 1)
    for bins in range(2, len(ordered.confidence) + 1):
        finer = mass_bins(ordered, bins)
        if np.any(np.diff(finer.accuracy) < 0):
            break
        best = finer
    return best


def find_bins(columns: Columns, bins: BinCount, strategy: str, closed: str) -> Bins:
    """Bins as the options of `acumen.ece` describe them."""
    check_choice(strategy, "strategy", ("width", "mass"))
    if strategy == "width" and bins != "sweep":
        return width_bins(columns, bins, closed)
    ordered = order(columns).without_twins()
    if bins == "sweep":
        return sweep_bins(ordered)
    return mass_bins(ordered, count_bins(bins, columns.total_weight))


def binned_error(bins: Bins, norm: Any = 1, *, debias: bool = False) -> float:
    """L^q mean of |accuracy - confidence| over bins, weighted by their counts.

    The debiased L2 error subtracts the sampling variance of each bin's accuracy
    (Bröcker 2012; Kumar et al. 2019). A bin of one row has no variance to subtract and
    is left out, as its square is all noise; below zero, the root is taken as 0.
    """
    filled = bins.count > 0
    share = bins.count[filled] / bins.count[filled].sum()
    gap = np.abs(bins.accuracy[filled] - bins.confidence[filled])
    if debias:
        if norm != 2:
            raise ValueError("debias=True is defined for norm=2 only.")
        return float(np.sqrt(max(debiased_square(bins), 0.0)))
    if norm in ("max", inf):
        return float(gap.max())
    if isinstance(norm, str) or not norm >= 1:
        raise ValueError(f"norm must be a number >= 1 or 'max', got {norm!r}.")
    return float((share * gap**norm).sum() ** (1 / norm))


def debiased_square(bins: Bins) -> float:
    """Debiased mean squared error over bins; may be slightly negative."""
    n, a = bins.count, bins.accuracy
    several = n > 1
    variance = a[several] * (1 - a[several]) / (n[several] - 1)
    square = (a - bins.confidence)[several] ** 2 - variance
    return float((n[several] * square).sum() / n.sum())


def average_error(bins: Bins) -> float:
    """Unweighted mean of |accuracy - confidence| over the bins that hold rows."""
    return float(np.nanmean(np.abs(bins.accuracy - bins.confidence)))


def errors_within(
    columns: Columns, groups: NDArray[Any], k: int, bins: int, norm: Any, closed: str
) -> tuple[Column, Column]:
    """Equal-width L^q error within each of k groups of rows, and the groups' weights."""
    h, a = columns.confidence, columns.hit
    w = np.ones(len(h)) if columns.weight is None else columns.weight
    place = groups * bins + _bin_of(h, bins, closed)
    weight, residual = (
        np.bincount(place, x, k * bins).reshape(k, bins) for x in (w, w * (a - h))
    )
    whole = weight.sum(axis=1)
    gap = np.abs(residual) / np.where(weight > 0, weight, 1.0)
    if norm in ("max", inf):
        return gap.max(axis=1), whole
    power = (weight * gap**norm).sum(axis=1) / np.where(whole > 0, whole, 1.0)
    return power ** (1 / norm), whole


def _bin_of(h: Column, bins: int, closed: str) -> NDArray[np.intp]:
    if closed == "right":
        return cell_of(h, bins)
    bin_of = np.minimum(np.floor(h * bins).astype(np.intp), bins - 1)
    bin_of -= h < bin_of / bins
    bin_of += (h >= (bin_of + 1) / bins) & (bin_of < bins - 1)
    return bin_of
