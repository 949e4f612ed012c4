"""SmoothECE, its curve, and logit-smoothed ECE: calibration errors without bins."""

from __future__ import annotations

from math import ceil, pi, sqrt
from typing import TYPE_CHECKING

import numpy as np

from calibrant._base.records import SmoothCurve
from calibrant._inputs.arrays import Column, sigmoid
from calibrant._rows import engines
from calibrant._rows.columns import Columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.grid import (
    CELLS,
    ORDER,
    add_moments,
    cell_near,
    coarsen,
    fold,
    node_places,
    node_weights,
)
from calibrant._sketch.kernels import GAUSSIAN, sums_at
from calibrant._stats.published import LEAST_SUPPORT, NODES_FOR_CURVE, PLACES

if TYPE_CHECKING:
    from numpy.typing import NDArray


def add_residual(moments: NDArray[np.float64], columns: Columns) -> None:
    """Add the residual a - h of all rows to its (order, cells) moments with numba."""
    from calibrant._sketch import numba_cells

    numba_cells.add_residual(moments, columns)


# ----------------------------------------------------------------------------
# SmoothECE and logit-smoothed ECE: calibration errors without bins.
#
# SmoothECE (Błasiok and Nakkiran 2024) smooths the residual with a Gaussian reflected at
# 0 and 1, which is diagonal in the cosine basis: one cosine transform of the residual,
# then a short one back for each bandwidth tried.


LEAST_BANDWIDTH = 1e-4

FEW_MOMENTS, WIDE_ENOUGH = 3, 0.02
"""From this bandwidth on three moments per cell say as much as five."""


class SmoothedResidual:
    """The cosine coefficients of the residual, from which any bandwidth follows."""

    def __init__(self, nodes: Column, total: float) -> None:
        from scipy.fft import dct

        self.coefficients = dct(nodes, type=2) / (2 * total)

    def error(self, bandwidth: float) -> float:
        """Integral of the absolute residual, smoothed with this bandwidth."""
        from scipy.fft import dct

        cells = len(self.coefficients)
        used = min(cells, ceil(8.6 / (pi * bandwidth)) + 1)
        points = max(1024, 1 << (min(cells, 8 * used) - 1).bit_length())
        damped = np.zeros(points)
        frequency = np.arange(min(used, points))
        damped[: len(frequency)] = self.coefficients[: len(frequency)] * np.exp(
            -0.5 * (pi * frequency * bandwidth) ** 2
        )
        return _absolute_integral(dct(damped, type=3))

    def fixed_point(self) -> float:
        """The bandwidth that equals its own error: SmoothECE."""
        from scipy.optimize import brentq

        def excess(bandwidth: float) -> float:
            return self.error(bandwidth) - bandwidth

        if excess(LEAST_BANDWIDTH) <= 0:
            return LEAST_BANDWIDTH
        if excess(1.0) >= 0:
            return 1.0
        return float(brentq(excess, LEAST_BANDWIDTH, 1.0, xtol=1e-12, rtol=1e-12))


def _absolute_integral(values: Column) -> float:
    """Mean of |f| over [0, 1] from midpoints, exact where f is piecewise linear."""
    size = np.abs(values)
    crossing = np.flatnonzero(values[:-1] * values[1:] < 0)
    left, right = size[crossing], size[crossing + 1]
    return float((size.sum() - (left * right / (left + right)).sum()) / len(values))


def smooth_error_of_sketch(sketch: Cells, bandwidth: float | None = None) -> float:
    """SmoothECE from a sketch: its (weight, hit) nodes hold the residual too."""
    weights = node_weights(sketch.moments[:2])
    residual = weights[1] - node_places(sketch.cells) * weights[0]
    smoothed = SmoothedResidual(fold(residual[None])[0], sketch.weight)
    return smoothed.error(smoothed.fixed_point() if bandwidth is None else bandwidth)


def smooth_error(columns: Columns, bandwidth: float | None = None) -> float:
    """SmoothECE of rows; at a given bandwidth, or at its fixed point."""
    residual = _residual_of_rows(columns, FEW_MOMENTS)
    chosen = residual.fixed_point() if bandwidth is None else bandwidth
    if chosen < WIDE_ENOUGH:
        residual = _residual_of_rows(columns, ORDER)
        chosen = residual.fixed_point() if bandwidth is None else bandwidth
    return residual.error(chosen)


def _residual_of_rows(columns: Columns, moments: int) -> SmoothedResidual:
    sums = np.zeros((1, ORDER, CELLS))
    if engines.wanted_for_rows("auto", len(columns)):
        add_residual(sums[0, :moments], columns)
    else:
        r = columns.hit - columns.confidence
        if columns.weight is not None:
            r *= columns.weight
        add_moments(sums[:, :moments], columns.confidence, [r], cell_near)
    return SmoothedResidual(fold(node_weights(sums))[0], columns.total_weight)


def relplot_error(
    columns: Columns, bandwidth: float | None = None
) -> tuple[float, float]:
    """SmoothECE as relplot 1.0 computes it, with its bandwidth.

    Its mirror image leaves out the node at 0 and 1, so confidences there count half;
    the bandwidth comes from ten bisections and is never below 1/512; 1e-4 of one row
    is added to the density.
    """
    w = np.ones(len(columns)) if columns.weight is None else columns.weight
    h, r = columns.confidence, w * (columns.hit - columns.confidence)
    if bandwidth is not None:
        return _relplot_at(h, r, w, bandwidth), bandwidth
    if _relplot_at(h, r, w, 1.0) > 1.0:
        return _relplot_at(h, r, w, 1.0), 1.0
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        if middle < 1e-3 or middle < _relplot_at(h, r, w, middle):
            low = middle
        else:
            high = middle
    return _relplot_at(h, r, w, high), high


def _relplot_at(h: Column, residual: Column, weight: Column, bandwidth: float) -> float:
    mesh = np.linspace(0, 1, max(round(10 / bandwidth), 200))
    nodes = max(2000, round(20 / bandwidth)) // 2 + 1
    smoothed = [
        _relplot_smooth(h, x, mesh, nodes, bandwidth) for x in (residual, weight)
    ]
    r, density = smoothed
    return float(np.abs(r).sum() / (density + 1e-4).sum())


def _relplot_smooth(
    h: Column, values: Column, mesh: Column, nodes: int, bandwidth: float
) -> Column:
    from scipy.signal import fftconvolve

    place = h * (nodes - 1)
    left = np.minimum(place.astype(np.intp), nodes - 2)
    share = place - left
    grid = np.bincount(left, values * (1 - share), nodes)
    grid = grid + np.bincount(left + 1, values * share, nodes)
    mirrored = np.concatenate([grid[::-1][:-1], grid, grid[::-1][1:]])
    u = np.linspace(-0.5, 0.5, nodes)
    kernel = np.exp(-(u**2) / (2 * bandwidth**2)) / (sqrt(2 * pi) * bandwidth)
    start = nodes // 2
    middle = fftconvolve(mirrored, kernel, mode="valid")[start : start + nodes]
    return np.interp(mesh, np.linspace(0, 1, nodes), middle)


def logit_smoothed_error(columns: Columns, bandwidth: float) -> float:
    r"""ECE after Gaussian noise on the log-odds (Chidambaram et al. 2024).

    .. math:: \int \Big| \frac1n \sum_i K_\sigma(t - z_i)\,(a_i - \mathrm{sigmoid}(t))
              \Big|\, dt,

    as a sum over a fine grid on which rows are split linearly.
    Confidences of exactly 0 or 1 cannot be moved and count as they are.
    """
    w = np.ones(len(columns)) if columns.weight is None else columns.weight
    z, a = columns.log_odds, columns.hit
    certain = ~np.isfinite(z)
    fixed = sum(
        abs(float((w * (a - columns.confidence))[z == edge].sum()))
        for edge in (-np.inf, np.inf)
    )
    z, a, w_in = z[~certain], a[~certain], w[~certain]
    if len(z) == 0:
        return fixed / float(w.sum())
    return (_noisy_residual(z, a, w_in, bandwidth) + fixed) / float(w.sum())


def _noisy_residual(z: Column, a: Column, w: Column, bandwidth: float) -> float:
    step = min(bandwidth, 1.0) / 16  # fine enough for the noise and for the sigmoid
    # Far out the sigmoid is flat: rows beyond +-50 behave like rows at +-50.
    z = np.clip(z, -50.0, 50.0)
    reach = ceil(8.6 * bandwidth / step)
    first = np.floor(z.min() / step) - reach
    place = z / step - first
    nodes = int(place.max()) + reach + 2
    left = place.astype(np.intp)
    share = place - left
    sums = [
        np.bincount(left, x * (1 - share), nodes)
        + np.bincount(left + 1, x * share, nodes)
        for x in (w, w * a)
    ]
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / bandwidth) ** 2)
    taps /= taps.sum()
    weight, hits = (np.convolve(x, taps, mode="same") for x in sums)
    t = (first + np.arange(nodes)) * step
    return float(np.abs(hits - sigmoid(t) * weight).sum())


# ----------------------------------------------------------------------------
# The curve behind SmoothECE: accuracy smoothed at the bandwidth that is its error.


LEAST_WIDTH = float(PLACES[1])
"""A narrower curve would vary between the places at which it is drawn."""


def width_of_curve(error: float) -> float:
    """The bandwidth at which the curve is drawn, given SmoothECE."""
    return min(max(error, LEAST_WIDTH), 1.0)


def smooth_curve(sketch: Cells, error: float) -> SmoothCurve:
    """Accuracy and density with the reflected Gaussian of SmoothECE, given the error."""
    bandwidth = width_of_curve(error)
    moments = coarsen(sketch.moments[:2], NODES_FOR_CURVE / bandwidth)
    mass, hits = sums_at(PLACES, node_weights(moments), GAUSSIAN, bandwidth, "reflect")
    empty = mass < LEAST_SUPPORT
    accuracy = np.where(empty, np.nan, np.clip(hits / np.where(empty, 1, mass), 0, 1))
    density = np.maximum(mass, 0) / (GAUSSIAN.mass * bandwidth * sketch.weight)
    return SmoothCurve(bandwidth, PLACES, accuracy, density)
