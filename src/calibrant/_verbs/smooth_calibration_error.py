"""`smooth_calibration_error`: what the best smooth witness finds."""

from __future__ import annotations

from math import inf
from typing import Any, Unpack

import numpy as np

from calibrant._inputs.arrays import Column
from calibrant._inputs.options import Scores, takes_scores
from calibrant._rows.reduce import read
from calibrant._sketch.ordered import gather, starts_of_values

Breaks = list[tuple[float, float]]
"""Positions, nearest to the top last, and how much the slope falls there."""

MOST_VALUES = 20_000
"""Distinct confidences up to which they are taken as they are."""


class Witness:
    """The largest sum so far as a concave function of the witness at the last confidence.

    It is piecewise linear on [-1, 1]. Kept are the places where its slope falls, by how much,
    on either side of where it is largest (`left` has minus the positions), and that value.
    Moving on by d, a witness may change by d: all that is left of the top moves d to the
    left, and all that is right of it to the right.
    """

    def __init__(self) -> None:
        self.left: Breaks = [(1.0, inf)]
        self.right: Breaks = [(1.0, inf)]
        self.moved = 0.0
        self.most = 0.0

    def step(self, distance: float, residual: float) -> None:
        """Go on to the next confidence, whose rows have so much residual together."""
        self.moved += distance
        self.most += self._climb(residual, self.right, self.left)

    def _climb(self, slope: float, ahead: Breaks, behind: Breaks) -> float:
        """Add a slope, and go to where the sum is largest now; what it has gained."""
        if slope < 0:  # the same in a mirror
            slope, ahead, behind = -slope, behind, ahead
        x = min(ahead[-1][0] + self.moved, 1.0)
        gained = slope * x
        while slope > 0:
            place, fall = ahead.pop()
            here = min(place + self.moved, 1.0)
            gained += slope * (here - x)
            x, taken = here, min(fall, slope)
            behind.append((-here - self.moved, taken))
            if fall > taken:
                ahead.append((place, fall - taken))
            slope -= taken
        return gained


def largest_sum(h: Column, residual: Column) -> float:
    """The largest sum of w(h) times residuals, w from -1 to 1 and no steeper than 1.

    >>> largest_sum(np.array([0.2, 0.7]), np.array([-1.0, 1.0]))  # w moves by 0.5
    0.5
    """
    witness, before = Witness(), float(h[0])
    for place, off in zip(h.tolist(), residual.tolist(), strict=True):
        witness.step(place - before, off)
        before = place
    return witness.most


@takes_scores
def smooth_calibration_error(y: Any, **given: Unpack[Scores]) -> float:
    r"""Smooth calibration error: the largest mean of w(h) (a - h), exactly.

    The witness w is from -1 to 1 and no steeper than 1, so that no row by itself, and no
    edge of a bin, can make the error jump: a small change of the confidences changes it
    little, which is not so of ECE. It is within a factor of 2 of the authors' lower distance
    to calibration.

    Notes
    -----
    .. math:: \sup_w E[w(h) (a - h)], \quad |w| \le 1, \quad |w(s) - w(t)| \le |s - t|

    It is a linear programme; here it is solved exactly by a pass over the rows in order of
    confidence. Of more than 20,000 distinct confidences each is rounded to a multiple of
    1/20,000 first, which changes the error by less than 0.00003. Noise inflates it, as it
    does any plug-in error.

    References
    ----------
    S. Kakade, D. Foster, *Deterministic calibration and Nash equilibrium*, 2008.
    J. Błasiok, P. Gopalan, L. Hu, P. Nakkiran, *A unifying theory of distance from
    calibration*, STOC 2023.

    Examples
    --------
    >>> import calibrant as cal
    >>> round(cal.smooth_calibration_error([1, 1, 0, 1], confidence=[0.9] * 4), 3)
    0.15
    """
    _, columns = read(y, given)
    order = np.argsort(columns.confidence, kind="stable")
    h, weight = columns.confidence[order], columns.weights[order]
    residual = weight * (columns.hit[order] - h) / weight.sum()
    if starts_of_values(h).sum() > MOST_VALUES:
        h = np.round(h * MOST_VALUES) / MOST_VALUES
    starts = starts_of_values(h)
    (residual,) = gather(starts, residual)
    return max(largest_sum(h[starts], residual), 0.0)
