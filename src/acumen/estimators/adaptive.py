"""The debiased calibration error of the Brier score, with its interval.

We compare the residuals of pairs of rows whose confidence is close, both in rank and
in value, never a row with itself. Pairs agree in sign only if the model is
miscalibrated there, so a calibrated model gives 0 on average, at any n.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import sqrt

import numpy as np

from acumen import intervals
from acumen.arrays import Column
from acumen.bregman import BRIER
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
    widened : bool
        Whether the interval was widened for a defect that the estimate smooths away.
    """

    value: float
    held_out: float
    plugin: float
    se: float
    interval: Interval | None
    width: float
    widened: bool = False

    @property
    def method(self) -> str:
        """What to call the interval."""
        score = intervals.WIDENED + "score" if self.widened else "score"
        return intervals.named(score, self.interval)


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
    width = 2 / sqrt(cells.n) if width is None else width
    near = neighbourhood(cells, width)
    error = error_of_pairs(cells, near, np.ones_like(cells.h), level)
    if error.interval is None:
        return error
    return replace(error, interval=cells.careful(error.interval, BRIER, level))


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """Around each cell: a row's share in it, the mean residual and its variance."""

    width: float
    share: Column
    mean: Column
    variance: Column


def neighbourhood(cells: Cells, width: float) -> Neighbourhood:
    """Kernel means of residuals."""
    sums = np.stack([cells.weight, cells.r1], axis=1)
    plain, square = kernel_sums(cells.coordinate, width, sums, cells.r2[:, None])
    share = 1 / np.maximum(plain[:, 0], 1.0)
    return Neighbourhood(width, share, plain[:, 1] * share, square[:, 0] * share**2)


def error_of_pairs(
    cells: Cells,
    near: Neighbourhood,
    importance: Column,
    level: float,
    absorbed: float = 0.0,
) -> DebiasedError:
    """Debiased mean of the squared residual, times the importance of each cell.

    Residuals about a fit to the same rows agree less than they should, on average by
    what the fit has `absorbed`.
    """
    n = cells.n
    agreement, size, noise = (
        float((importance * x).sum() / n) for x in terms_of_pairs(cells, near)
    )
    held_out = 2 * agreement - size
    se = _standard_error(cells, near, importance)
    value = held_out + noise + absorbed
    interval = None
    if n >= LEAST_ROWS:
        interval = intervals.score(value, se, size, noise, level)
    plugin = float((importance * cells.weight * near.mean**2).sum() / n)
    return DebiasedError(value, held_out, plugin, se, interval, near.width)


def terms_of_pairs(cells: Cells, near: Neighbourhood) -> tuple[Column, Column, Column]:
    """Sums over each cell of r g, g^2 and V, the row itself left out."""
    N, r1, r2 = cells.weight, cells.r1, cells.r2
    g, share = near.mean, near.share
    return (
        r1 * g - share * r2,
        N * g**2 - 2 * share * g * r1 + share**2 * r2,
        N * near.variance - share**2 * r2,
    )


def _standard_error(cells: Cells, near: Neighbourhood, importance: Column) -> float:
    """Of the mean of q = 2 g_{-i} r - g_{-i}^2, a quadratic in the residual r."""
    n, g, share = cells.n, near.mean, near.share
    c0, c1, c2 = (
        importance * c for c in (-(g**2), 2 * g * (1 + share), -share * (2 + share))
    )
    mean = (c0 * cells.weight + c1 * cells.r1 + c2 * cells.r2).sum() / n
    powers = (
        c0**2 * cells.weight
        + 2 * c0 * c1 * cells.r1
        + (c1**2 + 2 * c0 * c2) * cells.r2
        + 2 * c1 * c2 * cells.r3
        + c2**2 * cells.r4
    )
    return sqrt(max(float(powers.sum() / n - mean**2), 0.0) / n)
