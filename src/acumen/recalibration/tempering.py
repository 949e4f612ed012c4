"""The log loss of softmax(beta z) as a function of the inverse temperature beta = 1/T.

It is convex in beta, and one pass over the rows gives its value and its first two
derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from acumen.arrays import Column, Matrix
from acumen.compiled import fast
from acumen.compiled.threads import over_ranges
from acumen.recalibration.rows import Rows

CLOSE, NEAR = 0.03, 4e-3
"""The search ends after a relative step below `CLOSE` that has come as near as `NEAR`: a
cubic through slopes and curvatures at its ends then finds the root to about the square
of the product of the two."""

EXACT = 1e-10
"""Relative width of a bracket that ends the search."""

MOST_PASSES = 100
STRIDE = 4.5
"""The longest step is by this factor."""

PATIENCE = 8
"""Passes that Newton steps alone are given."""

FIRST_ROWS = 1000
LEAST, MOST = 1e-3, 1e2
"""Range of beta times the spread of the scores: from next to uniform to all but sure."""

FARTHEST = -1e30
"""Logits farther below the largest one count as impossible: so does -inf."""


class Bend(NamedTuple):
    """Mean log loss at one beta, with its slope and curvature in beta."""

    loss: float
    slope: float
    curvature: float


class Found(NamedTuple):
    """Where a search ended, after how many passes over all rows, and how.

    `flat` says that all betas are the same.
    """

    beta: float
    passes: int
    low: float
    high: float
    converged: bool = True
    flat: bool = False

    @property
    def edge(self) -> str | None:
        """Which end of the range it ran into, if it did."""
        if self.flat:
            return "flat"
        if self.low < self.beta < self.high:
            return None
        return "hot" if self.beta <= self.low else "cold"

    def within(self, low: float, high: float) -> Found:
        """The same in a narrower range; of a convex function still the optimum."""
        beta = min(max(self.beta, low), high)
        return self._replace(beta=beta, low=low, high=high)


class LogLoss:
    """The mean log loss of rows as a function of beta, ``loss(beta)``.

    Rows whose label is impossible (logit -inf, probability 0) have infinite loss at
    every temperature. They are left out, and counted in `impossible`.
    """

    def __init__(self, rows: Rows, engine: str = "auto") -> None:
        self.rows = rows
        self.impossible = 0
        compiled = fast.wanted(engine, rows.scores, plain=rows.kind == "logits")
        self.engine = "numba" if compiled else "numpy"

    def __call__(self, beta: float) -> Bend:
        """Value, slope and curvature at one beta."""
        rows = self.rows
        work = self._compiled if self.engine == "numba" else self._range
        sums = np.sum(
            over_ranges(lambda a, b: work(beta, a, b), len(rows), rows.scores.size),
            axis=0,
        )
        if not np.isfinite(sums).all():
            rows.check()
        self.impossible = round(float(sums[4]))
        weight = sums[3] if sums[3] > 0 else 1.0
        return Bend(*(float(x) for x in sums[:3] / weight))

    def _range(self, beta: float, start: int, stop: int) -> Column:
        return sum(
            (self._block(beta, part) for part in self.rows.parts(start, stop)),
            start=np.zeros(5),
        )

    def _block(self, beta: float, part: slice) -> Column:
        d, own = below_top(self.rows, part)
        weight = self.rows.weights(part) * (own > FARTHEST)
        e = np.exp(np.multiply(d, d.dtype.type(beta)))
        total = e.sum(axis=1).astype(np.float64)
        mean = np.vecdot(e, d).astype(np.float64) / total
        e *= d
        square = np.vecdot(e, d).astype(np.float64) / total
        terms = np.log(total) - beta * own, mean - own, square - mean * mean
        sums = [float(np.sum(weight * term)) for term in terms]
        return np.array([*sums, np.sum(weight), np.sum(own <= FARTHEST)], float)

    def _compiled(self, beta: float, start: int, stop: int) -> Column:
        from acumen.recalibration import tempering_numba

        return tempering_numba.add_up(self.rows, beta, start, stop)


def below_top(rows: Rows, part: slice) -> tuple[Matrix, Column]:
    """Log-scores relative to the largest of their row, and that of the label."""
    d = np.array(rows.block(part))
    if rows.kind == "probs":
        with np.errstate(divide="ignore"):
            np.log(d, out=d)
    with np.errstate(over="ignore"):
        d -= d.max(axis=1, keepdims=True)
    np.maximum(d, d.dtype.type(FARTHEST), out=d)
    return d, d[np.arange(len(d)), rows.y[part]].astype(np.float64)


def search(
    loss: Callable[[float], Bend], start: float, low: float, high: float
) -> Found:
    """Minimise a convex function on [low, high] by Newton steps inside a bracket.

    Where the loss falls for ever (no row is wrong) Newton steps are short, and where it
    is all but flat they are wild: after some passes, every second step is long, or
    halves the bracket.
    """
    beta, left, right = min(max(start, low), high), low, high
    before: tuple[float, Bend] | None = None
    for passes in range(1, MOST_PASSES + 1):
        at = loss(beta)
        left, right = (left, beta) if at.slope > 0 else (beta, right)
        if before is not None and abs(beta - before[0]) <= CLOSE * beta:
            root = _root(before, (beta, at))
            if abs(root - beta) <= NEAR * beta:
                return Found(min(max(root, left), right), passes, low, high)
        step = min(max(_newton(at, beta), low), high)
        if right - left <= EXACT * beta or step == beta:
            return Found(beta, passes, low, high)
        step = min(max(step, beta / STRIDE), beta * STRIDE)
        if passes > PATIENCE and passes % 2:
            step = min(beta * STRIDE, high) if right == high else sqrt(left * right)
        before = beta, at
        new = left < step < right or step in (low, high)  # not where it has been
        beta = step if new and left <= step <= right else sqrt(left * right)
    return Found(beta, MOST_PASSES, low, high, converged=False)


def _root(one: tuple[float, Bend], two: tuple[float, Bend]) -> float:
    """Where the slope is 0, by a cubic through two places and three Newton steps."""
    (x0, a), (x1, b) = one, two
    h = x1 - x0
    rise = (b.slope - a.slope) / h
    c2 = (3 * rise - 2 * a.curvature - b.curvature) / h
    c3 = (a.curvature + b.curvature - 2 * rise) / h**2
    x = h
    for _ in range(3):
        value = a.slope + x * (a.curvature + x * (c2 + x * c3))
        tilt = a.curvature + x * (2 * c2 + 3 * c3 * x)
        if not tilt > 0:
            return inf
        x -= value / tilt
    return x0 + x


def _newton(at: Bend, beta: float) -> float:
    """Where a parabola with this slope and curvature is least; far off if it is flat."""
    if at.curvature > 0:
        return beta - at.slope / at.curvature
    return -inf if at.slope > 0 else inf


def spread(rows: Rows) -> float:
    """Root mean variance of the finite log-scores within rows: what beta multiplies."""

    def variance(part: slice) -> float:
        d, _ = below_top(rows, part)
        there = d > FARTHEST
        count = there.sum(axis=1)
        d = np.where(there, d, 0.0)
        mean = d.sum(axis=1) / count
        return float(np.sum((np.vecdot(d, d) / count - mean * mean).clip(min=0)))

    return sqrt(rows.add_up(variance) / len(rows))


def minimise(loss: LogLoss, bounds: tuple[float, float] | None) -> Found:
    """The best beta within bounds; without, from `LEAST` to `MOST` over the spread.

    It starts from the optimum on about a thousand rows spread over all. Their spread
    also tells whether the result is far from any edge, which it almost always is.
    """
    rows = loss.rows
    few = sample(rows)
    scale = spread(few.select(slice(100))) or spread(rows)
    if scale == 0:
        loss(1.0)  # for its checks and counts
        return Found(1.0, 1, 1.0, 1.0, flat=True)
    low, high = bounds or (LEAST / scale / 10, MOST / scale * 10)
    start = min(max(1.0, 0.1 / scale), 10 / scale)
    if few is not rows:
        start = search(LogLoss(few, loss.engine), start, low, high).beta
    found = search(loss, start, low, high)
    if bounds is None and not 10 * LEAST < found.beta * scale < MOST / 10:
        scale = spread(rows)
        return found.within(LEAST / scale, MOST / scale)
    return found


def sample(rows: Rows) -> Rows:
    """About a thousand rows, spread over all."""
    every = len(rows) // FIRST_ROWS
    return rows.select(slice(None, None, every)) if every > 1 else rows
