"""Rows pooled where they belong together: atoms, isotonic blocks, fine histograms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.estimators.isotonic import isotonic
from acumen.ordered import Ordered, gather
from acumen.results import Bins
from acumen.sums import LOG_ODDS_CELLS, Sums

MOST_ATOMS = 40
"""Up to this many distinct confidences, a figure shows each of them."""

HISTOGRAM_CELLS, LOG_ODDS_HISTOGRAM_CELLS = 480, 200


def atoms(values: Ordered) -> Bins:
    """One bin per distinct confidence, or none at all if there are too many.

    Examples
    --------
    >>> three = Ordered.of(*np.array([[0.2, 0.5, 0.9], [4, 1, 5], [1, 0, 5], [1, 0, 5]]))
    >>> atoms(three).accuracy
    array([0.25, 0.  , 1.  ])
    """
    each = np.ones(len(values.confidence), bool)
    if len(each) > MOST_ATOMS:
        return Bins(*np.empty((6, 0)))
    return pool(values, each)


def isotonic_blocks(values: Ordered) -> Bins:
    """The blocks on which the isotonic fit is constant.

    Examples
    --------
    >>> three = Ordered.of(*np.array([[0.2, 0.5, 0.9], [4, 1, 5], [1, 0, 5], [1, 0, 5]]))
    >>> isotonic_blocks(three).upper, isotonic_blocks(three).accuracy
    (array([0.5, 0.9]), array([0.2, 1. ]))
    """
    level = isotonic(values)
    return pool(values, np.diff(level, prepend=-1.0) > 0)


def pool(values: Ordered, starts: NDArray[np.bool_]) -> Bins:
    """Bins of consecutive distinct confidences, one from each of `starts` on."""
    columns = values.weight, values.claimed, values.hits, values.hits2
    weight, claimed, hits, hits2 = gather(starts, *columns)
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(starts)) - 1
    accuracy = hits / weight
    spread = np.maximum(hits2 / weight - accuracy**2, 0.0)
    h = values.confidence
    return Bins(h[first], h[last], weight, claimed / weight, accuracy, spread)


def histogram(sketch: Sums) -> Column:
    """Weight of rows in equal cells of [0, 1]."""
    return sketch.moments[0, 0].reshape(HISTOGRAM_CELLS, -1).sum(axis=1)


def log_odds_histogram(sketch: Sums) -> Column:
    """Weight of rows in equal cells of the log-odds."""
    cells = LOG_ODDS_HISTOGRAM_CELLS, LOG_ODDS_CELLS // LOG_ODDS_HISTOGRAM_CELLS
    return sketch.log_odds_sums[0].reshape(cells).sum(axis=1)
