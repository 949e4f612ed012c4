"""Where local fits start from: temperature scaling, fitted without the row's fold.

What a temperature explains, neighbours need not; in many dimensions they are far apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.canonical.vectors import Table, Vectors

FOLDS = 5
LEAST_LOG, LEAST_START = -60.0, -600.0
"""Logarithms are cut here, so that 0 can be tempered, and gives no 0."""

MOST_SLOPE, MOST_STEPS, TOLERANCE = 50.0, 50, 1e-9
LEAST_INFORMATION = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """Logarithms of tempered probabilities, and the standard error of each."""

    log_probs: Table
    error: Table

    def take(self, rows: NDArray[Any] | slice) -> Start:
        """Some of the rows."""
        return Start(self.log_probs[rows], self.error[rows])


def tempered(vectors: Vectors, rng: np.random.Generator) -> Start:
    """Temper each row by the folds it is not in."""
    rows = len(vectors)
    fold = np.empty(rows, np.intp)
    fold[rng.permutation(rows)] = np.arange(rows) % FOLDS
    start = Start(*np.zeros((2, *vectors.log_probs.shape)))
    for f in range(FOLDS):
        here = fold == f
        z = np.maximum(vectors.log_probs[here], LEAST_LOG)
        slope, error = fit_slope(vectors.take(~here))
        q = temper(z, slope)
        start.log_probs[here] = np.maximum(q, LEAST_START)
        start.error[here] = error * (z - (np.exp(q) * z).sum(axis=1, keepdims=True))
    return start


def temper(z: Table, slope: float) -> Table:
    """Logarithms of probabilities raised to a power, and divided by their sum."""
    z = slope * z
    z -= z.max(axis=1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=1, keepdims=True))


def fit_slope(vectors: Vectors) -> tuple[float, float]:
    """The inverse temperature of least log loss, and its standard error.

    Newton steps at most double or halve it, from 1 on, and end where nothing depends on
    it; the error is then 0.

    Examples
    --------
    >>> p, y = np.array([[0.9, 0.1]] * 4), np.eye(2)[[0, 0, 0, 1]]
    >>> slope, error = fit_slope(Vectors(np.log(p), y, np.ones(4)))
    >>> np.exp(temper(np.log(p[:1]), slope)).round(6)  # three of four
    array([[0.75, 0.25]])
    """
    z, w = np.maximum(vectors.log_probs, LEAST_LOG), vectors.weight
    aim = float(w @ (vectors.labels * z).sum(axis=1))
    slope, information = 1.0, 0.0
    for _ in range(MOST_STEPS):
        p = np.exp(temper(z, slope))
        mean = (p * z).sum(axis=1)
        information = float(w @ ((p * z * z).sum(axis=1) - mean * mean))
        if not information > LEAST_INFORMATION:
            return slope, 0.0
        before, step = slope, (aim - float(w @ mean)) / information
        slope = min(
            max(slope + step, 0.5 * slope, 1 / MOST_SLOPE), 2 * slope, MOST_SLOPE
        )
        if abs(slope - before) < TOLERANCE * before:
            break
    return slope, 1 / sqrt(information)
