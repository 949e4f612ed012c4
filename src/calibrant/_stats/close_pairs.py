"""Pairs of close rows: the debiased Brier calibration error, and narrow defects."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import hypot, sqrt

import numpy as np

from calibrant._inputs.arrays import Column, sigmoid
from calibrant._inputs.divergences import BRIER, Divergence
from calibrant._stats import closed_forms
from calibrant._stats.closed_forms import Interval
from calibrant._stats.neighbours import Neighbours, kernel_sums
from calibrant._stats.platt import LARGEST_VARIANCE, LocalPlatt

LEAST_ROWS = 50
"""Below this weight no interval is given: there is nothing to base it on."""


@dataclass(frozen=True, slots=True)
class DebiasedError:
    """A debiased calibration error: its value is unclipped, so may be slightly negative.

    `held_out` is what recalibration would gain on new rows, a lower bound on average;
    `plugin` the in-sample value, which noise inflates; `se` comes from the influence
    function. The score interval is None for fewer than 50 rows, and `widened` if there is
    a defect that the estimate smooths away. `width` is that of the kernel.
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
        score = closed_forms.WIDENED + "score" if self.widened else "score"
        return closed_forms.named(score, self.interval)


def brier_error(
    cells: Neighbours, level: float = 0.95, width: float | None = None
) -> DebiasedError:
    r"""Debiased estimate of :math:`E (m(h) - h)^2`, unbiased if the model is calibrated.

    The residuals of pairs of rows are compared whose confidence is close, both in rank
    and in value, never a row with itself. Pairs agree in sign only if the model is
    miscalibrated there, so a calibrated model gives 0 on average, at any n.

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


def neighbourhood(cells: Neighbours, width: float) -> Neighbourhood:
    """Kernel means of residuals."""
    sums = np.stack([cells.weight, cells.r1], axis=1)
    plain, square = kernel_sums(cells.coordinate, width, sums, cells.r2[:, None])
    share = 1 / np.maximum(plain[:, 0], 1.0)
    return Neighbourhood(width, share, plain[:, 1] * share, square[:, 0] * share**2)


def error_of_pairs(
    cells: Neighbours,
    near: Neighbourhood,
    importance: Column,
    level: float,
    absorbed: float = 0.0,
) -> DebiasedError:
    """Debiased mean of the squared residual, times the importance of each cell.

    Residuals about a fit to the same rows agree less than they should, on average by
    what the fit has `absorbed`.
    """
    n, terms = cells.n, terms_of_pairs(cells, near)
    agreement, size, noise = (float((importance * x).sum() / n) for x in terms)
    held_out = 2 * agreement - size
    se = _standard_error(cells, near, importance)
    value = held_out + noise + absorbed
    score = closed_forms.score(value, se, size, noise, level)
    interval = score if n >= LEAST_ROWS else None
    plugin = float((importance * cells.weight * near.mean**2).sum() / n)
    return DebiasedError(value, held_out, plugin, se, interval, near.width)


def terms_of_pairs(
    cells: Neighbours, near: Neighbourhood
) -> tuple[Column, Column, Column]:
    """Sums over each cell of r g, g^2 and V, the row itself left out."""
    N, r1, r2, g, share = cells.weight, cells.r1, cells.r2, near.mean, near.share
    size = N * g**2 - 2 * share * g * r1 + share**2 * r2
    return r1 * g - share * r2, size, N * near.variance - share**2 * r2


def _standard_error(
    cells: Neighbours, near: Neighbourhood, importance: Column
) -> float:
    """Of the mean of q = 2 g_{-i} r - g_{-i}^2, a quadratic in the residual r."""
    n, g, share = cells.n, near.mean, near.share
    quadratic = -(g**2), 2 * g * (1 + share), -share * (2 + share)
    c0, c1, c2 = (importance * c for c in quadratic)
    mean = (c0 * cells.weight + c1 * cells.r1 + c2 * cells.r2).sum() / n
    powers = (
        c0**2 * cells.weight
        + 2 * c0 * c1 * cells.r1
        + (c1**2 + 2 * c0 * c2) * cells.r2
        + 2 * c1 * c2 * cells.r3
        + c2**2 * cells.r4
    )
    return sqrt(max(float(powers.sum() / n - mean**2), 0.0) / n)


# -- what a local fit leaves: defects narrower than its kernel ---------------------

WORTH_WIDENING = 0.2
"""A remainder that moves the upper end by less, relative to its distance from the
estimate, is not worth a word: even smooth curves leave one if there are enough rows."""


def reach_of_pairs(n: float) -> float:
    r"""Largest width in rank of a neighbourhood of pairs: :math:`4 / \sqrt n`.

    It is :math:`2 / \sqrt n` in (rank + h) / 2. From 4096 rows on the fit is wider.
    """
    return 4 / sqrt(n)


def remainder(
    cells: Neighbours, divergence: Divergence, fitted: LocalPlatt, level: float
) -> DebiasedError:
    """Calibration error of the fit itself, from pairs of rows much closer than its width.

    The calibration error of a model is what a fit saves plus this, which the fit smooths
    away by construction. A square in place of the divergence, by its curvature; where a neighbourhood expects
    less than one miss, with the curvature at which it would expect one. Each row pulled
    the fit towards itself and its neighbours: that agreement is put back.
    """
    n, z = cells.n, cells.z
    m = sigmoid(fitted.log_odds(z))
    v = m * (1 - m)
    left = cells.about(m)
    near = neighbourhood(left, 0.5 * reach_of_pairs(n))
    importance = 0.5 * divergence.curvature(m, v) / np.maximum(v, near.share)
    pull = np.minimum(fitted.at(z, fitted.leverage) * v, 1.0)
    spread = np.minimum(fitted.at(z, fitted.variance), LARGEST_VARIANCE) * v
    agreement = v * (2 * pull - spread)
    absorbed = float((cells.weight * importance * agreement).sum() / n)
    absorbed *= cells.dispersion(m)
    return error_of_pairs(left, near, importance, level, absorbed)


def widened(
    error: DebiasedError, plain: Interval, rest: DebiasedError
) -> DebiasedError:
    """With the rest in the upper end, if there is one for sure and it matters there."""
    if error.interval is None or rest.interval is None or not rest.interval[0] > 0:
        return error
    value, (low, high) = max(error.value, 0.0), error.interval
    half = plain[1] - value
    reach = value + rest.value + hypot(half, rest.interval[1] - rest.value)
    if reach - plain[1] < WORTH_WIDENING * half:
        return error
    return replace(error, interval=(low, max(high, reach)), widened=True)
