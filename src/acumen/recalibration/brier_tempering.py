"""The Brier score of softmax(beta z): not convex, but a function of one number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acumen.recalibration.rows import Rows
from acumen.recalibration.tempering import Found, below_top, sample


class BrierLoss:
    """The mean Brier score of rows as a function of beta, and its slope."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def __call__(self, beta: float) -> tuple[float, float]:
        """Value and slope at one beta."""
        total = self.rows.add_up(lambda part: self._block(beta, part))
        value, slope = total / self.rows.total_weight
        return float(value), float(slope)

    def _block(self, beta: float, part: slice) -> NDArray[np.float64]:
        d, own = below_top(self.rows, part)
        p = np.exp(beta * d.astype(np.float64))
        p /= p.sum(axis=1, keepdims=True)
        at, labels = np.arange(len(d)), self.rows.y[part]
        p_own = p[at, labels]
        mean = np.vecdot(p, d)
        squares = np.vecdot(p, p)
        value = squares - 2 * p_own + 1
        p *= p
        slope = 2 * (np.vecdot(p, d) - mean * squares - p_own * (own - mean))
        weight = self.rows.weights(part)
        return np.array([np.sum(weight * value), np.sum(weight * slope)])


def minimise_brier(loss: BrierLoss, start: Found) -> Found:
    """The best beta for the Brier score, in the range of the log loss.

    A grid over the whole range on a few rows tells where to look. From there it goes
    downhill on all rows, then to where the slope is 0.
    """
    few, low, high = BrierLoss(sample(loss.rows)), start.low, start.high
    coarse = np.unique([*np.geomspace(low, high, 61), start.beta])
    centre = float(min(coarse, key=lambda beta: few(beta)[0]))
    known = {
        beta: loss(beta)
        for beta in (centre / 1.5, centre, centre * 1.5, 1.0)
        if low <= beta <= high
    }
    while True:  # at most one step per grid point of the range, usually none
        best = min(known, key=lambda beta: known[beta][0])
        ends = min(known), max(known)
        step = best / 1.5 if best == ends[0] else best * 1.5
        if best not in ends or best in (low, high):
            break
        known[min(max(step, low), high)] = loss(min(max(step, low), high))
    return _polish(loss, known, best, low, high)


def _polish(
    loss: BrierLoss,
    known: dict[float, tuple[float, float]],
    best: float,
    low: float,
    high: float,
) -> Found:
    from scipy.optimize import brentq

    left = max((beta for beta in known if beta < best), default=best)
    right = min((beta for beta in known if beta > best), default=best)
    found = Found(best, len(known), low, high)
    if not known[left][1] < 0 < known[right][1]:
        return found
    beta, report = brentq(
        lambda b: loss(b)[1], left, right, xtol=1e-13, full_output=True
    )
    if loss(beta)[0] > known[best][0]:  # there are several minima here
        return found
    passes = len(known) + report.function_calls + 1
    return Found(float(beta), passes, low, high, report.converged)
