"""Calibrated rows: hits redrawn with the stated confidences, to see what chance does.

A *surprise* is a hit where the confidence is below one half, or a miss where it is not.
Only surprises are drawn, so a model that is mostly sure costs little.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from acumen.arrays import Column
from acumen.columns import Columns
from acumen.ordered import Ordered, gather, order

POINTS_AT_ONCE = 2_000_000
CELLS, REACH = 600, 20.0
"""Cells of log-odds from -20 to 20; one half is an edge between two of them."""


class Draws(NamedTuple):
    """Surprises of several data sets: how many in which replicate and group.

    Entries are in order of replicate, then group, and no pair occurs twice.
    """

    replicates: int
    replicate: NDArray[np.intp]
    group: NDArray[np.intp]
    surprises: Column

    def sums(self, value: Column) -> Column:
        """Sum over each replicate of one number per entry."""
        total = np.bincount(self.replicate, value, self.replicates)
        return total.astype(np.float64, copy=False)


@dataclass(frozen=True, eq=False)
class NullRows:
    """Rows in groups of equal confidence, in increasing order.

    Attributes
    ----------
    h, rows : arrays
        The distinct confidences, and the rows (or total weight) at each.
    surprises : array
        How many of them turned out against the odds.
    """

    h: Column
    rows: Column
    surprises: Column

    @classmethod
    def of(cls, columns: Columns) -> NullRows:
        """Gather rows whose hits are 0 or 1."""
        return cls.of_ordered(order(columns).without_twins())

    @classmethod
    def of_ordered(cls, found: Ordered) -> NullRows:
        """Gathered rows whose hits are 0 or 1."""
        likely = found.confidence >= 0.5
        surprises = np.where(likely, found.weight - found.hits, found.hits)
        return cls(found.confidence, found.weight, surprises)

    @cached_property
    def chance(self) -> Column:
        """Probability of a surprise, at most one half."""
        return np.minimum(self.h, 1 - self.h)

    @cached_property
    def flip(self) -> Column:
        """What a surprise adds to the sum of hits: 1, or -1 where a hit was likely."""
        return np.where(self.h >= 0.5, -1.0, 1.0)

    @property
    def n(self) -> float:
        """Rows, or total weight."""
        return float(self.rows.sum())

    @cached_property
    def variance(self) -> Column:
        """Variance of the hits in each group, if calibrated."""
        return self.rows * self.h * (1 - self.h)

    @cached_property
    def calm(self) -> Column:
        """Sum of a - h in each group if nothing surprising happens."""
        return -self.flip * self.rows * self.chance

    @property
    def countable(self) -> bool:
        """Whether weights are whole, so that rows can be drawn."""
        return bool(np.all(self.rows == np.round(self.rows)))

    @property
    def contradictions(self) -> float:
        """Rows that turned out otherwise at confidence 0 or 1."""
        return float(self.surprises[self.chance == 0].sum())

    def coarse(self) -> NullRows:
        """The same in at most 600 groups, of equal or nearly equal log-odds."""
        if len(self.h) <= CELLS:
            return self
        with np.errstate(divide="ignore"):
            z = np.clip(np.log(self.h) - np.log1p(-self.h), -REACH, REACH)
        cell = np.floor(z * (CELLS / (2 * REACH)))
        starts = np.diff(cell, prepend=-CELLS) > 0
        claimed, rows, surprises = gather(
            starts, self.rows * self.h, self.rows, self.surprises
        )
        return NullRows(claimed / rows, rows, surprises)

    def observed(self) -> Draws:
        """The data themselves, as one draw."""
        group = np.flatnonzero(self.surprises)
        return Draws(1, np.zeros_like(group), group, self.surprises[group])

    def redraw(self, replicates: int, rng: np.random.Generator) -> list[Draws]:
        """Data sets of the same confidences whose model is calibrated, in parts."""
        hazard = self.rows * -np.log1p(-self.chance)
        expected = float(hazard.sum())
        few = len(self.h) <= 6 * expected  # a group costs less than a point
        size = len(self.h) if few else expected
        part = max(1, min(replicates, int(POINTS_AT_ONCE / (size + 1))))
        sizes = [part] * (replicates // part)
        sizes += [replicates % part] if replicates % part else []
        draw = self._draw_groups if few else self._draw_rows
        return [draw(size, rng) for size in sizes]

    def _draw_groups(self, replicates: int, rng: np.random.Generator) -> Draws:
        shape = replicates, len(self.h)
        if np.all(self.rows == 1):
            count = (rng.random(shape) < self.chance).astype(float)
        else:
            count = rng.binomial(self.rows.astype(np.int64), self.chance, shape)
        replicate, group = np.nonzero(count)
        return Draws(replicates, replicate, group, count[replicate, group])

    def _draw_rows(self, replicates: int, rng: np.random.Generator) -> Draws:
        # Points of a Poisson process: a row, -log(1 - q) long, holds at least one with
        # probability q, independently of other rows. Replicates are laid end to end.
        length = -np.log1p(-self.chance)
        ends = np.cumsum(self.rows * length)
        whole = ends[-1]
        at = _poisson_points(whole * replicates, rng)
        replicate = np.minimum((at / whole).astype(np.intp), replicates - 1)
        at -= replicate * whole
        group = np.minimum(np.searchsorted(ends, at, side="right"), len(ends) - 1)
        row = np.floor((ends[group] - at) / np.maximum(length[group], 1e-300))
        new = np.ones(len(at), bool)
        new[1:] = (np.diff(replicate) != 0) | (np.diff(group) != 0)
        fresh = new.copy()
        fresh[1:] |= np.diff(row) != 0
        count = np.add.reduceat(fresh, np.flatnonzero(new)) if len(at) else fresh
        return Draws(replicates, replicate[new], group[new], count.astype(float))


def _poisson_points(length: float, rng: np.random.Generator) -> Column:
    """Points of a Poisson process of rate 1 on [0, length), in order."""
    points = np.empty(0)
    reached = 0.0
    while reached < length:
        left = length - reached
        gaps = rng.exponential(size=ceil(left + 4 * left**0.5 + 4))
        more = reached + np.cumsum(gaps)
        points, reached = np.concatenate([points, more]), float(more[-1])
    return points[points < length]
