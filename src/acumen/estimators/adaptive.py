"""The debiased calibration error of the Brier score, with its interval.

We compare the residuals of pairs of rows whose confidence is close, both in rank and
in value, never a row with itself. Pairs agree in sign only if the model is
miscalibrated there, so a calibrated model gives 0 on average, at any n.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from acumen import intervals
from acumen.arrays import Column
from acumen.estimators.neighbours import Cells, kernel_sums
from acumen.intervals import Interval

LEAST_ROWS = 50
"""Below this weight no interval is given: there is nothing to base it on."""


@dataclass(frozen=True, slots=True)
class DebiasedError:
    """A debiased calibration error.

    Attributes
    ----------
    value : float
        The estimate, unclipped: slightly negative is possible.
    held_out : float
        What recalibration would gain on new rows: a lower bound on average.
    plugin : float
        The in-sample value, which noise inflates.
    se : float
        Standard error, from the influence function.
    interval : (low, high) or None
        Score interval; None for fewer than 50 rows.
    width : float
        The kernel's width in its own coordinate.
    """

    value: float
    held_out: float
    plugin: float
    se: float
    interval: Interval | None
    width: float


def brier_error(
    cells: Cells, level: float = 0.95, width: float | None = None
) -> DebiasedError:
    r"""Debiased estimate of :math:`E (m(h) - h)^2`, unbiased if the model is calibrated.

    Notes
    -----
    With g the kernel mean of residuals r around a row, l = 1 / (sum of weights) the
    share of the row itself and V the variance of g, leaving the row out of its own
    numerator gives :math:`g_{-i} = g - l r`, and the estimate is

    .. math:: 2\,\overline{r g_{-i}} - \overline{g_{-i}^2 - V_{-i}} .

    The kernel is Gaussian in (rank + h) / 2 with width :math:`2 / \sqrt n`.
    """
    n = cells.n
    width = 2 / sqrt(n) if width is None else width
    N, r1, r2 = cells.weight, cells.r1, cells.r2
    plain, square = kernel_sums(
        cells.coordinate, width, np.stack([N, r1], axis=1), r2[:, None]
    )
    share = 1 / np.maximum(plain[:, 0], 1.0)
    g, V = plain[:, 1] * share, square[:, 0] * share**2
    agreement = float((r1 * g - share * r2).sum() / n)
    size = float((N * g**2 - 2 * share * g * r1 + share**2 * r2).sum() / n)
    noise = float((N * V - share**2 * r2).sum() / n)
    held_out = 2 * agreement - size
    se = _standard_error(cells, g, share)
    value = held_out + noise
    interval = None
    if n >= LEAST_ROWS:
        interval = intervals.score(value, se, size, noise, level)
    plugin = float((N * g**2).sum() / n)
    return DebiasedError(value, held_out, plugin, se, interval, width)


def _standard_error(cells: Cells, g: Column, share: Column) -> float:
    """Of the mean of q = 2 g_{-i} r - g_{-i}^2, a quadratic in the residual r."""
    n = cells.n
    c0, c1, c2 = -(g**2), 2 * g * (1 + share), -share * (2 + share)
    mean = (c0 * cells.weight + c1 * cells.r1 + c2 * cells.r2).sum() / n
    powers = (
        c0**2 * cells.weight
        + 2 * c0 * c1 * cells.r1
        + (c1**2 + 2 * c0 * c2) * cells.r2
        + 2 * c1 * c2 * cells.r3
        + c2**2 * cells.r4
    )
    return sqrt(max(float(powers.sum() / n - mean**2), 0.0) / n)
