"""SmoothECE, its curve, and logit-smoothed ECE: calibration errors without bins."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import ceil, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from calibrant._base.records import SmoothCurve
from calibrant._inputs.arrays import Column, Index
from calibrant._rows import engines
from calibrant._rows.columns import Columns
from calibrant._sketch import grid
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import fold, node_weights
from calibrant._sketch.kernels import GAUSSIAN, sums_at
from calibrant._stats.published import LEAST_SUPPORT, NODES_FOR_CURVE, PLACES

LEAST_BANDWIDTH = 1e-4

START, MOST_STEPS = 0.05, 100
"""Where the search for SmoothECE begins, and when it gives up."""

Point = tuple[float, float]

FEW_MOMENTS, WIDE_ENOUGH = 3, 0.02
"""From this bandwidth on three moments per cell say as much as five."""


# -- cosine transforms by NumPy's FFT: importing SciPy's takes longer than an evaluation


def coefficients(x: Column) -> Column:
    """Sums of x_j cos(pi k (j + 1/2) / n): half of SciPy's DCT of type 2.

    Examples
    --------
    >>> coefficients(np.array([1.0, 2.0, 6.0])).round(6)
    array([ 9.      , -4.330127,  1.5     ])
    """
    n = len(x)
    folded = np.concatenate([x[::2], x[1::2][::-1]])
    half = np.fft.rfft(folded) * _turns(n).conj()
    found = np.empty(n)
    found[: n // 2 + 1] = half.real
    found[n // 2 + 1 :] = -half.imag[1 : (n + 1) // 2][::-1]
    return found


def series(c: Column, n: int) -> Column:
    """The sum of c_0 + 2 c_k cos(pi k (j + 1/2) / n) at all j < n.

    As SciPy's DCT of type 3 of c, filled up with zeros to n.

    Examples
    --------
    >>> series(np.array([9.0, -4.330127, 1.5]) / 3, 4).round(4)
    array([1.0401, 1.1882, 3.3976, 6.3741])
    """
    if len(c) <= n // 2:  # as it is unless cells are few
        return _unfolded(c * _turns(n)[: len(c)], n)
    half, few = np.zeros(n // 2 + 1, complex), min(len(c), n // 2 + 1)
    half[:few] = c[:few]
    rest = c[n // 2 + 1 :]  # beyond the middle: the imaginary parts, mirrored
    half.imag[(n - 1) // 2 - len(rest) + 1 : (n - 1) // 2 + 1] -= rest[::-1]
    if n % 2 == 0 and len(c) > n // 2:
        half.imag[n // 2] = -half.real[n // 2]
    return _unfolded(half * _turns(n), n)


def _unfolded(half: NDArray[np.complex128], n: int) -> Column:
    folded = np.fft.irfft(half, n, norm="forward")
    found = np.empty(n)
    found[::2], found[1::2] = folded[: (n + 1) // 2], folded[(n + 1) // 2 :][::-1]
    return found


@lru_cache(maxsize=16)
def _turns(n: int) -> NDArray[np.complex128]:
    return np.exp(0.5j * pi / n * np.arange(n // 2 + 1))


# -- SmoothECE ---------------------------------------------------------------------


class SmoothedResidual:
    """The cosine coefficients of the residual, from which any bandwidth follows.

    SmoothECE (Błasiok and Nakkiran 2024) smooths the residual with a Gaussian reflected
    at 0 and 1, which is diagonal in the cosine basis: one cosine transform of the
    residual, then a short one back for each bandwidth tried.
    """

    def __init__(self, nodes: Column, total: float) -> None:
        self.coefficients = coefficients(nodes) / total
        self._known: dict[float, float] = {}

    def error(self, bandwidth: float) -> float:
        """Integral of the absolute residual, smoothed with this bandwidth."""
        if bandwidth in self._known:
            return self._known[bandwidth]
        cells = len(self.coefficients)
        used = min(cells, ceil(8.6 / (pi * bandwidth)) + 1)
        points = max(1024, 1 << (min(cells, 8 * used) - 1).bit_length())
        damping = np.exp(-0.5 * (pi * bandwidth * np.arange(min(used, points))) ** 2)
        damped = self.coefficients[: len(damping)] * damping
        self._known[bandwidth] = found = _absolute_integral(series(damped, points))
        return found

    def fixed_point(self, start: float = START) -> float:
        """The bandwidth that equals its own error: SmoothECE.

        The error falls as the bandwidth grows, so the fixed point lies between any
        bandwidth and its error.
        """

        def excess(bandwidth: float) -> float:
            return self.error(bandwidth) - bandwidth

        over = excess(start)
        other = min(max(start + over, LEAST_BANDWIDTH), 1.0)
        if other == start:
            return start
        beyond = excess(other)
        if (beyond > 0) == (over > 0):  # at one of the ends
            return other
        return _root(excess, (start, over), (other, beyond))


def _root(f: Callable[[float], float], x: Point, y: Point) -> float:
    """Where a falling function is 0, between x and y: Anderson and Björck's steps.

    Points are places and values there, of opposite signs.
    """
    for _ in range(MOST_STEPS):
        if abs(y[1]) <= 1e-14 or abs(y[0] - x[0]) <= 1e-12 * (1 + y[0]):
            break
        z = (x[0] * y[1] - y[0] * x[1]) / (y[1] - x[1])
        if not min(x[0], y[0]) < z < max(x[0], y[0]):
            z = 0.5 * (x[0] + y[0])
        new = f(z)
        if (new > 0) != (y[1] > 0):
            x = y
        else:
            shrunk = 1 - new / y[1]
            x = x[0], x[1] * (shrunk if shrunk > 1e-3 else 0.5)
        y = z, new
    return y[0]


def _absolute_integral(values: Column) -> float:
    """Mean of |f| over [0, 1] from midpoints, exact where f is piecewise linear."""
    size = np.abs(values)
    crossing = np.flatnonzero(values[:-1] * values[1:] < 0)
    left, right = size[crossing], size[crossing + 1]
    return float((size.sum() - (left * right / (left + right)).sum()) / len(values))


def smooth_error_of_sketch(cells: Cells, bandwidth: float | None = None) -> float:
    """SmoothECE from sums: their (weight, hit) nodes hold the residual too."""
    weights = node_weights(cells.moments[:2])
    residual = weights[1] - grid.node_places(cells.cells) * weights[0]
    smoothed = SmoothedResidual(fold(residual[None])[0], cells.weight)
    return smoothed.error(smoothed.fixed_point() if bandwidth is None else bandwidth)


def smooth_error(columns: Columns, bandwidth: float | None = None) -> float:
    """SmoothECE of rows; at a given bandwidth, or at its fixed point."""
    residual = _residual_of_rows(columns, FEW_MOMENTS)
    chosen = residual.fixed_point() if bandwidth is None else bandwidth
    if chosen < WIDE_ENOUGH:
        residual = _residual_of_rows(columns, grid.ORDER)
        chosen = residual.fixed_point(chosen) if bandwidth is None else bandwidth
    return residual.error(chosen)


def _residual_of_rows(columns: Columns, moments: int) -> SmoothedResidual:
    sums = np.zeros((1, moments, grid.CELLS))
    if engines.wanted():
        grid.add_residual(sums[0], columns)
    else:
        h, r = columns.confidence, columns.hit - columns.confidence
        if columns.weight is not None:
            r *= columns.weight
        grid.add_moments(sums, h, [r], grid.cell_near)
    return SmoothedResidual(fold(node_weights(sums))[0], columns.total_weight)


def relplot_error(
    columns: Columns, bandwidth: float | None = None
) -> tuple[float, float]:
    """SmoothECE as relplot 1.0 computes it, with its bandwidth.

    Its mirror image leaves out the node at 0 and 1, so what is split to it counts half;
    the bandwidth comes from ten bisections and is never below 1/512; 1e-4 of one row
    is added to the density.
    """
    if bandwidth is not None:
        return _relplot_at(columns, bandwidth), bandwidth
    widest = _relplot_at(columns, 1.0)
    if widest > 1.0:
        return widest, 1.0
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        if middle < 1e-3 or middle < _relplot_at(columns, middle):
            low = middle
        else:
            high = middle
    return _relplot_at(columns, high), high


def _relplot_at(columns: Columns, bandwidth: float) -> float:
    from scipy.signal import fftconvolve

    w, nodes = columns.weights, max(2000, round(20 / bandwidth)) // 2 + 1
    residual = w * (columns.hit - columns.confidence)
    place = columns.confidence * (nodes - 1)
    left = np.minimum(place.astype(np.intp), nodes - 2)
    u, at = np.linspace(-0.5, 0.5, nodes), np.linspace(0, 1, nodes)
    kernel = np.exp(-(u**2) / (2 * bandwidth**2)) / (sqrt(2 * pi) * bandwidth)
    mesh = np.linspace(0, 1, max(round(10 / bandwidth), 200))
    smoothed = []
    for x in (residual, w):
        sums = split(x, place, left, nodes)
        mirrored = np.concatenate([sums[::-1][:-1], sums, sums[::-1][1:]])
        middle = fftconvolve(mirrored, kernel, mode="valid")[nodes // 2 :][:nodes]
        smoothed.append(np.interp(mesh, at, middle))
    return float(np.abs(smoothed[0]).sum() / (smoothed[1] + 1e-4).sum())


def split(values: Column, place: Column, left: Index, nodes: int) -> Column:
    """Sums at nodes 0, 1, ...: a value is split between the two next to its place."""
    share = place - left
    sums = np.bincount(left, values * (1 - share), nodes).astype(np.float64, copy=False)
    return sums + np.bincount(left + 1, values * share, nodes)


# -- the curve: accuracy smoothed at the bandwidth that is its error ---------------

LEAST_WIDTH = float(PLACES[1])
"""A narrower curve would vary between the places at which it is drawn."""


def width_of_curve(error: float) -> float:
    """The bandwidth at which the curve is drawn, given SmoothECE."""
    return min(max(error, LEAST_WIDTH), 1.0)


def smooth_curve(cells: Cells, error: float) -> SmoothCurve:
    """Accuracy and density with the reflected Gaussian of SmoothECE, given the error."""
    bandwidth = width_of_curve(error)
    moments = grid.coarsen(cells.moments[:2], NODES_FOR_CURVE / bandwidth)
    mass, hits = sums_at(PLACES, node_weights(moments), GAUSSIAN, bandwidth, "reflect")
    empty = mass < LEAST_SUPPORT
    accuracy = np.where(empty, np.nan, np.clip(hits / np.where(empty, 1, mass), 0, 1))
    density = np.maximum(mass, 0) / (GAUSSIAN.mass * bandwidth * cells.weight)
    return SmoothCurve(bandwidth, PLACES, accuracy, density)
