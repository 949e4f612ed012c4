"""Where an estimate has rows behind it, so that nothing is drawn as if it were known."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.plot.reading import View
from acumen.results import Evaluation

Mask = NDArray[np.bool_]

ENOUGH_ROWS = 20.0
"""With fewer rows nearby, a line is dotted and has no interval."""

TAIL = 0.005
"""An adaptive line is dotted beyond these shares of the rows, where it extrapolates."""


def rows_within(ev: Evaluation, at: Column, reach: float) -> Column:
    """Rows whose confidence is at most `reach` away, to a cell of the histogram."""
    edges = np.linspace(0, 1, len(ev.histogram) + 1)
    below = np.concatenate([[0.0], np.cumsum(ev.histogram)])
    return np.interp(at + reach, edges, below) - np.interp(at - reach, edges, below)


def trusted(view: View) -> Mask:
    """Where the line has enough rows nearby to be drawn as known."""
    curve, bandwidth = view.curve, view.parts.bandwidth
    finite = np.isfinite(curve.accuracy)
    if bandwidth is not None:
        return finite & (
            rows_within(view.ev, curve.confidence, bandwidth) >= ENOUGH_ROWS
        )
    low, high = _middle(view.ev)
    inside = (curve.confidence >= low) & (curve.confidence <= high)
    return finite & inside & (curve.support >= ENOUGH_ROWS)


def _middle(ev: Evaluation) -> tuple[float, float]:
    """Between which confidences all but the tails of the rows lie."""
    share = np.cumsum(ev.histogram) / ev.histogram.sum()
    cells = len(share)
    first = int(np.searchsorted(share, TAIL))
    last = int(np.searchsorted(share, 1 - TAIL))
    return first / cells, min(last + 1, cells) / cells


def doubtful(view: View) -> Mask:
    """Where some rows are near, but too few; one place further, so that lines meet."""
    curve, bandwidth = view.curve, view.parts.bandwidth
    known = np.isfinite(curve.accuracy)
    if bandwidth is not None:
        known &= rows_within(view.ev, curve.confidence, bandwidth) >= 1
    sure = trusted(view)
    faint = known & ~sure
    beside = np.zeros_like(faint)
    beside[1:] |= faint[:-1]
    beside[:-1] |= faint[1:]
    return faint | (beside & sure)


def only(values: Column, where: Mask) -> Column:
    """The values where they may be drawn, NaN elsewhere."""
    return np.where(where, values, np.nan)


def spans(where: Mask) -> list[tuple[int, int]]:
    """First and last index of each run of True.

    Examples
    --------
    >>> spans(np.array([True, True, False, True]))
    [(0, 1), (3, 3)]
    """
    steps = np.diff(np.concatenate([[0], where.astype(np.int8), [0]]))
    first, last = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1) - 1
    return list(zip(first.tolist(), last.tolist(), strict=True))
