"""What a local fit leaves: defects narrower than its kernel, found by pairs of close rows.

The calibration error of a model is what a fit saves plus the calibration error of the
fit itself. The first is estimated well; the second is smoothed away by construction.
"""

from __future__ import annotations

from dataclasses import replace
from math import hypot, sqrt

import numpy as np

from acumen.bregman import Divergence
from acumen.columns import sigmoid
from acumen.estimators.adaptive import DebiasedError, error_of_pairs, neighbourhood
from acumen.estimators.neighbours import Cells
from acumen.estimators.platt import LARGEST_VARIANCE, LocalPlatt
from acumen.intervals import Interval

WORTH_WIDENING = 0.2
"""A remainder that moves the upper end by less, relative to its distance from the
estimate, is not worth a word: even smooth curves leave one if there are enough rows."""


def reach_of_pairs(n: float) -> float:
    r"""Largest width in rank of a neighbourhood of pairs: :math:`4 / \sqrt n`.

    It is :math:`2 / \sqrt n` in (rank + h) / 2. From 4096 rows on the fit is wider.
    """
    return 4 / sqrt(n)


def remainder(
    cells: Cells, divergence: Divergence, fitted: LocalPlatt, level: float
) -> DebiasedError:
    """Calibration error of the fit itself, from pairs of rows much closer than its width.

    A square in place of the divergence, by its curvature; where a neighbourhood expects
    less than one miss, with the curvature at which it would expect one. Each row pulled
    the fit towards itself and its neighbours: that agreement is put back.
    """
    n, z = cells.n, cells.z
    m = sigmoid(fitted.log_odds(z))
    v = m * (1 - m)
    left = cells.about(m)
    near = neighbourhood(left, 0.5 * reach_of_pairs(n))
    curvature = 1.0 if divergence.name == "log" else divergence.curvature_1d(m) * v
    importance = 0.5 * curvature / np.maximum(v, near.share)
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
