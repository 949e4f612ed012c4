"""ECE after noise on the log-odds: what `logit_smoothed_ece` computes."""

from __future__ import annotations

from math import ceil

import numpy as np

from calibrant._inputs.arrays import Column, sigmoid
from calibrant._rows.columns import Columns
from calibrant._stats.smooth_ece import split


def logit_smoothed_error(columns: Columns, bandwidth: float) -> float:
    r"""ECE after Gaussian noise on the log-odds (Chidambaram et al. 2024).

    .. math:: \int \Bigl| \frac1n \sum_i K_\sigma(t - z_i)\,(a_i - \mathrm{sigmoid}(t))
              \Bigr|\, dt,

    as a sum over a fine grid on which rows are split linearly.
    Confidences of exactly 0 or 1 cannot be moved and count as they are.
    """
    w, z, a = columns.weights, columns.log_odds, columns.hit
    residual, movable = w * (a - columns.confidence), np.isfinite(z)
    error = sum(abs(float(residual[z == edge].sum())) for edge in (-np.inf, np.inf))
    if movable.any():
        error += _noisy_residual(z[movable], a[movable], w[movable], bandwidth)
    return error / float(w.sum())


def _noisy_residual(z: Column, a: Column, w: Column, bandwidth: float) -> float:
    step = min(bandwidth, 1.0) / 16  # fine enough for the noise and for the sigmoid
    # Far out the sigmoid is flat: rows beyond +-50 behave like rows at +-50.
    z = np.clip(z, -50.0, 50.0)
    reach = ceil(8.6 * bandwidth / step)
    first = np.floor(z.min() / step) - reach
    place = z / step - first
    nodes = int(place.max()) + reach + 2
    sums = [split(x, place, place.astype(np.intp), nodes) for x in (w, w * a)]
    taps = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / bandwidth) ** 2)
    taps /= taps.sum()
    weight, hits = (np.convolve(x, taps, mode="same") for x in sums)
    t = (first + np.arange(nodes)) * step
    return float(np.abs(hits - sigmoid(t) * weight).sum())
