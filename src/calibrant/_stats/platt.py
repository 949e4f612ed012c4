"""Local Platt scaling: the adaptive calibration curve.

Around each node a logistic recalibration ``logit m = z + d0 + d1 (z - z_node)`` is
fitted with a kernel in rank. Its wide limit is ordinary Platt scaling, so errors of
the temperature kind are met without smoothing bias at any width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant._inputs.arrays import Column, Index, Table
from calibrant._rows import compiled, engines
from calibrant._sketch.kernels import GAUSSIAN
from calibrant._stats.neighbours import Groups, Neighbours

Pair = tuple[Column, Column]

PRIOR_SD = 4.0
"""Of the shift d0, and of the slope d1 times the local spread of the log-odds."""

WIDTHS = np.geomspace(1.5, 0.006, 9)
"""Widths in rank, wide to narrow, among which the curve chooses."""

FEW_CELLS, BLOCK_NUMBERS = 128, 20_000
RANK_NODES, LOG_ODDS_NODES, ATOM = 64, 24, 0.005
TOLERANCE, MOST_STEPS, LONGEST_STEP = 1e-6, 50, 1.5

LARGEST_VARIANCE = 4.0
"""Of a fitted log-odds that is believed; what is more uncertain than this is no normal."""


@dataclass(frozen=True, slots=True, eq=False)
class LocalPlatt:
    """A fitted recalibration: shift and slope at each node, and how sure they are.

    `leverage` is (J^-1)_00, by which one row moves the fit at its own place, and
    `variance` the variance of the fitted log-odds. If cells have groups of clusters,
    `pull` is how far each group moved the fit: a table of nodes x groups.
    """

    width: float
    nodes: Column
    shift: Column
    slope: Column
    leverage: Column
    variance: Column
    pull: Table | None = None

    def log_odds(self, z: Column) -> Column:
        """Recalibrated log-odds; the shift is interpolated between nodes."""
        return z + np.interp(z, self.nodes, self.shift)

    def at(self, z: Column, values: Column) -> Column:
        """Interpolate a value known at the nodes."""
        return np.interp(z, self.nodes, values)

    def pulled(self, z: Column) -> Table:
        """How far each group moved the fit at these log-odds: log-odds x groups."""
        assert self.pull is not None
        place = np.interp(z, self.nodes, np.arange(len(self.nodes)))
        before = np.minimum(place.astype(np.intp), max(len(self.nodes) - 2, 0))
        share = (place - before)[:, None]
        after = np.minimum(before + 1, len(self.nodes) - 1)
        return (1 - share) * self.pull[before] + share * self.pull[after]


def choose_nodes(cells: Neighbours) -> Column:
    """Log-odds at which to fit: every cell if few, else equal ranks and log-odds.

    Heavy atoms are nodes of their own: on tied data, interpolating past them would
    be wrong by a multiple.
    """
    z, weight = cells.z, cells.weight
    if len(z) <= FEW_CELLS:
        return z
    ranks = np.interp(np.linspace(0, 1, RANK_NODES), cells.rank, z)
    even = np.linspace(z[0], z[-1], LOG_ODDS_NODES)
    return np.unique(np.concatenate([ranks, even, z[weight >= ATOM * cells.n]]))


def fit(
    cells: Neighbours,
    width: float,
    nodes: Column,
    start: LocalPlatt | None = None,
    tolerance: float = TOLERANCE,
    engine: str = "auto",
    prior_sd: tuple[float, float] | None = None,
) -> LocalPlatt:
    """Fit all nodes by damped Newton steps, from another fit if given.

    `prior_sd` are standard deviations of the priors of shift and slope, by default
    `PRIOR_SD` and what leaves such a shift at the local spread of the log-odds.

    Steps stop once they are shorter than `tolerance`; as Newton converges
    quadratically, what is left is about its square. Nodes go in blocks, which keeps
    the matrices of nodes and cells small.
    """
    rank = cells.rank
    at = np.interp(nodes, cells.z, rank)
    shift, slope, leverage, variance = np.zeros((4, len(nodes)))
    if start is not None:
        shift[:], slope[:] = start.shift, start.slope
    found = shift, slope, leverage, variance
    if engines.wanted(engine):
        seen = rank, cells.z, cells.weight, cells.hits, cells.w2, nodes, at
        one, two = (1 / sd**2 for sd in prior_sd or (PRIOR_SD, np.inf))
        rules = width, one, two, tolerance, MOST_STEPS, LONGEST_STEP
        compiled.loops.fit_platt(*rules, *(*map(compiled.ready, seen), *found))
    else:
        _fit_blocks(cells, rank, width, nodes, at, tolerance, prior_sd, found)
    whole = LocalPlatt(width, nodes, *found)
    if cells.groups is None:
        return whole
    return _with_pull(whole, cells, cells.groups, prior_sd)


def _with_pull(
    fitted: LocalPlatt,
    cells: Neighbours,
    groups: Groups,
    prior_sd: tuple[float, float] | None,
) -> LocalPlatt:
    """The same fit, with what each group of clusters did to it.

    That is J^-1 times the score of the group, and the variance is the sum of its squares.
    """
    at = np.interp(fitted.nodes, cells.z, cells.rank)
    hits = groups.residual + groups.weight * cells.h
    pull = np.empty((len(fitted.nodes), len(groups)))
    block = max(BLOCK_NUMBERS // len(cells.rank), 1)
    for first in range(0, len(at), block):
        part = slice(first, first + block)
        K = GAUSSIAN.profile((at[part, None] - cells.rank) / fitted.width)
        problem = _problem(K, cells, fitted.nodes[part], prior_sd)
        places = fitted.shift[part], fitted.slope[part]
        with np.errstate(over="ignore"):
            pull[part] = problem.pull(*places, hits, groups.weight)
    return replace(fitted, pull=pull, variance=(pull**2).sum(axis=1))


Fit = tuple[Column, Column, Column, Column]
"""Shift, slope, leverage and variance at each node, filled in."""


def _fit_blocks(
    cells: Neighbours,
    rank: Column,
    width: float,
    nodes: Column,
    at: Column,
    tolerance: float,
    prior_sd: tuple[float, float] | None,
    found: Fit,
) -> None:
    """What the compiled loop does: fit the nodes, in place, some at a time."""
    shift, slope, leverage, variance = found
    squared = None if cells.w2 is cells.weight else cells.w2 / cells.weight
    block = max(BLOCK_NUMBERS // len(rank), 1)
    for first in range(0, len(nodes), block):
        part = slice(first, first + block)
        K = GAUSSIAN.profile((at[part, None] - rank) / width)
        problem = _problem(K, cells, nodes[part], prior_sd)
        changed = shift[part], slope[part]
        with np.errstate(over="ignore"):
            _climb(problem, *changed, tolerance)
            leverage[part], variance[part] = problem.precision(*changed, squared)


def _problem(
    K: Table,
    cells: Neighbours,
    nodes: Column,
    prior_sd: tuple[float, float] | None = None,
) -> _Problem:
    """The prior precision of the slope follows the local spread, unless it is given."""
    offset, weight = cells.z - nodes[:, None], K * cells.weight
    whole = np.maximum(weight.sum(axis=1), 1e-300)
    spread, precision = np.vecdot(weight * offset, offset) / whole, 1 / PRIOR_SD**2
    prior = np.stack([np.full(len(nodes), precision), precision * spread + 1e-6])
    if prior_sd is not None:
        prior.T[:] = 1 / np.square(prior_sd)
    return _Problem(cells.z, prior, K, offset, weight, K * cells.hits)


def _climb(problem: _Problem, shift: Column, slope: Column, tolerance: float) -> None:
    """Newton steps, cut to `LONGEST_STEP`, at the nodes that still move.

    A step that lands where the slope along it is half as steep downhill as it was
    uphill went too far (Newton can cycle on such problems): half of it is taken back.
    """
    place = np.stack([shift, slope])
    last, rise = np.zeros_like(place), np.zeros(len(shift))
    active = np.arange(len(shift))
    for _ in range(MOST_STEPS):
        part = problem.take(active) if len(active) < len(shift) else problem
        gradient, step = part.newton_step(*place[:, active])
        scale = np.sqrt(part.prior[1] / part.prior[0])
        length = np.maximum(np.abs(step[0]), np.abs(step[1]) * scale)
        step *= LONGEST_STEP / np.maximum(length, LONGEST_STEP)
        too_far = (gradient * last[:, active]).sum(axis=0) < -0.5 * rise[active]
        step = np.where(too_far, -0.5 * last[:, active], step)
        place[:, active] += step
        last[:, active] = np.where(too_far, 0.5 * last[:, active], step)
        new_rise = (gradient * step).sum(axis=0)
        rise[active] = np.where(too_far, 0.5 * rise[active], new_rise)
        active = active[too_far | (length >= tolerance)]
        if not active.size:
            break
    shift[:], slope[:] = place


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Kernel-weighted counts seen from each node (nodes x cells)."""

    z: Column
    prior: Table
    K: Table
    offset: Table
    weight: Table
    hits: Table

    def take(self, nodes: Index) -> _Problem:
        rows = (x[nodes] for x in (self.K, self.offset, self.weight, self.hits))
        return _Problem(self.z, self.prior[:, nodes], *rows)

    def newton_step(self, shift: Column, slope: Column) -> tuple[Table, Table]:
        """The gradient (uphill) and the full Newton step."""
        p = self._accuracy(shift, slope)
        expected = self.weight * p
        residual = self.hits - expected
        expected *= np.subtract(1, p, out=p)
        g0 = residual.sum(axis=1) - shift * self.prior[0]
        g1 = np.vecdot(residual, self.offset) - slope * self.prior[1]
        j00, j01, j11 = self._information(expected)
        determinant = j00 * j11 - j01 * j01
        step = np.stack([j11 * g0 - j01 * g1, j00 * g1 - j01 * g0]) / determinant
        return np.stack([g0, g1]), step

    def precision(
        self, shift: Column, slope: Column, squared: Column | None = None
    ) -> Pair:
        """(J^-1)_00 and (J^-1 J2 J^-1)_00, J2 the information weighted by K w twice.

        `squared` is the mean weight of a cell's weights, where rows have any.
        """
        p = self._accuracy(shift, slope)
        information = self.weight * p * (1 - p)
        c0, c1 = self._first_row(information)
        information *= self.K
        if squared is not None:
            information *= squared
        q0, q1 = information.sum(axis=1), np.vecdot(information, self.offset)
        information *= self.offset
        q2 = np.vecdot(information, self.offset)
        return c0, c0 * c0 * q0 + 2 * c0 * c1 * q1 + c1 * c1 * q2

    def pull(self, shift: Column, slope: Column, hits: Table, weight: Table) -> Table:
        """How far each group, with its hits and weight by cell, moves the log-odds."""
        p = self._accuracy(shift, slope)
        c0, c1 = self._first_row(self.weight * p * (1 - p))
        lever = self.K * (c0[:, None] + c1[:, None] * self.offset)
        return lever @ hits.T - (lever * p) @ weight.T

    def _first_row(self, information: Table) -> Pair:
        """Of the inverse of J."""
        j00, j01, j11 = self._information(information)
        determinant = j00 * j11 - j01 * j01
        return j11 / determinant, -j01 / determinant

    def _accuracy(self, shift: Column, slope: Column) -> Table:
        e = slope[:, None] * self.offset
        e += shift[:, None]
        e += self.z
        np.negative(e, out=e)
        np.exp(e, out=e)  # overflow is fine: it ends as probability 0
        e += 1
        return np.reciprocal(e, out=e)

    def _information(self, information: Table) -> tuple[Column, Column, Column]:
        first = information * self.offset
        j00 = information.sum(axis=1) + self.prior[0]
        return j00, first.sum(axis=1), np.vecdot(first, self.offset) + self.prior[1]
