"""Many small logistic regressions side by side, by Newton steps that are halved if needed.

Column j of each feature belongs to regression j. All are convex, with two or three
coefficients each, and one pass over the rows gives values, gradients and Hessians.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.compiled.threads import over_ranges
from acumen.reduction import BLOCK_BYTES

RIDGE = 1e-8
"""Pull towards the identity map, where the data leave a coefficient open."""

CLOSE = 1e-12
"""Gain promised by a Newton step that makes it the last; the error left is its square."""

MOST_PASSES, SHORTEST, ROUNDING = 200, 1e-9, 1e-15
ENOUGH = 1e-4
"""Share of the promised gain that a step must bring, or it is halved."""

Coefficients = NDArray[np.float64]
"""One row per feature and one for the intercept, one column per regression."""


class Hits(NamedTuple):
    """What is to be predicted: `high` where column j is the label, `low` elsewhere."""

    labels: NDArray[np.intp]
    columns: NDArray[np.intp]
    low: Column
    high: Column

    def block(self, part: slice, chosen: NDArray[np.intp]) -> NDArray[np.float64]:
        """Targets of some rows and some regressions."""
        hit = self.labels[part, None] == self.columns[chosen]
        return np.where(hit, self.high[chosen], self.low[chosen])


class Solution(NamedTuple):
    """Coefficients, and which of the regressions converged."""

    coefficients: Coefficients
    converged: NDArray[np.bool_]


class At(NamedTuple):
    """Mean loss with ridge, gradient (d x g) and Hessian (g x d x d)."""

    value: Column
    gradient: NDArray[np.float64]
    hessian: NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Regressions:
    """Regressions of hits on features (f x n x g), which are changed in place.

    They are centred and scaled, for then the coefficients hardly depend on each other,
    and scores of any size are alike. `share` is each row's part of the total weight.
    """

    features: NDArray[np.float64]
    hits: Hits
    share: Column
    centre: Coefficients
    scale: Coefficients

    @classmethod
    def of(
        cls, features: NDArray[np.float64], hits: Hits, share: Column
    ) -> Regressions:
        """Centre and scale the features."""
        centre, scale = np.zeros((2, *features.shape[::2]))
        for f in range(len(features)):
            centre[f], scale[f] = _standardise(features[f], share)
        return cls(features, hits, share, centre, scale)

    def solve(self) -> Solution:
        """Coefficients of the features as they were before they were scaled."""
        return self._solve((True,) * len(self.features), np.arange(self.scale.shape[1]))

    def _solve(self, free: tuple[bool, ...], chosen: NDArray[np.intp]) -> Solution:
        """The same for chosen regressions, with the coefficients that are not free at 0."""
        place, converged = self._descend(free, chosen)
        slopes = place[:-1] / self.scale
        shift = place[-1] - (slopes * self.centre).sum(axis=0)
        return Solution(np.concatenate([slopes, shift[None]]), converged)

    def solve_rising(self) -> Solution:
        """The same with no negative coefficient of a feature.

        The optimum is that of one of the problems in which some features are left out
        and the others are free: the best of those without a negative coefficient.
        """
        best, converged = self.solve()
        wrong = (best[:-1] < 0).any(axis=0)
        value = np.where(wrong, np.inf, -np.inf)
        subsets = list(product([True, False], repeat=len(self.features)))
        for free in subsets[1:] if wrong.any() else []:
            found, done = self._solve(free, np.flatnonzero(wrong))
            loss = self._losses(found)
            better = (loss < value) & ~(found[:-1] < 0).any(axis=0)
            value = np.where(better, loss, value)
            best = np.where(better, found, best)
            converged = np.where(better, done, converged)
        return Solution(best, converged)

    def _losses(self, coefficients: Coefficients) -> Column:
        """Mean loss with ridge of given coefficients, of the features as they were."""
        slopes = coefficients[:-1]
        shift = coefficients[-1] + (slopes * self.centre).sum(axis=0)
        place = np.concatenate([slopes * self.scale, shift[None]])
        return self.at(place, np.arange(place.shape[1])).value

    def _start(self) -> Coefficients:
        """No slope, and the overall share of hits."""
        f, n, g = self.features.shape
        every = np.arange(g)
        mean = _add_up(
            lambda part: _mean(self.hits.block(part, every), self.share[part]), n, g
        )
        start = np.zeros((f + 1, g))
        start[-1] = np.log(mean) - np.log1p(-mean)
        return start

    def _descend(self, free: tuple[bool, ...], active: NDArray[np.intp]) -> Solution:
        """Newton steps for the active regressions, as long as they move.

        A step that brings too little is halved, so each pass either accepts a step or
        shortens it.
        """
        place = self._start()
        g = place.shape[1]
        value, length = np.full(g, np.inf), np.zeros(g)
        step, gain = np.zeros_like(place), np.zeros(g)
        converged = np.zeros(g, bool)
        for _ in range(MOST_PASSES):
            trial = place[:, active] - length[active] * step[:, active]
            at = self.at(trial, active)
            bound = value[active] - ENOUGH * length[active] * gain[active]
            good = at.value <= bound + ROUNDING * np.abs(at.value)
            taken, short = active[good], active[~good]
            place[:, taken], value[taken] = trial[:, good], at.value[good]
            step[:, taken], gain[taken] = _newton(at, good, free)
            length[taken] = 1.0
            length[short] /= 2
            last = taken[gain[taken] <= CLOSE]
            place[:, last] -= step[:, last]
            converged[last] = True
            active = active[~converged[active] & (length[active] > SHORTEST)]
            if not active.size:
                break
        return Solution(place, converged)

    def at(self, place: Coefficients, chosen: NDArray[np.intp]) -> At:
        """Value, gradient and Hessian of chosen regressions."""
        n, g = self.features.shape[1:]
        x = self.features if len(chosen) == g else self.features[:, :, chosen]
        d = len(place)
        sums = _add_up(
            lambda part: self._block(place, x[:, part], chosen, part), n, len(chosen)
        )
        # The pull is measured by the identity map itself where that is large, so that
        # scores of any size are pulled alike.
        centre, scale = self.centre[:, chosen], self.scale[:, chosen]
        identity = np.concatenate([scale, centre.sum(axis=0, keepdims=True)])
        ridge = RIDGE / np.maximum(1, identity * identity)
        off = place - identity
        hessian = sums[1 + d :].T.reshape(-1, d, d).copy()
        hessian[:, np.arange(d), np.arange(d)] += ridge.T
        value = sums[0] + 0.5 * (ridge * off * off).sum(axis=0)
        return At(value, sums[1 : 1 + d] + ridge * off, hessian)

    def _block(
        self,
        place: Coefficients,
        x: NDArray[np.float64],
        chosen: NDArray[np.intp],
        part: slice,
    ) -> NDArray[np.float64]:
        """Sums over some rows: loss, gradient, and Hessian row by row."""
        target, share = self.hits.block(part, chosen), self.share[part]
        eta = np.einsum("fij,fj->ij", x, place[:-1])
        eta += place[-1]
        e = np.exp(-np.abs(eta))
        loss = _mean(np.log1p(e) + np.maximum(eta, 0) - target * eta, share)
        residual = np.where(eta >= 0, 1.0, e) / (1 + e) - target
        residual *= share[:, None]
        curvature = e / (1 + e) ** 2
        curvature *= share[:, None]
        columns = [*x, np.ones_like(eta)]
        bent = [curvature * column for column in columns]
        gradient = [_dot(residual, column) for column in columns]
        hessian = [_dot(b, column) for b in bent for column in columns]
        return np.stack([loss, *gradient, *hessian])


def _standardise(x: NDArray[np.float64], share: Column) -> tuple[Column, Column]:
    """Centre and scale columns in place; their mean and spread."""
    centre = _mean(x, share)
    x -= centre
    spread = np.sqrt(_add_up(lambda p: _mean(x[p] ** 2, share[p]), *x.shape))
    # A constant feature is 0 but for rounding; its coefficient is left alone.
    flat = spread <= 1e-12 * np.abs(centre)
    x[:, flat] = 0
    spread[flat] = 1
    x /= spread
    return centre, spread


def _dot(a: NDArray[np.float64], b: NDArray[np.float64]) -> Column:
    """Sum of products in each column."""
    return np.einsum("ij,ij->j", a, b)


def _mean(x: NDArray[np.float64], share: Column) -> Column:
    """Part of the weighted mean of each column."""
    return np.einsum("i,ij->j", share, x)


def _newton(
    at: At, good: NDArray[np.bool_], free: tuple[bool, ...]
) -> tuple[NDArray[np.float64], Column]:
    """Newton steps in the free coefficients, and the gain each promises."""
    moves = np.flatnonzero([*free, True])
    gradient = at.gradient[np.ix_(moves, np.flatnonzero(good))]
    hessian = at.hessian[np.ix_(np.flatnonzero(good), moves, moves)]
    step = np.zeros((len(free) + 1, gradient.shape[1]))
    step[moves] = np.linalg.solve(hessian, gradient.T[:, :, None])[:, :, 0].T
    return step, (gradient * step[moves]).sum(axis=0)


def _add_up(
    work: Callable[[slice], NDArray[np.float64]], n: int, g: int
) -> NDArray[np.float64]:
    """Sum of ``work(part)`` over blocks of rows of g columns that fit in cache."""
    rows = max(1, BLOCK_BYTES // (8 * g))

    def run(start: int, stop: int) -> NDArray[np.float64]:
        cuts = range(start, stop, rows)
        return np.sum([work(slice(a, min(a + rows, stop))) for a in cuts], axis=0)

    return np.sum(over_ranges(run, n, n * g), axis=0)
